"""The recorder's kinds of events, and the table of what was answered to them."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.broker.partition.record_set import split
from kaudit.broker.releases.version import Version
from tests.conformance import agreement
from tests.conformance.recorder.__main__ import older_levels
from tests.conformance.recorder.batches import messages
from tests.conformance.recorder.events import (
    FIRST_TO_LAST_PRODUCE,
    FORMATS,
    KINDS,
    LEVELS,
    ODD_ACKS,
    events,
    kind_of,
    levels,
)
from tests.conformance.recorder.recording import Recording
from tests.conformance.recorder.script import Recorder
from tests.conformance.recorder.topic import Topic
from tests.live_brokers.jvm import FEATURES
from tests.live_brokers.protocol import (
    Connection,
    ConnectionClosedError,
    Reader,
    produce_body,
    read_produced,
)

NOBODY = Connection(0)


def produce(sequence):
    return {
        "topic": "t", "partition": 0, "op": "produce", "at": 1_000, "producer_id": 5, "producer_epoch": 0,
        "base_sequence": sequence, "record_count": 1, "timestamp": 1_000,
    }  # fmt: skip


def appended(offset):
    return {"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": offset}


def test_a_seed_gives_the_same_events_every_time():
    assert events(7, 6) == events(7, 6)
    assert events(7, 6) != events(8, 6)
    assert levels(7, 6, "tv0") == levels(7, 6, "tv0")


def test_as_many_events_of_each_kind_as_asked_for_each_under_a_name_of_its_own():
    names = [scenario["name"] for scenario in [*events(3, 9), *levels(3, 9, "ibp"), *levels(3, 9, "mv")]]
    assert len(set(names)) == len(names) == 9 * (len(KINDS) + 2)
    assert Counter(map(kind_of, names)) == {**dict.fromkeys(KINDS, 9), LEVELS: 18}
    assert kind_of("h7-1") is None


def test_each_kind_sees_its_events_in_a_hundred_histories():
    """What the histories without a kind never do."""
    by_kind: dict[str, list[Any]] = {}
    for scenario in events(1, 100):
        by_kind.setdefault(str(kind_of(scenario["name"])), []).extend([*scenario["steps"], scenario["topic_config"]])
    sent = {kind: [step for step in steps if step.get("op") == "produce"] for kind, steps in by_kind.items()}
    under = {(step["pid"], step["txn_id"][-1]) for step in sent["rivals"] if step.get("txn_id")}
    assert {("A", "A"), ("A2", "A"), ("B2", "B"), ("A", "B"), ("A2", "Z")} <= under
    assert {len(step["also"]) for step in sent["partitions"] if "also" in step} == {1, 2}
    assert set(ODD_ACKS) <= {step.get("acks") for step in sent["requests"]}
    assert {step["version"] for step in sent["requests"] if "exact" in step} == set(FIRST_TO_LAST_PRODUCE)
    assert {"min.insync.replicas": "2"} in by_kind["requests"]
    old = [step for step in by_kind["formats"] if step.get("op") == "produce_raw"]
    assert {(step["magic"], step["codec"], None in step["keys"]) for step in old} == {
        (magic, codec, null) for magic in (0, 1) for codec in (0, 1) for null in (True, False)
    }
    assert all({"message.format.version": each} in by_kind["formats"] for each in FORMATS)
    assert sum(step.get("op") == "recreate" for step in by_kind["recreated"]) > 100
    assert sum(step.get("op") == "barrier" for step in by_kind["restarts"]) >= 300


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compressed", [False, True])
def test_messages_of_old_formats_are_what_their_releases_wrote(magic, compressed):
    data = messages(magic, ["k", None, "k"], 5_000, compressed=compressed)
    read = split(data)
    assert read.corrupt is None
    assert [batch.magic for batch in read.batches] == [magic] * (1 if compressed else 3)


@pytest.mark.parametrize(("version", "stamped"), [(0, False), (1, False), (2, True), (3, True)])
def test_old_produce_requests_have_no_transactional_id_and_old_answers_no_time(version, stamped):
    body = produce_body(version, None, -1, "t", {0: b"records"})
    assert body.startswith((b"\xff\xff" if version >= 3 else b"") + b"\xff\xff")
    answer = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\0\0" + bytes(7) + b"\7" + (bytes(8) if stamped else b"")
    reader = Reader(answer)
    assert read_produced(version, reader) == {0: (0, 7)}
    assert reader.position == len(answer)


class HangsUp:
    """A connection whose broker knows no such version."""

    def __getattr__(self, _):
        def ask(*_, **__):
            raise ConnectionClosedError

        return ask


@pytest.mark.parametrize("op", ["init_pid", "add_partitions", "end_txn"])
def test_a_coordinator_that_hangs_up_is_an_answer(op, monkeypatch):
    nobody: Any = SimpleNamespace(port=0)
    recorder = Recorder(nobody)
    monkeypatch.setattr(recorder, "_versions", {22: (0, 4), 24: (0, 3), 26: (0, 3)})
    coordinator: Any = HangsUp()
    topic = Topic({"name": "t", "steps": []}, NOBODY, coordinator)
    topic.name_producer("A", (7, 3))
    step = {
        "op": op,
        "as": "A",
        "txn_id": "tx-t-A",
        "pid": "A",
        "epoch": "A",
        "commit": True,
        "version": 99,
        "exact": True,
    }
    recorder.steps[op](topic, step)
    ((attempt, answer),) = topic.lines
    assert attempt["api_version"] == 99
    assert answer == {"outcome": "connection-closed"}


@pytest.mark.parametrize(
    ("release", "levels_below"),
    [
        ("0.11.0.3", {}),
        ("2.8.2", {"ibp": {"inter.broker.protocol.version": "0.11.0"}}),
        ("3.9.2", {"mv": {"metadata.version": "3.3"}}),
        ("4.4.0", {"tv0": {"transaction.version": "0"}, "tv1": {"transaction.version": "1"}}),
    ],
)
def test_brokers_of_older_feature_levels_are_played_where_a_release_has_them(release, levels_below):
    assert older_levels(Version.parse(release)) == levels_below
    assert {name for level in levels_below.values() for name in level} <= {*FEATURES, "inter.broker.protocol.version"}


def test_what_was_answered_otherwise_and_agrees_by_now_is_taken_over(tmp_path, monkeypatch):
    broker = {"broker_version": "3.6.2", "config": {}}
    mended, wrong = ({**produce(0), "topic": name} for name in ("rivals-1-1", "rivals-1-2"))
    recording = Recording(broker, [(mended, appended(0)), (wrong, appended(9))])
    recording.without([wrong["topic"], mended["topic"]]).write(tmp_path / "3.6.2", "events")
    recording.write(tmp_path / "3.6.2", "events-differing")
    monkeypatch.setattr(agreement, "FOLDERS", (tmp_path,))
    agreement.take_over_what_agrees()
    held = {each.name: [attempt.get("topic") for attempt in each.attempts()] for each in agreement.recordings()}
    assert held == {"events": [None, "rivals-1-1"], "events-differing": [None, "rivals-1-2"]}
    *table, empty, difference = agreement.events_table()
    assert table[-1] == "| all | 1 of 2 | 1 of 2 |"
    assert empty == ""
    assert difference == "- produce: `base_offset` 9, kaudit 0: 3.6.2 rivals-1-2 (1)."
