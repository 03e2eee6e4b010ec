"""What logs say of findings, whose logs they are, and where refusals stand on timelines."""

import re

import pytest
from msgspec.structs import replace

from kaudit.audits.log_events import application_logs
from kaudit.audits.log_events.application_logs import GivenLogs, read_application_logs
from kaudit.audits.log_events.broker_clocks import BrokerClock
from kaudit.audits.log_events.clock import AnchorSource, ClockOffset
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.audits.log_events.timeline_entries import TimelineEvents
from kaudit.checks.log_evidence import EventsOfLogs, fenced_instances, given_up_sends
from kaudit.checks.registry import CHECKS
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import LogEventKind
from kaudit.model.evidence import FindingEvidence, StoredEvidence
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.finding import Explanation, Finding
from kaudit.model.producer_patterns import GivenUpSends
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


KIND = LogEventKind
MINUTE = 60_000


def shown(one, *events, clocks=()):
    """The number of events in evidence, of a finding that has none."""
    return explained(one, *events, clocks=clocks).evidence.to_dict().get("log_events_count", 0)


def times(**fields):
    return StoredEvidence(
        {name: {"timestamp": time} if isinstance(time, int) else time for name, time in fields.items()}
    )


@pytest.mark.parametrize(
    ("at", "seen"),
    [
        (NOON - 10 * MINUTE - 1, 0),
        (NOON - 10 * MINUTE, 1),
        (NOON + 5000 + 10 * MINUTE, 1),
        (NOON + 5001 + 10 * MINUTE, 0),
        (None, 0),
    ],
)
def test_an_election_within_ten_minutes_is_evidence(at, seen):
    assert shown(finding(), of_orders(KIND.UNCLEAN_LEADER_ELECTED, timestamp_ms=at)) == seen


@pytest.mark.parametrize(("at", "seen"), [(NOON - 2 * MINUTE - 1, 0), (NOON - 2 * MINUTE, 1), (NOON, 1), (NOON + 1, 0)])
def test_an_error_that_made_a_batch_late_came_two_minutes_before_it_at_most(at, seen):
    error = of_orders(KIND.REQUEST_ERROR, timestamp_ms=at, error="NOT_LEADER_OR_FOLLOWER")
    assert shown(finding("KA810"), error) == seen
    assert shown(finding("KA810"), replace(error, error="OTHER")) == 0


@pytest.mark.parametrize(
    ("evidence", "seen"),
    [
        # the earliest and the latest time that is known: the event is at NOON
        (times(previous=NOON - 11 * MINUTE, next=NOON + 11 * MINUTE), 1),
        (times(previous=NOON - 11 * MINUTE), 0),
        (times(offending=NOON), 1),
        (times(next=NOON + 11 * MINUTE), 0),
        (times(next=NOON + 11 * MINUTE, offending=-1), 0),
        (times(next=NOON, offending=-1), 1),
        (StoredEvidence({"first_timestamp": NOON - 11 * MINUTE, "last_timestamp": NOON + 11 * MINUTE}), 1),
        (StoredEvidence({"first_timestamp": NOON - 10 * MINUTE}), 1),
        (StoredEvidence({"last_timestamp": 0}), 0),
        (StoredEvidence({}), 0),
    ],
)
def test_which_times_a_finding_has(evidence, seen):
    assert shown(finding(evidence=evidence), of_orders(KIND.UNCLEAN_LEADER_ELECTED)) == seen


def test_a_finding_at_the_beginning_of_time_has_it():
    at_zero = finding(evidence=times(offending=0))
    assert shown(at_zero, of_orders(KIND.UNCLEAN_LEADER_ELECTED, timestamp_ms=5)) == 1


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        # of the producer: its partition and epoch, as far as they are named, at any time
        ({"producer_id": 7}, 1),
        ({"producer_id": 7, "timestamp_ms": None, "zone_known": False}, 1),
        ({"producer_id": 7, "partition": 1}, 0),
        ({"producer_id": 7, "topic": "bills"}, 0),
        ({"producer_id": 7, "topic": None, "partition": None}, 1),
        ({"producer_id": 7, "producer_epoch": 1}, 1),
        ({"producer_id": 7, "producer_epoch": 2}, 0),
        ({"producer_id": 7, "producer_epoch": -2}, 0),
        ({"producer_id": 7, "producer_epoch": -1}, 1),
        ({"producer_id": 7, "producer_epoch": 2, "expected_epoch": 1}, 1),
        ({"producer_id": 7, "producer_epoch": 5, "expected_epoch": -3}, 1),
        ({"producer_id": 7, "expected_epoch": 2}, 0),
        ({"producer_id": 8}, 0),
        ({}, 0),
    ],
)
def test_refusals_of_the_producer(event, seen):
    assert shown(finding(), of_orders(KIND.OUT_OF_ORDER_SEQUENCE, **event)) == seen


def test_of_a_finding_without_an_epoch_or_a_producer():
    refused = of_orders(KIND.OUT_OF_ORDER_SEQUENCE, producer_id=7, producer_epoch=9)
    assert shown(finding(producer_epoch=None), refused) == 1
    assert shown(finding(producer_id=None), refused) == 0


def test_events_of_brokers_and_those_that_name_nobody():
    lost = event(KIND.UNCLEAN_LEADER_ELECTED, timestamp_ms=NOON, zone_known=True)
    assert shown(finding(), lost) == 1
    assert shown(finding(topic=None, partition=None), lost) == 0
    assert shown(finding(), replace(lost, producer_id=9)) == 0
    assert shown(finding(), replace(lost, transactional_id="a")) == 0
    assert shown(finding(), replace(lost, topic="orders")) == 1  # of no partition
    assert shown(finding(), replace(lost, topic="bills", partition=0)) == 0


@pytest.mark.parametrize(("offset", "own", "seen"), [(11, 10, 1), (10, 10, 0), (9, 10, 0), (None, 10, 1), (5, None, 1)])
def test_what_is_about_later_offsets_is_evidence_at_any_time(offset, own, seen):
    failed = of_orders(KIND.REMOTE_COPY_FAILED, offset=offset, timestamp_ms=NOON - 10**9)
    assert shown(finding("KA510", offset=own), failed) == seen


def test_a_transaction_and_its_producer_each_event_once():
    both = event(KIND.TRANSACTION_TIMEOUT, 1, transactional_id="billing", producer_id=9, timestamp_ms=NOON)
    named = event(KIND.TRANSACTION_TIMEOUT, 2, transactional_id="billing", timestamp_ms=NOON)
    other = event(KIND.TRANSACTION_TIMEOUT, 3, transactional_id="other", timestamp_ms=NOON)
    one = finding("KA301", producer_id=9, evidence=StoredEvidence({"transactional_id": "billing"}))
    found = explained(one, both, named, other)
    assert [each["line"] for each in found.evidence.to_dict()["log_events"]] == [1, 2]
    assert shown(replace(one, producer_id=None), both, named, other) == 2


@pytest.mark.parametrize(
    ("elections", "refusals", "listed", "speaks"),
    [
        (1, 0, [1], ["server.log:1"]),
        (2, 0, [1, 2], ["server.log:1, and 1 more line"]),
        (3, 0, [1, 2, 3], ["server.log:1, and 2 more lines"]),
        (7, 0, [1, 2, 3, 4, 5], ["server.log:1, and 6 more lines"]),
        # of a second cause one at least
        (7, 3, [1, 2, 3, 4, 5, 8], ["server.log:1, and 6 more lines", "server.log:8, and 2 more lines"]),
        (4, 3, [1, 2, 3, 4, 5], ["server.log:1, and 3 more lines", "server.log:5, and 2 more lines"]),
        (3, 3, [1, 2, 3, 4, 5], ["server.log:1, and 2 more lines", "server.log:4, and 2 more lines"]),
    ],
)
def test_five_lines_are_listed_and_all_are_counted(elections, refusals, listed, speaks):
    events = [of_orders(KIND.UNCLEAN_LEADER_ELECTED, 1 + number) for number in range(elections)]
    events += [of_orders(KIND.OUT_OF_ORDER_SEQUENCE, 1 + elections + at, producer_id=7) for at in range(refusals)]
    found = explained(finding(), *events)
    evidence = found.evidence.to_dict()
    assert [each["line"] for each in evidence["log_events"]] == listed
    assert evidence["log_events_count"] == elections + refusals
    assert [cause.speaks_for for cause in found.explanations[:-1]] == [(text,) for text in speaks]
    assert found.explanations[-1] == Explanation("as before")


def test_lines_that_a_finding_has_already_are_counted_once():
    events = [of_orders(KIND.UNCLEAN_LEADER_ELECTED, number) for number in (1, 2)]
    first = explained(finding(), events[0])
    again = explained(first, *events)
    assert [each["line"] for each in again.evidence.to_dict()["log_events"]] == [1, 2]
    assert again.evidence["log_events_count"] == 2
    assert again.explanations[0].speaks_for == ("server.log:2",)
    assert explained(first, events[0]) == first


class FindingEvidenceWithTimes(FindingEvidence, frozen=True, kw_only=True):
    first_timestamp: int
    last_timestamp: int


def client(directory, path, known=False):
    return BrokerClock(directory, None, frozenset({path, directory}), zone_known=known)


@pytest.mark.parametrize(
    ("path", "clocks", "seen"),
    [
        # a line of the same log, or of another of the same broker, has the same clock; which it is need not be known
        ("b1/server.log", [], 1),
        ("b2/server.log", [], 0),
        ("b1/state-change.log", [BrokerClock("b1", 1, frozenset({"b1/server.log", "b1/state-change.log"}), zone_known=False)], 1),
        ("b1/other.log", [BrokerClock("b1", 1, frozenset({"b1/server.log"}), zone_known=False)], 0),
        ("b2/other.log", [BrokerClock("b2", 1, frozenset({"b2/other.log"}), zone_known=True)], 1),
        # logs of clients in one directory that nothing aligns are one client's
        ("b1/client.log", [client("b1", "b1/server.log"), client("b1", "b1/client.log")], 1),
        ("b1/client.log", [client("b1", "b1/server.log"), BrokerClock("b1", 1, frozenset({"b1/client.log"}), zone_known=False)], 0),
    ],
)  # fmt: skip
def test_times_of_logs_whose_clock_is_that_of_the_findings_own_lines(path, clocks, seen):
    own = EventEvidence(path="b1/server.log", line=99, timestamp=NOON)
    evidence = replace(
        FindingEvidenceWithTimes(first_timestamp=NOON, last_timestamp=NOON), events=ShownEvents([own], 1)
    )
    elected = of_orders(KIND.UNCLEAN_LEADER_ELECTED, path=path, zone_known=False)
    assert shown(finding(evidence=evidence), elected, clocks=clocks) == 1 + seen


def sent(kind, line, client_id="shop", **fields):
    return of_orders(kind, line, path="c.log", client_id=client_id, **fields)


ASSIGNED = sent(KIND.PRODUCER_ID_ASSIGNED, 1, topic=None, partition=None, producer_id=7, producer_epoch=3)
GAVE_UP = sent(KIND.EPOCH_BUMPED, 2, last_sequence=4, expected_sequence=9)
NEXT_ONE = replace(ASSIGNED, line=3, producer_epoch=4)
MOVED = sent(KIND.SEQUENCE_RESET, 4, client_id=None, last_sequence=9, base_sequence=0)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([ASSIGNED, GAVE_UP], [GivenUpSends(3, 4, 8)]),
        ([GAVE_UP, ASSIGNED], None),
        ([replace(ASSIGNED, producer_id=None), GAVE_UP], None),
        ([replace(ASSIGNED, producer_epoch=None), GAVE_UP], None),
        ([ASSIGNED, replace(GAVE_UP, client_id="other")], None),
        ([ASSIGNED, replace(GAVE_UP, path="d.log")], None),
        ([ASSIGNED, replace(GAVE_UP, topic=None)], None),
        ([ASSIGNED, replace(GAVE_UP, partition=None)], None),
        ([ASSIGNED, replace(GAVE_UP, event=KIND.RETRY)], None),
        ([ASSIGNED, replace(GAVE_UP, last_sequence=None)], []),
        ([ASSIGNED, replace(GAVE_UP, expected_sequence=None)], []),
        ([ASSIGNED, GAVE_UP, NEXT_ONE, replace(GAVE_UP, line=5)], [GivenUpSends(3, 4, 8), GivenUpSends(4, 4, 8)]),
        # batches that went on under new sequences: of the epoch before, by the client that spoke last in this file
        ([ASSIGNED, NEXT_ONE, MOVED], [GivenUpSends(3, None, 9, ((9, 0),))]),
        (
            [ASSIGNED, NEXT_ONE, MOVED, replace(MOVED, last_sequence=11, base_sequence=2)],
            [GivenUpSends(3, None, 11, ((9, 0), (11, 2)))],
        ),
        # what was given up before is another entry, and so is what moved in the next epoch
        ([ASSIGNED, GAVE_UP, NEXT_ONE, MOVED], [GivenUpSends(3, 4, 8), GivenUpSends(3, None, 9, ((9, 0),))]),
        (
            [ASSIGNED, NEXT_ONE, MOVED, replace(NEXT_ONE, producer_epoch=5), replace(MOVED, last_sequence=3)],
            [GivenUpSends(3, None, 9, ((9, 0),)), GivenUpSends(4, None, 3, ((3, 0),))],
        ),
        ([ASSIGNED, replace(MOVED, base_sequence=None)], []),
        ([ASSIGNED, replace(ASSIGNED, client_id="later", producer_id=8), MOVED], None),
        ([replace(ASSIGNED, client_id="before", producer_id=8), ASSIGNED, MOVED], [GivenUpSends(2, None, 9, ((9, 0),))]),
    ],
)  # fmt: skip
def test_what_lines_say_that_a_client_gave_up(events, expected):
    found = given_up_sends(events).get(("orders", 0), {})
    assert found.get(7) == expected


def said(line, kind=KIND.PRODUCER_ID_ASSIGNED, client_id="a", **fields):
    return replace(sent(kind, line, client_id), origin="client", path="c.log", timestamp_ms=1000 * line, **fields)


OWN = said(1, producer_id=9, producer_epoch=4)
OTHER = said(2, client_id="b", producer_id=9, producer_epoch=6)
IS_FENCED = said(3, KIND.PRODUCER_STATE_CHANGE, error="PRODUCER_FENCED")


@pytest.mark.parametrize(
    ("events", "fenced"),
    [
        ([OWN, OTHER, IS_FENCED], [(9, 4, 3)]),
        ([OWN, OTHER, replace(IS_FENCED, error="INVALID_PRODUCER_EPOCH")], [(9, 4, 3)]),
        ([OWN, OTHER, replace(IS_FENCED, error="OTHER")], []),
        ([OWN, replace(OTHER, producer_epoch=4), IS_FENCED], []),
        ([OWN, replace(OTHER, producer_epoch=5), IS_FENCED], [(9, 4, 3)]),
        ([OWN, replace(OTHER, producer_id=8), IS_FENCED], []),
        ([OWN, replace(OTHER, client_id="a"), IS_FENCED], []),
        ([OWN, replace(OTHER, path="d.log", client_id="a"), IS_FENCED], [(9, 4, 3)]),
        ([OTHER, OWN, replace(IS_FENCED, client_id="b")], []),
        ([OTHER, IS_FENCED], []),
        ([replace(OWN, producer_id=None), OTHER, IS_FENCED], []),
        ([replace(OWN, producer_epoch=None), OTHER, IS_FENCED], []),
        ([replace(OWN, origin="server"), OTHER, IS_FENCED], []),
    ],
)
def test_instances_that_others_took_over_from(events, fenced):
    assert [(each.producer_id, each.producer_epoch, each.line) for each in fenced_instances(events)] == fenced


def test_topics_that_were_removed_and_fenced_producers():
    events = [
        event(KIND.TOPIC_REMOVED, 5, path="b1/logs/server.log", topic_id="id"),
        event(KIND.TOPIC_REMOVED, 6),
        event(KIND.INVALID_PRODUCER_EPOCH, 7, producer_id=7),
        event(KIND.FENCED_PRODUCER, 8, producer_id=7),
        event(KIND.FENCED_PRODUCER, 9),
        event(KIND.OUT_OF_ORDER_SEQUENCE, 10, producer_id=7),
        OWN,
        OTHER,
        IS_FENCED,
    ]
    found = EventsOfLogs(events, ())
    assert found.removed_topics == {"id": "server.log:5"}
    assert {key: [each.line for each in own] for key, own in found.fenced.items()} == {7: [7, 8], 9: [3]}
