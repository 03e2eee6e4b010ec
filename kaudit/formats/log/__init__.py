"""Segment files: headers of every magic, records, control records, codecs, CRCs, and finding batches after damage."""
