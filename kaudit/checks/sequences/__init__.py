"""Checks of the sequences of a producer: duplicates, gaps, restarts."""
