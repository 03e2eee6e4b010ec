"""The rules by which lines become incidents, one at a time: who, what, together with what, and how it ended."""

import pytest
from msgspec.structs import replace

from kaudit.audits.log_events.incidents import logged_incidents
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.logged_incidents import Consequence, EpochUse, LoggedIncident, Outcome
from tests.audits.log_events.made import event

KIND = LogEventKind
DAY = 86_400_000
FAILED = "append-failed"
"""The pattern of "Error processing append operation on partition"."""


def found(*events: LogEvent, states=None) -> list[LoggedIncident]:
    return list(logged_incidents(events, states or {}))


def only(*events: LogEvent, states=None) -> LoggedIncident:
    (one,) = found(*events, states=states)
    return one


def of(pattern, kind=KIND.TRUNCATED, line=1, text="", **fields):
    return replace(event(kind, line, **fields), pattern=pattern, text=text)


def lines_of(*incidents: LoggedIncident) -> list[list[int]]:
    return [[each.line for each in one.events] for one in incidents]


@pytest.mark.parametrize(
    ("error", "consequence"),
    [
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", Consequence.REFUSED),
        ("DUPLICATE_SEQUENCE_NUMBER", Consequence.REFUSED),
        ("CORRUPT_MESSAGE", Consequence.REFUSED),
        ("RECORD_LIST_TOO_LARGE", Consequence.REFUSED),
        ("POLICY_VIOLATION", Consequence.REFUSED),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", Consequence.REFUSED),
        ("TOPIC_AUTHORIZATION_FAILED", Consequence.REFUSED),
        ("UNKNOWN_PRODUCER_ID", Consequence.FORGOTTEN),
        ("INVALID_PRODUCER_ID_MAPPING", Consequence.FORGOTTEN),
        ("INVALID_PRODUCER_EPOCH", Consequence.FENCED),
        ("PRODUCER_FENCED", Consequence.FENCED),
        ("TRANSACTION_ABORTABLE", Consequence.ROLLED_BACK),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Consequence.ROLLED_BACK),
    ],
)
def test_an_error_is_what_it_is_in_whatever_line_states_it(error, consequence):
    for kind in (KIND.REQUEST_ERROR, KIND.RECORD_REJECTED, KIND.FATAL_ERROR, KIND.DELIVERY_FAILED):
        one = only(event(kind, error=error, topic="t", partition=0))
        assert (one.consequence, one.error) == (consequence, error)
    # a line of another kind may quote it
    assert found(event(KIND.ISR_EXPANDED, error=error, topic="t", partition=0)) == []


@pytest.mark.parametrize(
    ("kind", "consequence"),
    [
        (KIND.PRODUCER_EXPIRED, Consequence.FORGOTTEN),
        (KIND.TRANSACTIONAL_ID_EXPIRED, Consequence.FORGOTTEN),
        (KIND.TRANSACTION_TIMEOUT, Consequence.ROLLED_BACK),
        (KIND.DELIVERY_TIMEOUT, Consequence.UNDELIVERED),
        (KIND.DELIVERY_FAILED, Consequence.UNDELIVERED),
        (KIND.FATAL_ERROR, Consequence.UNDELIVERED),
        (KIND.TRUNCATED, Consequence.TRUNCATED),
        (KIND.REPLICATION_FAILED, Consequence.TRUNCATED),
        (KIND.CORRUPTION, Consequence.TRUNCATED),
        (KIND.LOG_DIR_FAILED, Consequence.DIRECTORY_FAILED),
        (KIND.UNCLEAN_LEADER_ELECTED, Consequence.UNCLEAN),
        (KIND.SNAPSHOT_UNREADABLE, Consequence.STATE_REBUILT),
    ],
)
def test_a_line_without_an_error_is_what_its_kind_is(kind, consequence):
    one = only(event(kind, topic="t", partition=0))
    assert (one.consequence, one.error, one.outcome) == (consequence, "", Outcome.UNKNOWN)
    assert (one.topic, one.partition, one.partition_read) == ("t", 0, False)


def test_what_clients_try_again_and_what_changes_nothing_is_no_incident():
    for error in ("REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "KAFKA_STORAGE_ERROR", "CONCURRENT_TRANSACTIONS"):
        assert found(event(KIND.DELIVERY_FAILED, error=error)) == []
        assert only(event(KIND.DELIVERY_TIMEOUT, error=error)).consequence is Consequence.UNDELIVERED
    assert found(of("truncated-nothing")) == []
    assert (
        only(of("marker-stopped", KIND.REQUEST_ERROR, error="UNKNOWN_PRODUCER_ID")).consequence
        is Consequence.MARKERS_STOPPED
    )


# -- lines that belong together -----------------------------------------------------------------------------------------


def failed(line=1, **fields):
    return of(FAILED, KIND.REQUEST_ERROR, line, **{"topic": "t", "partition": 0, **fields})


@pytest.mark.parametrize(
    ("line", "fields", "together"),
    [
        (2, {}, True),
        (4, {}, True),
        (5, {}, False),  # three lines on at most
        (2, {"topic": None, "partition": None}, True),
        (2, {"partition": 1}, False),
        (2, {"topic": "u"}, False),
        (2, {"error": None}, False),
        (2, {"path": "b2/server.log"}, False),
    ],
)
def test_a_refusal_is_the_line_after_it_that_says_why(line, fields, together):
    why = event(
        KIND.OUT_OF_ORDER_SEQUENCE,
        line,
        **{"topic": "t", "partition": 0, "error": "OUT_OF_ORDER_SEQUENCE_NUMBER", **fields},
    )
    lines = [(each.path, each.line) for one in found(failed(), why) for each in one.events]
    assert (("b1/server.log", 1) not in lines) is together


def test_a_refusal_with_an_error_of_the_protocol_explains_itself():
    for error, explained in (("CORRUPT_MESSAGE", True), ("KafkaException", False), (None, False)):
        one = failed(error=error)
        why = event(KIND.OUT_OF_ORDER_SEQUENCE, 2, topic="t", partition=0, error="OUT_OF_ORDER_SEQUENCE_NUMBER")
        lines = sorted(line for own in lines_of(*found(one, why)) for line in own)
        assert lines == ([1, 2] if explained else [2])
        assert only(one).consequence is Consequence.REFUSED


def test_of_one_line_read_twice_the_event_that_says_more_counts():
    less = event(KIND.DELIVERY_TIMEOUT, topic="t")
    more = event(KIND.DELIVERY_TIMEOUT, topic="t", partition=3)
    for pair in ((less, more), (more, less)):
        assert only(*pair).events == [more]
    # of two that say as much, the first
    other = event(KIND.DELIVERY_TIMEOUT, topic="t", partition=4)
    assert only(more, other).events == [more]


NAMED = {"client_id": "c", "producer_id": 7, "transactional_id": "tx", "topic": "t", "partition": 2}


@pytest.mark.parametrize(
    ("apart", "more", "joined"),
    [
        (0, {}, True),
        (1000, {}, True),
        (-1000, {}, True),
        (1001, {}, False),
        (-1001, {}, False),
        (0, {"error": "PRODUCER_FENCED"}, False),
        (0, {"path": "b2/server.log"}, False),
    ],
)
def test_a_line_that_names_nobody_is_of_whom_a_line_of_the_same_error_beside_it_names(apart, more, joined):
    error = "INVALID_PRODUCER_EPOCH"
    named = event(KIND.FENCED_PRODUCER, 1, timestamp_ms=5000, **{"error": error, **NAMED, **more})
    nameless = event(KIND.FATAL_ERROR, 2, error=error, timestamp_ms=5000 + apart)
    incidents = found(named, nameless)
    assert len(incidents) == (1 if joined else 2)
    (own,) = (each for one in incidents for each in one.events if each.line == 2)
    assert {name: getattr(own, name) for name in NAMED} == (NAMED if joined else dict.fromkeys(NAMED))


@pytest.mark.parametrize(("between", "joined"), [(4, True), (5, False)])
def test_beside_it_is_within_five_lines_before_or_after(between, joined):
    named = event(KIND.FENCED_PRODUCER, 10, timestamp_ms=0, error="PRODUCER_FENCED", **NAMED)
    for first in (11, 10 - between - 1):
        others = [event(KIND.BECAME_LEADER, first + number, timestamp_ms=0) for number in range(between)]
        nameless = event(
            KIND.FATAL_ERROR, 11 + between if first == 11 else first - 1, error="PRODUCER_FENCED", timestamp_ms=0
        )
        by_line = sorted([named, nameless, *others], key=lambda each: each.line)
        assert len(found(*by_line)) == (1 if joined else 2)


def test_what_followers_do_at_every_new_leader_is_one_incident_of_a_broker():
    routine = [of("truncated", line=number, topic="t", partition=number) for number in (1, 2)]
    elsewhere = [of("truncated", line=3, path="b2/server.log", topic="t", partition=1)]
    incidents = found(*routine, *elsewhere)
    assert lines_of(*incidents) == [[1, 2], [3]]
    assert [one.subject for one in incidents] == ["replicas b1/server.log", "replicas b2/server.log"]
    assert [(one.topic, one.partition) for one in incidents] == [(None, None), ("t", 1)]
    # what is not routine is of each partition
    assert lines_of(*found(*(replace(each, pattern="truncated-unclean") for each in routine))) == [[1], [2]]


def test_failures_of_refused_batches_are_apart_by_error_producer_and_partition():
    def refused(line, error="CORRUPT_MESSAGE", **fields):
        return event(
            KIND.RECORD_REJECTED, line, **{"error": error, "topic": "t", "partition": 0, "producer_id": 7, **fields}
        )

    incidents = found(
        refused(1),
        refused(2),
        refused(3, partition=1),
        refused(4, topic="u"),
        refused(5, producer_id=8),
        refused(6, error="INVALID_RECORD"),
    )
    assert lines_of(*incidents) == [[1, 2], [3], [4], [5], [6]]
    # of errors that clients retry it is not said which
    timeouts = [
        event(KIND.DELIVERY_TIMEOUT, number, error=error, topic="t")
        for number, error in enumerate(("REQUEST_TIMED_OUT", "X"), 1)
    ]
    assert lines_of(*found(*timeouts)) == [[1, 2]]
    assert only(*timeouts).error == ""


# -- directories of logs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Stopping serving logs in dir /data/kafka-1", "/data/kafka-1"),
        ("Stopping serving replicas in dir /data/k, /data/j", "/data/k"),
        ("Error while writing to checkpoint file /data/k/replication-offset-checkpoint", "/data/k"),
        ("Error while writing to checkpoint file /data/k/orders-3/leader-epoch-checkpoint (x)", "/data/k"),
        ("Failed to clean up log", "of an unknown path"),
    ],
)
def test_the_directory_that_failed(text, subject):
    one = only(of("made", KIND.LOG_DIR_FAILED, text=text))
    assert (one.consequence, one.subject, one.outcome) == (Consequence.DIRECTORY_FAILED, subject, Outcome.UNKNOWN)


def test_a_directory_is_there_again_when_its_broker_has_started_since():
    down = of("made", KIND.LOG_DIR_FAILED, 2, "in dir /a")
    again = of("made", KIND.LOG_DIR_FAILED, 6, "in dir /a")
    for start, path, outcome in (
        (8, "b1/server.log", Outcome.MENDED),
        (4, "b1/server.log", Outcome.UNKNOWN),  # it failed again
        (1, "b1/server.log", Outcome.UNKNOWN),
        (8, "b2/server.log", Outcome.UNKNOWN),
    ):
        started = event(KIND.STARTED, start, path=path)
        in_order = sorted([down, again, started], key=lambda each: (each.path, each.line))
        assert only(*in_order).outcome is outcome
    # a log that is rolled is one log
    rolled = replace(event(KIND.STARTED, 9), path="b1/server.log.2026-11-28", timestamp_ms=9)
    assert only(replace(down, timestamp_ms=1), rolled).outcome is Outcome.MENDED
    other = of("made", KIND.LOG_DIR_FAILED, 7, "in dir /b")
    assert len(found(down, again, other)) == 2


def test_of_an_unclean_election_the_line_with_the_name_counts():
    named = event(KIND.UNCLEAN_LEADER_ELECTED, 1, topic="t", partition=0)
    by_id = event(KIND.UNCLEAN_LEADER_ELECTED, 2)
    assert lines_of(*found(named, by_id)) == [[1]]
    assert lines_of(*found(by_id)) == [[2]]
    assert lines_of(*found(by_id, event(KIND.TRUNCATED, 3, topic="t", partition=0))) == [[2], [3]]


# -- how it ended -------------------------------------------------------------------------------------------------------


def short(line=2, **fields):
    return event(KIND.REQUEST_ERROR, line, error="NOT_ENOUGH_REPLICAS", **{"topic": "t", "partition": 0, **fields})


@pytest.mark.parametrize(
    ("line", "fields", "outcome"),
    [
        (3, {}, Outcome.MENDED),
        (1, {}, Outcome.UNKNOWN),
        (3, {"partition": 1}, Outcome.UNKNOWN),
        (3, {"topic": "u"}, Outcome.UNKNOWN),
    ],
)
def test_too_few_replicas_until_one_is_in_sync_again(line, fields, outcome):
    expanded = event(KIND.ISR_EXPANDED, line, **{"topic": "t", "partition": 0, **fields})
    in_order = sorted([short(), expanded], key=lambda each: each.line)
    assert only(*in_order).outcome is outcome


def test_a_coordinator_that_grants_an_id_has_its_log_in_sync():
    text = "Initialized transactionalId tx with producerId 7 and producer epoch 0 on partition __transaction_state-5"
    for partition, outcome in ((5, Outcome.MENDED), (4, Outcome.UNKNOWN)):
        granted = of("made", KIND.PRODUCER_ID_ASSIGNED, 3, text, transactional_id="tx", producer_id=7, producer_epoch=0)
        assert only(short(topic="__transaction_state", partition=partition), granted).outcome is outcome


def test_of_several_refused_batches_the_worst_end_counts():
    """Out of order, the second came after the first was there: by lines alone that is known of the first."""

    def early(line, last, base, end):
        where = {"topic": "t", "partition": 0, "producer_id": 7, "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"}
        return event(KIND.OUT_OF_ORDER_SEQUENCE, line, base_sequence=base, last_sequence=last, **where)

    # the broker had sequence 4, then 9: what began at 7 had been appended, and what began at 20 had not
    one = only(early(1, 4, 7, None), early(2, 9, 20, None))
    assert (one.outcome, lines_of(one)) == (Outcome.UNKNOWN, [[1, 2]])
    duplicate = event(
        KIND.DUPLICATE_SEQUENCE,
        3,
        topic="t",
        partition=0,
        producer_id=7,
        error="DUPLICATE_SEQUENCE_NUMBER",
        last_sequence=20,
    )
    assert [each.outcome for each in found(duplicate)] == [Outcome.LANDED]


@pytest.mark.parametrize(
    ("more", "partition_read", "outcome"),
    [
        ([], False, Outcome.UNKNOWN),
        ([], True, Outcome.FENCED),
        # another instance was given a later epoch
        (
            [event(KIND.PRODUCER_ID_ASSIGNED, 2, transactional_id="tx", producer_id=7, producer_epoch=3)],
            False,
            Outcome.FENCED,
        ),
        (
            [event(KIND.PRODUCER_ID_ASSIGNED, 2, transactional_id="tx", producer_id=7, producer_epoch=2)],
            False,
            Outcome.UNKNOWN,
        ),
        # its own transaction timed out
        (
            [
                event(KIND.PRODUCER_ID_ASSIGNED, 2, transactional_id="tx", producer_id=7, producer_epoch=3),
                event(KIND.TRANSACTION_TIMEOUT, 3, transactional_id="tx", producer_id=7),
            ],
            False,
            Outcome.UNKNOWN,
        ),
    ],
)
def test_who_fenced_a_producer(more, partition_read, outcome):
    fenced = event(
        KIND.INVALID_PRODUCER_EPOCH, 1, error="INVALID_PRODUCER_EPOCH", topic="t", partition=0, producer_id=7,
        producer_epoch=2, transactional_id="tx",
    )  # fmt: skip
    first = found(fenced, *more, states={("t", 0): {}} if partition_read else {})[0]
    assert (first.consequence, first.outcome, first.partition_read) == (Consequence.FENCED, outcome, partition_read)
    assert (first.producer_id, first.producer_epoch, first.transactional_id, first.client_id) == (7, 2, "tx", None)


@pytest.mark.parametrize(
    ("epochs", "outcome"), [((0,), Outcome.UNKNOWN), ((0, 0), Outcome.UNKNOWN), ((0, 1), Outcome.FENCED)]
)
def test_without_an_epoch_two_that_were_granted_say_that_it_was_replaced(epochs, outcome):
    fenced = event(KIND.FENCED_PRODUCER, 1, error="PRODUCER_FENCED", transactional_id="tx")
    granted = [
        event(KIND.PRODUCER_ID_ASSIGNED, line, transactional_id="tx", producer_id=7, producer_epoch=epoch)
        for line, epoch in enumerate(epochs, 2)
    ]
    assert found(fenced, *granted)[0].outcome is outcome


def test_a_thread_of_streams_that_begins_anew_went_on():
    fenced = of("streams-fenced", KIND.FENCED_PRODUCER, 2, error="PRODUCER_FENCED", path="app.log")
    for line, path, outcome in (
        (3, "app.log", Outcome.SUPERSEDED),
        (1, "app.log", Outcome.UNKNOWN),
        (3, "b.log", Outcome.UNKNOWN),
    ):
        begun = event(KIND.PRODUCER_ID_ASSIGNED, line, path=path, producer_id=9, producer_epoch=0)
        in_order = sorted([fenced, begun], key=lambda each: (each.path, each.line))
        assert found(*in_order)[0].outcome is outcome


def test_an_incident_names_what_all_its_lines_have_in_common():
    text = "transactional id tx, coordinated by __transaction_state-{}"
    lines = [
        of(
            "made",
            KIND.TRANSACTION_TIMEOUT,
            1,
            text.format(5),
            transactional_id="tx",
            producer_id=7,
            producer_epoch=1,
            client_id="c",
        ),
        of("made", KIND.TRANSACTION_TIMEOUT, 2, text.format(5), transactional_id="tx", producer_id=7, producer_epoch=1),
    ]
    one = only(*lines)
    assert (one.transactional_id, one.client_id, one.coordinator_partition, one.producer_epoch) == ("tx", "c", 5, 1)
    others = only(
        *lines,
        of("made", KIND.TRANSACTION_TIMEOUT, 3, text.format(6), transactional_id="tx", producer_epoch=2, client_id="d"),
    )
    assert (others.transactional_id, others.client_id, others.coordinator_partition, others.producer_epoch) == (
        "tx",
        None,
        None,
        None,
    )


# -- epochs -------------------------------------------------------------------------------------------------------------


def raised(first: int, last: int, took_ms: int | None, **fields) -> list[LogEvent]:
    """A producer's lines about the lowest and the highest epoch it had."""
    return [
        event(KIND.EPOCH_BUMPED, line, producer_id=7, producer_epoch=epoch, timestamp_ms=at, **fields)
        for line, epoch, at in ((1, first, 1000), (2, last, None if took_ms is None else 1000 + took_ms))
    ]


@pytest.mark.parametrize(
    ("first", "last", "took_ms", "warned"),
    [
        (0, 99, 1000, False),
        (0, 100, 1000, True),  # a hundred in a second: 32,667 more take less than a day
        (0, 100, DAY, False),
        # of 32,767 as many are left as were raised: in exactly a day, or a millisecond less
        (1, 16_384, DAY, False),
        (1, 16_384, DAY - 1, True),
        (0, 100, None, False),
        # few are left, whatever the rate
        (31_990, 31_999, None, False),
        (31_990, 32_000, None, True),
        (32_700, 32_767, None, True),
        (32_700, 32_768, None, False),  # no epoch of a producer
    ],
)
def test_epochs_that_are_used_up_within_a_day(first, last, took_ms, warned):
    incidents = found(*raised(first, last, took_ms))
    assert bool(incidents) is warned
    # a transactional producer is given another id in time
    assert bool(found(*raised(first, last, took_ms, transactional_id="tx"))) is (warned and last >= 32_000)
    for one in incidents:
        assert (one.consequence, one.outcome, one.error) == (Consequence.EPOCHS_EXHAUSTED, Outcome.UNKNOWN, "")
        assert one.epochs == EpochUse(first, last, took_ms)
        assert (one.producer_id, one.producer_epoch, lines_of(one)) == (7, last, [[1, 2]])


def test_a_line_that_says_that_none_is_left_needs_no_rate():
    none_left = event(KIND.EPOCHS_EXHAUSTED, 1, transactional_id="tx")
    one = only(none_left)
    assert (one.consequence, one.epochs, one.producer_epoch, one.transactional_id) == (
        Consequence.EPOCHS_EXHAUSTED,
        None,
        None,
        "tx",
    )
    # then it is given another producer id
    of_seven = event(KIND.EPOCHS_EXHAUSTED, 2, transactional_id="tx", producer_id=7, producer_epoch=32_766)
    for line, producer_id, outcome in (
        (3, 8, Outcome.SUPERSEDED),
        (3, 7, Outcome.UNKNOWN),
        (1, 8, Outcome.UNKNOWN),
        (3, -1, Outcome.UNKNOWN),
    ):
        given = event(KIND.PRODUCER_ID_ASSIGNED, line, transactional_id="tx", producer_id=producer_id, producer_epoch=0)
        in_order = sorted([of_seven, given], key=lambda each: each.line)
        exhausted = [each for each in found(*in_order) if each.producer_id == 7]
        assert [each.outcome for each in exhausted] == [outcome]
