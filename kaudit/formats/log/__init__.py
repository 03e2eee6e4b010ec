"""Segment files: record batches of every magic, their records, codecs and CRCs."""
