"""Keeping the memory of freed arrays under glibc."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST = 32 << 20
"""The most glibc takes."""
_NEVER = 1 << 30


def keep_freed_memory() -> None:
    """Let the memory of freed arrays be used again; does nothing where the C library is not glibc.

    A column is some MiB and lives for milliseconds. glibc would map and unmap each: zeroing fresh pages takes as long as
    filling them.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
