"""One module per command: its `app`, with the signature typer reads and a thin body."""

from importlib import import_module
from types import ModuleType

COMMANDS = (
    *(
        "scan",
        "timeline",
        "producers",
        "inspect",
        "replay",
        "attempts",
        "diff",
        "dedup",
        "capture",
        "watch",
        "simulate",
        "report",
    ),
    *("explain", "checks", "bugs", "spark-bundle", "baseline", "config"),
)
"""In the order of --help."""


def module_of(name: str) -> ModuleType:
    """Return the module of a command."""
    return import_module(f"{__name__}.{name.replace('-', '_')}")
