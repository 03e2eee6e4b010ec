"""TOML: the tables beside kaudit's modules, and what a user wrote, bounded in size and depth."""

import pkgutil
from typing import TYPE_CHECKING, Any

from kaudit.deferred import Deferred

if TYPE_CHECKING:
    import tomllib
else:
    tomllib = Deferred("tomllib")

MAX_CHARACTERS = 1 << 20
"""Longest document: a thousand times what people write by hand."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document's tables.

    Raises:
        tomllib.TOMLDecodeError: it is not TOML, longer than MAX_CHARACTERS, or nested too deeply to be read.

    """
    if len(text) > MAX_CHARACTERS:
        raise tomllib.TOMLDecodeError(f"longer than {MAX_CHARACTERS:,} characters")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None


def packaged_toml(package: str, name: str) -> dict[str, Any]:
    """Return the tables of a file of a package of kaudit. `importlib.resources` would cost every command 3 ms."""
    text = pkgutil.get_data(package, name)
    assert text is not None
    return tomllib.loads(text.decode())
