"""Segments in remote storage, by __remote_log_metadata (KIP-405)."""
