"""Logs as people hold them: their events are those of the log itself, or the lines that are lost are counted."""

import random

import pytest

from kaudit.formats.application_log import pieces
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from tests.formats.text_forms import (
    ENCODINGS,
    JSON_SHAPES,
    PREFIXES,
    PRINTED,
    SURROUNDINGS,
    cut,
    each_line,
    in_json,
    mailed,
    prefixed,
    printed,
    wrapped,
    wrapped_without_trailing_blanks,
)

LINES = [
    "[2024-06-25 13:14:{0:02},891] INFO [ProducerStateManager partition=t-441] Loading producer state from snapshot file (kafka.log.ProducerStateManager)",
    "[2024-06-25 13:14:{0:02},892] ERROR [ReplicaManager broker=2] Error processing append operation on partition t-441 (kafka.server.ReplicaManager)",
    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 2900{0} at offset 1641969 in partition t-441: 158 (incoming seq. number), 155 (current end sequence number)",
    "\tat kafka.log.ProducerAppendInfo.checkSequence(ProducerStateManager.scala:236)",
    "[2024-06-25 13:14:{0:02},893] WARN [Partition t-441 broker=2] Shrinking ISR from 2,{0},4 to 2. Leader: (highWatermark: 1641969, endOffset: 1641970). (kafka.cluster.Partition)",
]
LOG = "".join(line.format(number) + "\n" for number in range(3, 8) for line in LINES).encode()
WRAPS = {"wrapped": wrapped(100), "without blanks": wrapped_without_trailing_blanks(80), "mailed": mailed(76)}
COLLECTED = {name: prefixed(name) for name in PREFIXES}
PASTED = {
    name: prefixed(name) for name in ("quoted", "quoted twice", "cat -n", "indented by four", "editor", "grep -n")
}
IN_JSON = {name: in_json(name) for name in JSON_SHAPES}
ONE = {**WRAPS, **SURROUNDINGS, **COLLECTED, **IN_JSON, **ENCODINGS}
PAIRS = [
    *((first, then) for first in WRAPS for then in (*SURROUNDINGS, *PASTED, *ENCODINGS)),
    *((first, then) for first in SURROUNDINGS for then in (*COLLECTED, *IN_JSON, *ENCODINGS)),
    *((first, then) for first in COLLECTED for then in (*PASTED, *ENCODINGS)),
    *((first, then) for first in IN_JSON for then in (*PASTED, *ENCODINGS)),
]
"""What happens to a log, in the order in which it happens: a paste is wrapped, then quoted; a collector wraps whole lines."""
FACTS = ("event", "topic", "partition", "producer_id", "base_sequence", "last_sequence", "offset", "error", "isr")


def read(data, **more):
    counts = LogCounts()
    events = list(read_events([data], "server", path="server.log", counts=counts, **more))
    return [tuple(getattr(event, name) for name in FACTS) for event in events], counts


WHOLE, _ = read(LOG)


def test_the_log_itself():
    assert [event[:4] for event in WHOLE[:2]] == [
        ("out_of_order_sequence", "t", 441, 29003),
        ("isr_shrunk", "t", 441, None),
    ]
    assert len(WHOLE) == 10


@pytest.mark.parametrize("name", ONE)
def test_a_log_in_any_form_has_the_events_of_the_log(name):
    events, counts = read(ONE[name](LOG))
    assert events == WHOLE
    assert counts.unknown_facts == 0


@pytest.mark.parametrize(("first", "then"), random.Random(1).sample(PAIRS, 120))
def test_a_log_in_two_forms_has_the_events_of_the_log(first, then):
    events, counts = read(ONE[then](ONE[first](LOG)))
    assert (events, counts.unknown_facts) == (WHOLE, 0)


WIDTHS = (60, 72, 76, 80, 100, 120, 160, 200)
WRAPPERS = {
    f"{name} {columns}": form(columns)
    for name, form in (("wrapped", wrapped), ("without blanks", wrapped_without_trailing_blanks), ("mailed", mailed))
    for columns in WIDTHS
}
CLIENT_LINES = [
    "2024-06-25 13:14:{0:02}.891  WARN 1 --- [ad | producer-1] o.a.k.clients.producer.internals.Sender   : [Producer clientId=producer-1] Got error produce response with correlation id 2{0} on topic-partition orders-3, retrying (2147483646 attempts left). Error: OUT_OF_ORDER_SEQUENCE_NUMBER",
    "2024-06-25 13:14:{0:02}.893 ERROR 1 --- [ad | producer-1] o.a.k.c.p.internals.TransactionManager   : [Producer clientId=producer-1] The broker returned org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out of order sequence number. for topic-partition orders-3 with producerId 400{0}, epoch 0, and sequence number 17",
    "2024-06-25 13:14:{0:02}.895  INFO 1 --- [main] com.example.Shop : order {0} is paid by a customer with a rather long name and an address that does not end here but goes on",
]
CLIENT_LOG = "".join(line.format(number) + "\n" for number in range(3, 8) for line in CLIENT_LINES).encode()
REFUSALS = ("out_of_order_sequence",)


def read_client(data):
    counts = LogCounts()
    events = list(read_events([data], "client", path="app.log", counts=counts))
    return [tuple(getattr(event, name) for name in FACTS) for event in events], counts


BOTH = {"broker": (LOG, read, WHOLE), "client": (CLIENT_LOG, read_client, read_client(CLIENT_LOG)[0])}


@pytest.mark.parametrize("whose", BOTH)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_log_that_was_wrapped_before_a_collector_took_it_loses_no_refusal(wrapper, whose):
    log, reading, whole = BOTH[whose]
    for name, collected in {"plain": bytes, **COLLECTED, **IN_JSON}.items():
        events, counts = reading(collected(WRAPPERS[wrapper](log)))
        if whose == "broker":
            assert (events, counts.unknown_facts) == (whole, 0), name
        else:
            assert counts.unknown_facts or events == whole, name


@pytest.mark.parametrize("whose", BOTH)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_collected_log_that_was_wrapped_gives_its_refusals_or_counts_what_is_lost(wrapper, whose):
    log, reading, whole = BOTH[whose]
    refused = {event for event in whole if event[0] in REFUSALS}
    differ = set()
    for name, collected in {**COLLECTED, **IN_JSON}.items():
        events, counts = reading(WRAPPERS[wrapper](collected(log)))
        assert counts.unknown_facts or refused <= set(events), name
        if (events, counts.unknown_facts) != (whole, 0):
            differ.add(name)
        assert name not in IN_JSON or (refused <= set(events) and not counts.unknown_facts), name
    # a host's name and a time before each line leave few words of it in 60 columns
    assert len(differ) <= 3, differ


@pytest.mark.parametrize("wrapper", ["wrapped 80", "without blanks 120", "mailed 76"])
def test_a_wrapped_object_that_is_cut_off_is_counted(wrapper):
    rows = WRAPPERS[wrapper](in_json("loki")(LOG)).splitlines(keepends=True)
    for lost in (1, 2):
        events, counts = read(b"".join(rows[:-lost]) + b"and so on\n")
        assert events[: len(WHOLE) - 1] == WHOLE[:-1]
        assert counts.lines == len(rows) - lost + 1
    # the row that goes on is gone: no object of what is left, and no other is taken for it
    middle = next(at for at, row in enumerate(rows) if b"incoming seq" in row)
    events, counts = read(b"".join(rows[: middle + 1] + rows[middle + 2 :]))
    assert counts.unknown_facts
    assert events[-8:] == WHOLE[-8:]


@pytest.mark.parametrize("columns", range(60, 220, 10))
@pytest.mark.parametrize("mark", ["", "..."])
def test_a_cut_log_has_its_events_or_counts_the_lines_whose_facts_are_lost(columns, mark):
    events, counts = read(cut(columns, mark)(LOG))
    refused = [event for event in events if event[0] == "out_of_order_sequence" and event[3] is not None]
    if len(refused) < 5:
        assert counts.unknown_facts >= 5 - len(refused)
        assert len(counts.examples) == 3
    else:
        assert refused == [event for event in WHOLE if event[0] == "out_of_order_sequence"]


JOINED = LOG.replace(b"\norg.apache", b" org.apache").replace(b"\n\tat ", b" at ")
JOINTS = {
    "a blank": b" ",
    "an escaped line feed": b"\\n",
    "rsyslog's": b"#012",
    "an escaped CRLF": b"\\r\\n",
}


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("without", ["", "time", "time and level"])
@pytest.mark.parametrize("shape", ["", *JSON_SHAPES])
def test_an_exception_joined_to_its_message_says_what_it_says_below_it(name, without, shape):
    joint = JOINTS[name]
    data = LOG.replace(b"\norg.apache", joint + b"org.apache").replace(
        b"\n\tat ", joint + (b"\\t" if b"\\" in joint else b"") + b"at "
    )
    if without:
        data = each_line(lambda _, line: line.split("] ", 1)[1] if without == "time" else line.split(" ", 3)[3])(data)
    events, _ = read(in_json(shape)(data) if shape else data)
    assert [event for event in events if event[0] == "out_of_order_sequence"] == [
        event for event in WHOLE if event[0] == "out_of_order_sequence"
    ]


def test_every_line_is_read_or_not_kafkas_or_not_understood():
    other = b"2024-06-25 13:14:17.891 INFO 1 --- [main] com.example.Shop : order 7 is paid\n    and shipped\n"
    strange = b"what is this\nproducer id 4 was lost\norders-3 has gone\n"
    _, counts = read(LOG + other + strange)
    assert (counts.lines, counts.other_lines, counts.unknown_lines, counts.unknown_facts) == (30, 2, 3, 1)
    assert counts.examples == ["line 29: producer id 4 was lost"]
    _, counts = read(LOG + other + strange, partitions={b"orders-3"})
    assert counts.unknown_facts == 2


def test_lines_of_one_length_are_not_cut():
    """Lines that say the same are as long as one another, and nothing is cut off."""
    data = "".join(LINES[0].format(number) + "\n" for number in range(3, 9)).encode()
    assert read(data)[1].unknown_facts == 0


@pytest.mark.parametrize("printer", PRINTED)
def test_objects_over_several_lines_are_the_lines_in_them(monkeypatch, printer):
    for shape in JSON_SHAPES:
        text = printed(printer, shape)(LOG)
        events, counts = read(text)
        assert events == WHOLE, shape
        assert (counts.lines, counts.unknown_facts) == (len(text.splitlines()), 0)
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 900)
    assert read(printed(printer, "cloudwatch")(LOG))[0] == WHOLE


@pytest.mark.parametrize("lines", [3, 5, 9])
def test_an_object_that_a_paste_cuts_off(lines):
    whole = printed("jq", "elastic")(LOG.splitlines(keepends=True)[0] + LOG)
    text = b"\n".join(whole.split(b"\n")[:-lines])
    events, counts = read(text)
    assert events == WHOLE[: len(events)]
    assert len(events) >= len(WHOLE) - 1
    assert counts.lines == len(text.splitlines())
