"""Which number an attempt of a file gets."""

import json

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.replay.session import Session, parse_attempt


def line(**fields):
    known = {"op": "produce", "topic": "t", "partition": 0, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    return json.dumps({**known, "record_count": 1, "api_version": 8, **fields}).encode() + b"\n"


def test_attempts_are_numbered_from_0_whatever_blank_lines_lie_between():
    lines = [b"\n", line(), b"  \n", line(), line(index=9), b"", line()]
    assert [attempt.index for attempt, _ in Session(lines, Broker(profile_for("3.9.1"))).answered()] == [0, 1, 9, 3]


def test_an_attempt_with_a_number_keeps_it():
    read = [parse_attempt(line(index=index), 7) for index in (0, 1, 8)]
    assert [attempt and attempt.index for attempt in read] == [0, 1, 8]
    unnumbered = parse_attempt(line(), 7)
    assert unnumbered is not None
    assert unnumbered.index == 7
