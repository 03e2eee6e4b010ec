"""Keeping the process small under glibc, and garbage collections short in Spark's workers."""

import ctypes
import gc
import sys
from functools import cache

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


@cache
def prepare_worker() -> None:
    """Keep freed memory; in a worker of Spark, leave what it has imported by now out of garbage collections.

    Spark's daemon collects after every task, which takes 45 ms with pyarrow, pandas and kaudit imported: more than
    reading 128 MiB.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    keep_freed_memory()
    if TaskContext.get() is not None:
        gc.freeze()


def _set(mapped_above: int, trimmed_above: int) -> None:
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, mapped_above)
        mallopt(_M_TRIM_THRESHOLD, trimmed_above)
