"""Modules that are imported when something of them is first used: most scans use none of them, and each costs every start."""

import sys
from importlib import import_module
from typing import Any


class Deferred:
    """Stands for a module until one of its names is asked for.

    The module is imported for type checkers in the other branch of `if TYPE_CHECKING`.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - anything a module holds
        return getattr(sys.modules.get(self._module) or import_module(self._module), name)
