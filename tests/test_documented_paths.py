"""Every file of this repository that a page mentions exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# in backquotes or a link: from the root (`kaudit/report/machine/json.py`, `tests/data/`), or a module of the package (`report/machine/json.py`)
_MENTION = re.compile(r"[`(](?:\.\./)?(?P<path>[\w./-]+/[\w.-]*)[`)]")
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
