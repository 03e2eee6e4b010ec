"""Where configuration files are, and what stands in them."""

# ruff: noqa: PTH116, PTH118, PTH120, PTH123 - pathlib takes 3 ms, and most often there is no file

import errno
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaudit.analysis.scan.options import UsageError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "kaudit.toml"
_SHARED = "pyproject.toml"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def project_file(start: str) -> "Path | None":
    """Return the nearest configuration at or above a directory. Only the nearest counts: nothing is merged."""
    directory, below = start, None
    while directory != below:
        own, shared = os.path.join(directory, NAME), os.path.join(directory, _SHARED)
        if _is_file(own):
            return _path(own)
        if _is_file(shared):
            with open(shared, "rb") as file:
                if b"[tool.kaudit" in file.read():
                    return _path(shared)
        directory, below = os.path.dirname(directory), directory
    return None


def user_file(environ: Mapping[str, str]) -> "Path | None":
    """Return the user's own configuration, if there is one."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    file = os.path.join(home, "kaudit", NAME)
    return _path(file) if home and _is_file(file) else None


def _is_file(path: str) -> bool:
    """Tell whether there is a file. Raises OSError where that cannot be known, as in a directory nobody may look into."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise


def _path(file: str) -> "Path":
    from pathlib import Path

    return Path(file)


def read_table(file: "Path") -> Mapping[str, Any]:
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
