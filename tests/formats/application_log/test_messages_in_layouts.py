"""Every message of brokers and clients gives the same event in every layout of its program."""

import pytest

from tests.client_logs.layouts import LAYOUTS, other_events

WITH_ITS_LOGGER = {"server": {"starting-zk"}}
"""Messages of so few words that the logger in Kafka's own layout is one of them, by program."""


@pytest.mark.parametrize("program", LAYOUTS)
def test_a_message_is_the_same_event_in_every_layout(program: str) -> None:
    others = set(LAYOUTS[program]) - {"log4j-pattern"}
    assert other_events(program) == dict.fromkeys(WITH_ITS_LOGGER.get(program, ()), others)
