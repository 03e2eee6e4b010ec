"""Logs of any content, size and shape: nothing is raised, memory stays bounded, and no line takes long."""

import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.formats.application_log.patterns import PROGRAMS, pattern_set, read_patterns
from kaudit.formats.application_log.pieces import MAX_LINE_BYTES, LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import MAX_TEXT, Origin

EXAMPLES = [pattern.example for programs in PROGRAMS.values() for each in programs for pattern in read_patterns(each)]
LINE = "[2026-11-22 10:15:30,123] INFO [LogCleaner]: nothing to clean (kafka.log.LogCleaner)\n"
FRAGMENTS = [
    *EXAMPLES[::7], LINE, "\n", "\r\n", "\0", "\x1b[31m", "{", "}", '{"message":', '{"log":"', '\\u0000"}', "__CURSOR=", "MESSAGE\n",
    "__REALTIME_TIMESTAMP=", "\tat x", "Caused by: ", "2026-11-22T10:15:30Z ", "<14>1 ", "Nov 22 10:15:30 h k[1]: ", "9" * 30, "é", "-",
]  # fmt: skip


def check(data: bytes, origin: Origin) -> None:
    counts = LogCounts()
    events = list(read_events([data], origin, path="log", counts=counts))
    lines = [event.line for event in events]
    assert lines == sorted(lines)
    assert len(events) == counts.events
    assert all(1 <= line <= counts.lines for line in lines)
    assert all(len(event.text) <= MAX_TEXT for event in events)
    assert 0 <= counts.unknown_lines <= counts.lines
    small = LogCounts()
    assert (
        list(read_events([data[at : at + 3] for at in range(0, len(data), 3)], origin, path="log", counts=small))
        == events
    )
    assert small == counts


@given(st.binary(max_size=600), st.sampled_from(["server", "client"]))
@settings(max_examples=150, deadline=None)
def test_bytes_at_random(data: bytes, origin: Origin) -> None:
    check(data, origin)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.sampled_from(["server", "client"]))
@settings(max_examples=150, deadline=None)
def test_pieces_of_logs_at_random(fragments: list[str], origin: Origin) -> None:
    check("".join(fragments).encode(), origin)


def _endless(piece: bytes, mebibytes: int) -> Iterator[bytes]:
    block = piece * (1 + (1 << 20) // len(piece))
    for _ in range(mebibytes):
        yield block


@pytest.mark.parametrize(
    "piece",
    [
        b"a",
        b"\0",
        b"\tat " + b"x" * 400 + b"\n",
        LINE.encode(),
        b"a line of an unknown layout " * 12 + b"\n",
    ],
    ids=["one line", "NULs", "one stack trace", "entries", "unknown lines"],
)
def test_memory_is_bounded(piece: bytes) -> None:
    def peak(mebibytes: int) -> int:
        tracemalloc.start()
        try:
            for _ in read_events(_endless(piece, mebibytes), "server", path="log"):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4) < 1.25 * peak(2) + (1 << 20)


def test_a_line_of_many_megabytes_is_cut_and_the_next_is_read() -> None:
    counts = LogCounts()
    log = [b"x" * (MAX_LINE_BYTES // 2)] * 9 + [b"\n", EXAMPLES[0].encode()]
    (event,) = read_events(log, "server", path="log", counts=counts)
    assert (counts.long_lines, counts.lines, event.line) == (1, 2, 2)


SECONDS_FOR_ALL = 10.0
"""All patterns against lines made to mislead them; a quadratic one takes minutes."""


@pytest.mark.parametrize("origin", PROGRAMS)
def test_no_line_takes_long(origin: Origin) -> None:
    patterns = [pattern for program in PROGRAMS[origin] for pattern in read_patterns(program)]
    every = range(len(pattern_set(origin).triggers))
    began = time.process_time()
    for pattern in patterns:
        beginning = pattern.text.partition("{")[0] or "t"
        for filler in (beginning, beginning + "1", "1" * 50, "a-1", "a.-", " " + "a" * 249, "'", pattern.longest):
            line = (beginning + filler * (4096 // len(filler)))[:4000] + pattern.longest
            pattern_set(origin).match(line, every)
    assert time.process_time() - began < SECONDS_FOR_ALL
