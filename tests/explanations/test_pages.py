"""docs/errors.md, docs/reports.md, docs/glossary.md and see_also.tsv are as generated."""

from pathlib import Path

import pytest

from kaudit.explanations import see_also
from kaudit.explanations.pages import listing, pages

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", pages())
def test_the_page_is_as_generated(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run: python -m kaudit.explanations.pages docs"


def test_the_table_of_what_mentions_what_is_as_generated():
    table = Path(see_also.__file__).with_name(see_also.TABLE)
    assert table.read_text(encoding="utf-8") == listing(), "run: python -m kaudit.explanations.pages docs"
