"""Keeping the memory of freed arrays under glibc."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGEST = 8 << 20
"""A column of a chunk is shorter. Longer arrays that grow would leave what they were before in the heap."""
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
        mallopt(_M_ARENA_MAX, 1)  # rows are received in threads, and used in another
