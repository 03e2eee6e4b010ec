"""What a page mentions exists: files of this repository, its tags; and kaudit is on no package index yet."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# in backquotes or a link: from the root (`kaudit/report/machine/json.py`, `tests/data/`), or a module of the package (`report/machine/json.py`)
_MENTION = re.compile(r"[`(](?:\.\./)?(?P<path>[\w./-]+/[\w.-]*)[`)]")
# of this repository, wherever it is cloned: `kaudit@v1.0.0`, `$KAUDIT_URL@v1.0.0`, and GitLab's `ref: v1.0.0`
_TAG = re.compile(r"(?:kaudit(?:\.git)?|\$KAUDIT_URL|\$\{KAUDIT_URL\})@(v\d[\w.]*)|\bref: (v\d[\w.]*)")
_BY_NAME = re.compile(
    r"(?:pip3? install|pipx install|uv tool install|uvx)\s+(?:-\S+\s+)*[\"']?kaudit(?![\w*-]|(?:\[[\w,]*\])? @)"
)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_pins_a_tag_that_is_not_there_or_installs_by_a_name_that_anybody_could_register(page):
    text = page.read_text(encoding="utf-8")
    named = {tag for match in _TAG.finditer(text) for tag in match.groups() if tag}
    assert not named or named <= _tags()
    assert _BY_NAME.findall(text) == []


def _tags() -> set[str]:
    return set(subprocess.run(["git", "-C", ROOT, "tag"], check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("pip install kaudit", True),
        ("%pip install -q 'kaudit[spark]'", True),
        ("uv tool install kaudit==0.1.0", True),
        ('pip install "kaudit[spark] @ git+$KAUDIT_URL"', False),
        ("pip install dist/kaudit-*.whl", False),
    ],
)
def test_a_line_that_installs_by_name(line, refused):
    assert bool(_BY_NAME.search(line)) is refused
