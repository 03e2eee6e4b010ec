"""Keeping the process small under glibc."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_SMALL = 1 << 20
_LARGEST = 32 << 20
"""The most glibc takes."""
_NEVER = 1 << 30


def keep_freed_memory() -> None:
    """Let the memory of freed arrays be used again; does nothing where the C library is not glibc.

    A column is some MiB and lives for milliseconds. glibc would map and unmap each: zeroing fresh pages takes as long as
    filling them.
    """
    _set(_LARGEST, _NEVER)


def keep_freed_memory_small() -> None:
    """Let large arrays go back to the system when they are freed; does nothing where the C library is not glibc.

    glibc raises its threshold up to 32 MiB as large blocks are freed, and from then on keeps such blocks: the memory of
    short-lived columns stays with the process and holes between them are never used. Setting it stops that.
    """
    _set(_SMALL, _SMALL)


def _set(mapped_above: int, trimmed_above: int) -> None:
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, mapped_above)
        mallopt(_M_TRIM_THRESHOLD, trimmed_above)
