"""Docstrings, comments and pages cite files of this repository only, besides Kafka's classes and KIPs."""

import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("kaudit", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "kaudit").rglob("*.md")])
CITATION = re.compile(r"(?<![\w./*{-])(?:[\w-]+/)*[\w-]+\.(?:md|py)(?![\w*])")
WRITTEN_BY_USERS = {"audit.py", "table.md", "tables.py", "test_client.py"}
PLACEHOLDER = re.compile(r"(?:^|/)(?:NAME|ROOM|CODE)\b")


def prose(path: Path) -> str:
    """Comments and docstrings of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return "\n".join(
        token.string
        for token in tokens
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""'))
    )


@functools.cache
def exists(name: str, near: Path) -> bool:
    folders = (ROOT, ROOT / "kaudit", ROOT / "tests", ROOT / "docs", near)
    return (
        any((folder / name).exists() for folder in folders)
        or name in WRITTEN_BY_USERS
        or bool(PLACEHOLDER.search(name))
    )


def place(path: Path) -> str:
    """The package, or the directory of pages, that a file belongs to: `kaudit/reading`."""
    return "/".join(path.relative_to(ROOT).parent.parts[:2]) or "."


def missing(text: str, near: Path) -> set[str]:
    """The files that a text cites and that are not there."""
    return {name for name in CITATION.findall(text) if not exists(name, near)}


@pytest.mark.parametrize("folder", sorted({place(path) for path in (*SOURCES, *PAGES)}))
def test_files_that_are_cited_exist(folder):
    for path in (path for path in (*SOURCES, *PAGES) if place(path) == folder):
        cited = missing(path.read_text(encoding="utf-8"), path.parent)
        if cited and path.suffix == ".py":  # or the program names it
            cited = missing(prose(path), path.parent)
        assert cited == set(), path
