"""Where configuration files are, and what stands in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaudit.errors import UsageError

NAME = "kaudit.toml"
_SHARED = "pyproject.toml"


def project_file(start: Path) -> Path | None:
    """Return the nearest configuration at or above a directory. Only the nearest counts: nothing is merged.

    Raises:
        OSError: a directory may not be read.

    """
    for directory in (start, *start.parents):
        own, shared = directory / NAME, directory / _SHARED
        if own.is_file():
            return own
        if shared.is_file() and b"[tool.kaudit" in shared.read_bytes():
            return shared
    return None


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the user's own configuration, if there is one."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    file = Path(home, "kaudit", NAME)
    return file if home and file.is_file() else None


def read_table(file: Path) -> Mapping[str, Any]:
    """Return kaudit's table of a configuration file."""
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"configuration {file}: not TOML: {error}") from error
    if file.name != _SHARED:
        return document
    table: Mapping[str, Any] = document.get("tool", {}).get("kaudit", {})
    return table
