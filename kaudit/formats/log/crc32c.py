"""CRC-32C, the checksum of batches and of producer snapshots."""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


def _load() -> Callable[..., int]:
    """Return the function of the `crc32c` package without importing the package around it.

    That asks importlib.metadata for its own version, and email, zipfile and socket come with it: 14 ms of every start.
    """
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if "crc32c" in sys.modules or not found or found.loader is None:
        import crc32c as whole  # noqa: PLC0415 - only where its extension alone cannot be had

        return whole.crc32c
    extension: Any = module_from_spec(found)
    found.loader.exec_module(extension)
    return extension.crc32c  # type: ignore[no-any-return]  # an extension has no types


crc32c = _load()
"""`crc32c(data, value=0)`: the CRC-32C of bytes, a memoryview or an array, going on from `value`."""
