"""docs/log-messages.md is as generated."""

from pathlib import Path

from kaudit.formats.application_log.patterns import page

PAGE = Path(__file__).parents[3] / "docs" / "log-messages.md"


def test_the_page_is_as_generated():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m kaudit.formats.application_log.patterns docs/log-messages.md"
    )
