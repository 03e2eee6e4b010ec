"""Bytes to model: one module per on-disk format. No I/O beyond the buffers handed in."""
