"""Attempts reconstructed from what they left: batches of segments, lines of server logs."""
