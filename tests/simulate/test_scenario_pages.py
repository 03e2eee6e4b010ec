"""docs/scenarios says what `kaudit simulate` prints now."""

from tests.scenario_pages import PAGES, pages


def test_every_page_still_comes_out():
    current = dict(pages())
    stale = [
        str(path) for path, text in current.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `python -m tests.scenario_pages`, then read the diff"
    assert set(PAGES.glob("*.md")) == set(current)
