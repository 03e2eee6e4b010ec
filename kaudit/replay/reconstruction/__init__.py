"""Attempts read back from what they left behind: batches of segments, lines of server logs."""
