"""Bytes to model: one module a format. No I/O beyond the buffers handed in."""
