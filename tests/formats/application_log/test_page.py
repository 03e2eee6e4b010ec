"""The messages that docs/log-messages.md lists are as generated."""

from pathlib import Path

from tests.client_logs.page import with_tables

PAGE = Path(__file__).parents[3] / "docs" / "log-messages.md"


def test_the_tables_are_as_generated():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page), "run: python -m tests.client_logs.page docs/log-messages.md"
