"""The sequence diagram of a terminal, drawn by hand."""

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.report.console import Console
from kaudit.report.sequence.run_text import terminal_diagram
from kaudit.simulate.trace import BrokerAnswer, EventKind, TraceEvent

LANES = ["producer", "broker 1", "broker 2"]
PLAIN = Console(width=74, draws=False)
"""Three lanes of 13 columns, beside 9 for times and 26 for text."""


def event(kind, source, target, text, *, at=5, **more):
    return TraceEvent(kind, at - 1, at, source, target, text, **more)


def drawn(*rows, lanes=LANES, omitted=0, console=PLAIN):
    return list(terminal_diagram(rows, lanes, omitted, console))


def test_every_kind_of_row():
    rows = [
        event(EventKind.REQUEST, "producer", "broker 1", "sends 0", at=0),
        event(EventKind.RESPONSE, "broker 1", "producer", "appended", at=1234567),
        event(EventKind.REQUEST, "producer", "broker 2", "sends 1"),
        event(EventKind.RESPONSE, "broker 2", "producer", "stored"),
        event(EventKind.REPLICATION, "broker 1", "broker 2", "fetches"),
        event(EventKind.LOST, "broker 1", "producer", "answer"),
        event(EventKind.LOST, "producer", "broker 1", "request lost"),
        event(EventKind.NOTE, "broker 1", "broker 1", "elected"),
        event(EventKind.FAULT, "controller", "producer", "stops"),
    ]
    lanes = [*LANES, "controller"]
    assert drawn(*rows, lanes=lanes, console=Console(width=87, draws=False)) == [
        "     ms  producer     broker 1     broker 2     controller",
        "      0  |----------->|            |            |            sends 0",
        "1234567  |<-----------|            |            |            appended",
        "      5  |------------------------>|            |            sends 1",
        "      5  |<------------------------|            |            stored",
        "      5  |            |...........>|            |            fetches",
        "      5  |.....x......|            |            |            lost: answer",
        "      5  |.....x......|            |            |            request lost",
        "      5  |            *            |            |            broker 1: elected",
        "      5  |<-------------------------------------|            stops",
    ]


def test_drawn_with_lines():
    console = Console(width=74)
    rows = [
        event(EventKind.REQUEST, "producer", "broker 1", "a"),
        event(EventKind.RESPONSE, "broker 1", "producer", "b"),
        event(EventKind.REPLICATION, "broker 1", "broker 2", "c"),
        event(EventKind.LOST, "broker 1", "broker 2", "lost"),
        event(EventKind.NOTE, "broker 2", "broker 2", "d"),
    ]
    assert drawn(*rows, console=console)[1:] == [
        "      5  │───────────►│            │            a",
        "      5  │◄───────────│            │            b",
        "      5  │            │╌╌╌╌╌╌╌╌╌╌╌►│            c",
        "      5  │            │╌╌╌╌╌✗╌╌╌╌╌╌│            lost",
        "      5  │            │            ●            broker 2: d",
    ]


@pytest.mark.parametrize(("width", "lane"), [(None, 13), (200, 13), (74, 13), (73, 12), (50, 5), (47, 4), (40, 4)])
def test_lanes_have_the_width_there_is(width, lane):
    row = event(EventKind.REQUEST, "a", "b", "text")
    shown = drawn(row, lanes=["a", "b", "c"], console=Console(width=width, draws=False))
    assert shown == [
        f"     ms  {'a':{lane}}{'b':{lane}}c",
        f"      5  |{'-' * (lane - 2)}>{'|':{lane}}{'|':{lane}}text",
    ]


def test_without_a_width_there_are_100_columns():
    row = event(EventKind.NOTE, "a", "a", "x" * 40 + " " + "y" * 40)
    # 100 - 9 - 13 leave 78 for the text
    assert drawn(row, lanes=["a"], console=Console(draws=False))[1:] == [
        "      5  *            a: " + "x" * 40,
        "         |            " + "y" * 40,
    ]
    fits = event(EventKind.NOTE, "a", "a", "x" * 40 + " " + "y" * 34)
    assert len(drawn(fits, lanes=["a"], console=Console(draws=False))) == 2
    one_more = event(EventKind.NOTE, "a", "a", "x" * 40 + " " + "y" * 35)
    assert len(drawn(one_more, lanes=["a"], console=Console(draws=False))) == 3


def test_long_names_stand_on_several_lines():
    assert drawn(lanes=["my producer of orders", "b"], console=PLAIN) == [
        "     ms  my producer  b",
        "         of orders",
    ]
    assert drawn(lanes=["b", "twelve chars"]) == ["     ms  b            twelve chars"]
    assert drawn(lanes=["b", "x" * 13]) == ["     ms  b            " + "x" * 12, "                      x"]
    assert drawn(lanes=[]) == []


def test_narrow_text_has_26_columns():
    row = event(EventKind.NOTE, "a", "a", "x" * 23 + " " + "y" * 26)
    shown = drawn(row, lanes=["a", "b", "c"], console=Console(width=40, draws=False))
    assert shown[1:] == ["      5  *   |   |   a: " + "x" * 23, "         |   |   |   " + "y" * 26]


def test_rows_left_out_are_counted():
    assert drawn(omitted=0) == ["     ms  producer     broker 1     broker 2"]
    assert drawn(omitted=1234)[1:] == ["         1,234 more messages are not shown (--rows)"]


def test_an_error_says_why():
    refused = (
        BrokerAnswer("orders-0", None, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "expected 5, got 7"),
        BrokerAnswer("orders-1", None, KafkaError.NONE, "not said"),
        BrokerAnswer("orders-2", None, KafkaError.UNKNOWN_PRODUCER_ID, "forgotten"),
    )
    response = event(EventKind.RESPONSE, "broker 1", "producer", "error", is_error=True, answers=refused)
    wide = Console(width=200, draws=False)
    assert drawn(response, console=wide)[1].endswith("   error: expected 5, got 7; forgotten")
    request = event(EventKind.REQUEST, "broker 1", "producer", "sends", answers=refused)
    assert drawn(request, console=wide)[1].endswith("   sends")
    lost = event(EventKind.LOST, "broker 1", "producer", "error", is_error=True, answers=refused)
    assert drawn(lost, console=wide)[1].endswith("   lost: error: expected 5, got 7; forgotten")


@pytest.mark.parametrize(("kind", "is_error", "code"), [
    (EventKind.REQUEST, False, None), (EventKind.RESPONSE, True, "1;31"), (EventKind.LOST, False, "1;31"),
    (EventKind.FAULT, False, "1;33"), (EventKind.FAULT, True, "1;31"), (EventKind.NOTE, False, "1;36"),
    (EventKind.REPLICATION, False, "2"),
])  # fmt: skip
def test_colours(kind, is_error, code):
    (row,) = drawn(
        event(kind, "controller", "broker 1", "lost", is_error=is_error),
        lanes=["controller", "broker 1"],
        console=Console(color=True, width=74, draws=False),
    )[1:]
    assert row.endswith("|            lost" if code is None else f"|            \x1b[{code}mlost\x1b[0m")


def test_hostile_text_is_made_visible():
    row = event(EventKind.REQUEST, "a\x1b", "a\x1b", "b\x1b")
    assert not any("\x1b" in line for line in drawn(row, lanes=["a\x1b"]))
    assert drawn(event(EventKind.REQUEST, "a", "a", ""), lanes=["a"])[1:] == ["      5  *"]
