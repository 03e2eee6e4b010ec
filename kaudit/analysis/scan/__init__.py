"""Chunks to rows, rows to partitions, partitions to one result."""
