"""What logs say of findings, whose logs they are, and where refusals stand on timelines."""

import re

import pytest

from kaudit.audits.log_events import application_logs
from kaudit.audits.log_events.application_logs import GivenLogs, read_application_logs
from kaudit.audits.log_events.broker_clocks import BrokerClock
from kaudit.audits.log_events.clock import AnchorSource, ClockOffset
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.audits.log_events.timeline_entries import TimelineEvents
from kaudit.checks.log_evidence import EventsOfLogs
from kaudit.checks.registry import CHECKS
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import LogEventKind
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import ApplicationLog
from tests.audits.log_events.made import event
from tests.conformance.server_logs import recording
from tests.timelines import rows_of, run

GROUPS = AnchorSource.GROUPS
NOON = 1_800_000_000_000


def finding(code="KA104", **fields):
    return Finding(
        code=code,
        name=CHECKS[code].name,
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message="made",
        **{
            "topic": "orders",
            "partition": 0,
            "producer_id": 7,
            "producer_epoch": 0,
            "evidence": StoredEvidence({"previous": {"timestamp": NOON}, "offending": {"timestamp": NOON + 5000}}),
            "explanations": (Explanation("as before"),),
            **fields,
        },
    )


def of_orders(kind, line=1, **fields):
    return event(kind, line, **{"topic": "orders", "partition": 0, "timestamp_ms": NOON, "zone_known": True, **fields})


def explained(one, *events, clocks=()):
    return EventsOfLogs(events, clocks).explained(one)


def test_what_the_logs_show_is_the_first_cause():
    election = of_orders(LogEventKind.UNCLEAN_LEADER_ELECTED, 12)
    found = explained(finding(), election)
    assert [cause.cause[:31] for cause in found.explanations] == ["a leader was elected that lacke", "as before"]
    assert found.explanations[0].speaks_for == ("server.log:12",)
    assert found.evidence["log_events"] == [
        {"path": "b1/server.log", "line": 12, "timestamp": NOON, "event": "unclean_leader_elected", "text": ""}
    ]
    assert found.fingerprint == finding().fingerprint


@pytest.mark.parametrize(
    "other",
    [
        of_orders(LogEventKind.UNCLEAN_LEADER_ELECTED, partition=1),
        of_orders(LogEventKind.UNCLEAN_LEADER_ELECTED, timestamp_ms=NOON - 3_600_000),
        of_orders(LogEventKind.UNCLEAN_LEADER_ELECTED, zone_known=False),
        of_orders(LogEventKind.OUT_OF_ORDER_SEQUENCE, producer_id=8),
        of_orders(LogEventKind.OUT_OF_ORDER_SEQUENCE, producer_id=7, producer_epoch=4),
        of_orders(LogEventKind.SNAPSHOT_WRITTEN),
    ],
    ids=["another partition", "another hour", "an unknown hour", "another producer", "another epoch", "no cause"],
)
def test_other_events_are_no_evidence(other):
    assert explained(finding(), other) == finding()


def test_times_are_compared_by_the_batches_clock():
    offset = ClockOffset(-7_200_000, -7_199_000, -7_200_000, {GROUPS: 5}, {GROUPS: 5}, 120)
    two_hours = BrokerClock("b1", 1, frozenset({"b1/server.log"}), zone_known=False, offsets=[offset])
    election = of_orders(LogEventKind.TRUNCATED, timestamp_ms=NOON + 7_200_000, zone_known=False)
    found = explained(finding(), election, clocks=[two_hours])
    assert found.evidence["log_events_count"] == 1
    assert explained(finding(), election) == finding()


def test_a_transaction_is_found_by_its_id():
    timeout = event(
        LogEventKind.TRANSACTION_TIMEOUT, transactional_id="billing", timestamp_ms=NOON, path="b1/server.log"
    )
    hanging = finding("KA301", producer_id=9, evidence=StoredEvidence({"transactional_id": "billing"}))
    assert explained(hanging, timeout).explanations[0].cause.startswith("the coordinator aborted")
    assert explained(finding("KA301", producer_id=9), timeout) == finding("KA301", producer_id=9)


def test_a_refusal_stands_before_the_batch_that_followed_it():
    first = run(10, 19, min_timestamp=NOON, max_timestamp=NOON)
    later = run(30, 39, first_sequence=10, last_sequence=19, min_timestamp=NOON + 9, max_timestamp=NOON + 9)
    events = [
        of_orders(LogEventKind.OUT_OF_ORDER_SEQUENCE, producer_id=7, producer_epoch=0, base_sequence=5, offset=25),
        of_orders(LogEventKind.DUPLICATE_SEQUENCE, producer_id=7, last_sequence=9),
        of_orders(LogEventKind.PRODUCER_EXPIRED, producer_id=7, timestamp_ms=NOON + 5),
        of_orders(LogEventKind.PRODUCER_EXPIRED, producer_id=7, timestamp_ms=None),
        of_orders(LogEventKind.PRODUCER_EXPIRED, producer_id=8),
        of_orders(LogEventKind.BECAME_LEADER, timestamp_ms=NOON - 1),
    ]
    placed = TimelineEvents(events, "orders", 0, lambda one: one.timestamp_ms, lambda one: one.producer_id)
    found = placed.entries(7, rows_of([first, later]), shared=True)
    assert [(entry.offset, entry.placed_by) for entry in found] == [
        (25, "offset"),
        (20, "sequence"),
        (20, "time"),
        (None, "order"),
        (10, "time"),
    ]
    assert len(placed.entries(7, rows_of([first, later]), shared=False)) == 4


@pytest.mark.parametrize(("version", "name"), [("2.4.1", "histories"), ("2.8.2", "histories"), ("3.5.2", "histories")])
def test_a_real_broker_s_refusals_became_what_the_recorder_was_answered(version, name):
    recorded = recording(version, name)
    server_logs = [path for path in recorded.server_logs if "server.log" in path]
    result = local.scan(ScanOptions(recorded.log_directories, server_logs=server_logs), SilentProgress())
    appended: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for attempt, answer in zip(recorded.lines("attempts"), recorded.lines("answers"), strict=True):
        if attempt["op"] == "produce" and answer.get("outcome") in ("appended", "no-response"):
            key = attempt["topic"], attempt["partition"], attempt["producer_id"]
            last = attempt["base_sequence"] + attempt["record_count"] - 1
            appended.setdefault(key, []).append((attempt["producer_epoch"], last))
    summary = result.log_events
    assert summary is not None
    judged = 0
    for one in summary.refused:
        state = max(appended.get((one.topic, one.partition, one.producer_id), []), default=(-1, -1))
        if one.outcome == "never-landed" and one.producer_epoch is not None:
            assert (one.producer_epoch, one.last_sequence) > state, one
            judged += 1
        elif one.outcome == "landed":
            assert state[1] >= (one.last_sequence or 0), one
            judged += 1
        elif one.outcome == "superseded":
            assert state[0] > (one.producer_epoch or 0), one
            judged += 1
    assert judged or version == "2.4.1"
    assert [clock.zone_minutes for clock in summary.clocks] == [zone(recorded)]


def zone(recorded):
    """Minutes east of UTC of the broker's local time: its first refusal's line against when the recorder sent the batch."""
    from tests.conformance.server_logs import Read

    read = Read(recorded)
    number, line = next(iter(sorted(read.matched.items())))
    assert line.timestamp_ms is not None
    return round((line.timestamp_ms - read.refused[number].at) / 60_000 / 15) * 15


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        (LogCounts(lines=9, entries=8, other_entries=4), False),
        (LogCounts(lines=9, entries=7, other_entries=4), True),
        (LogCounts(lines=9, entries=7, other_entries=3), False),
        (LogCounts(lines=9, entries=7, other_entries=7, events=1), False),  # Kafka's words are in it
        (LogCounts(lines=9), True),
        (LogCounts(), False),
    ],
    ids=str,
)
def test_a_log_is_taken_unless_most_entries_name_another_program(tmp_path, monkeypatch, counts, refused):
    def read(path, origin, into, name, partitions):
        for name in LogCounts.__struct_fields__:
            setattr(into, name, getattr(counts, name))
        return iter([of_orders(LogEventKind.DUPLICATE_SEQUENCE)] * counts.events)

    monkeypatch.setattr(application_logs, "log_events", read)
    path = tmp_path / "server.log"
    path.touch()
    logs = read_application_logs(GivenLogs([ApplicationLog(str(path), str(path), ("server",), claimed=True)]))
    assert [file.lines for file in logs.files] == ([] if refused else [counts.lines])
    for skipped in logs.skipped:
        assert re.search(
            r"the log of another program, not of a broker|of which none of 9 lines is of a log that kaudit knows",
            skipped.reason,
        )
        assert skipped.unreadable
    assert len(logs.skipped) == refused


def test_what_names_a_transactional_id_alone_stands_on_its_producer_s_timeline():
    first = run(10, 19, (10, "open"), min_timestamp=NOON, max_timestamp=NOON)
    events = [
        event(LogEventKind.TRANSACTION_TIMEOUT, 1, transactional_id="app", timestamp_ms=NOON + 5),
        event(LogEventKind.TRANSACTION_TIMEOUT, 2, transactional_id="other", timestamp_ms=NOON + 5),
        event(
            LogEventKind.PRODUCER_ID_ASSIGNED,
            3,
            topic="__transaction_state",
            partition=2,
            producer_id=7,
            timestamp_ms=NOON - 5,
        ),
    ]

    def lines(names):
        placed = TimelineEvents(events, "orders", 0, lambda one: one.timestamp_ms, names.producer_id)
        return [(entry.line, entry.offset) for entry in placed.entries(7, rows_of([first]), shared=True)]

    assert lines(ProducerNames(events, {7: "app"})) == [(1, 20), (3, 10)]  # as __transaction_state names it
    assert lines(ProducerNames(events)) == [(3, 10)]
    stated = event(LogEventKind.PRODUCER_ID_ASSIGNED, 4, transactional_id="app", producer_id=7)
    assert lines(ProducerNames([*events, stated])) == [(1, 20), (3, 10)]
