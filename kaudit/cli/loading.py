"""Imports what takes long to import, or needs an extra, when a command is run: help, completion and configuration need no numpy."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def loaded(module: str, name: str) -> Any:  # noqa: ANN401 - anything a module holds
    """Return what a module of kaudit.cli holds under a name."""
    return getattr(import_module(f"kaudit.cli.{module}"), name)


def on_demand(module: str, function: str) -> Callable[..., int]:
    """Return the function of a module of kaudit.cli that runs a command and returns its exit code."""
    found: Callable[..., int] = loaded(module, function)
    return found
