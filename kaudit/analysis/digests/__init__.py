"""Digests of the batches of a log by ranges of offsets: what fingerprints and reports name it by."""
