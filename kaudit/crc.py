"""CRC-32C by the extension module of the package crc32c. The package itself would read its metadata for its version: 17 ms of a start."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

_NAME = "crc32c._crc32c"


def _extension() -> ModuleType:
    package = PathFinder.find_spec("crc32c")
    found = PathFinder.find_spec(_NAME, package.submodule_search_locations) if package else None
    if _NAME in sys.modules or found is None or found.loader is None:
        import crc32c  # noqa: PLC0415 - it is loaded already, or cannot be found by itself

        return crc32c
    module = sys.modules[_NAME] = module_from_spec(found)
    found.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = _extension().crc32c

__all__ = ["crc32c"]
