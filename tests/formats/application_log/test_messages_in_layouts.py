"""Every message of brokers and clients gives the same event in every layout of its program."""

import pytest

from kaudit.formats.application_log.patterns import Pattern
from tests.client_logs.layouts import LAYOUTS, same_event
from tests.client_logs.page import patterns

CASES = [(pattern, layout) for pattern in patterns() for layout in LAYOUTS[pattern.program]]
WITH_ITS_LOGGER = {"starting-zk"}
"""Messages of so few words that the logger in Kafka's own layout is one of them."""


@pytest.mark.parametrize(
    ("pattern", "layout"), CASES, ids=[f"{pattern.program}:{pattern.id}-{layout}" for pattern, layout in CASES]
)
def test_a_message_is_the_same_event_in_every_layout(pattern: Pattern, layout: str) -> None:
    assert same_event(pattern, layout) == (pattern.id not in WITH_ITS_LOGGER or layout == "log4j-pattern")
