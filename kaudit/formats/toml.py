"""TOML that a user wrote, bounded in size and depth."""

import tomllib
from typing import Any

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
