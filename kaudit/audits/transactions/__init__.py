"""Transactions of a partition, and how each ended."""
