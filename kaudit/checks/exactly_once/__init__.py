"""Transactions from their inputs to their outputs."""
