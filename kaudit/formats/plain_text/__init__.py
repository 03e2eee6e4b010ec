"""Texts in any encoding, with anything before their lines, as plain lines: of dumps and of logs."""
