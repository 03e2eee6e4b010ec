"""Keeping the process small under glibc."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_THRESHOLD = 1 << 20


def keep_freed_memory_small() -> None:
    """Let large arrays go back to the system when they are freed; does nothing where the C library is not glibc.

    glibc raises its threshold up to 32 MiB as large blocks are freed, and from then on keeps such blocks: the memory of
    short-lived columns stays with the process and holes between them are never used. Setting it stops that.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD)
