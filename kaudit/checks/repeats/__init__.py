"""Checks of repeated or reordered records that sequences do not show."""
