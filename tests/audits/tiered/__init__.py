"""Segments in remote storage."""
