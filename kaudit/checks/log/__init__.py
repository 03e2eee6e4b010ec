"""Checks of the log itself: framing, CRCs, offsets, leader epochs, leftover files."""
