"""docs/bugs is what the catalogue says."""

from pathlib import Path

from kaudit.bugs.pages import pages

DOCS = Path(__file__).parents[2] / "docs" / "bugs"


def test_the_pages_are_current():
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == pages(), "run python -m kaudit.bugs.pages docs/bugs"
