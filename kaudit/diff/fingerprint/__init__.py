"""Digests of what logs hold, so that two sites compare them by exchanging kilobytes."""
