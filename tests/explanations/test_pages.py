"""docs/errors.md, docs/reports.md and docs/glossary.md are as generated."""

from pathlib import Path

import pytest

from kaudit.explanations.pages import pages

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", pages())
def test_the_page_is_as_generated(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run: python -m kaudit.explanations.pages docs"
