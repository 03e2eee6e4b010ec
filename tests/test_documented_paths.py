"""Every file of this repository that a page mentions exists, and no table stands in two pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# in backquotes or a link: from the root (`kaudit/report/machine/json.py`, `tests/data/`), or a module of the package (`report/machine/json.py`)
_MENTION = re.compile(r"[`(](?:\.\./)?(?P<path>[\w./-]+/[\w.-]*)[`)]")
_TELLING = 60
"""Rows of this length say something; shorter ones are headings, or name a column that many tables have."""
_PLACEHOLDER = re.compile(r"NAME|CODE|TARGET")
_PACKAGES = {path.name for path in (ROOT / "kaudit").iterdir() if path.is_dir()}


def _exists(mention: str) -> bool:
    if any((start / mention).exists() for start in (ROOT, ROOT / "docs")):
        return True
    first = mention.split("/", 1)[0]
    if first in ("kaudit", "tests", "benchmarks", "samples", "docs", ".ci"):
        return False
    return first not in _PACKAGES or not mention.endswith((".py", "/")) or (ROOT / "kaudit" / mention).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_a_page_mentions_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    mentioned = {match["path"] for match in _MENTION.finditer(text)}
    assert [path for path in sorted(mentioned) if not _PLACEHOLDER.search(path) and not _exists(path)] == []


def test_no_row_of_a_table_stands_in_two_pages():
    pages: dict[str, set[str]] = {}
    for page in (*PAGES, *sorted((ROOT / "docs").glob("*/*.md"))):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for row in (line for line in text.splitlines() if line.startswith("|") and len(line) > _TELLING):
            pages.setdefault(row, set()).add(page.name)
    assert len(pages) > 1_000
    assert {row: names for row, names in pages.items() if len(names) > 1} == {}
