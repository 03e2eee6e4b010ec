"""Which batches a log's lines lie between, whatever the clocks say."""

from kaudit.audits.log_events.clock import Anchor, PartitionAnchors, coordinator_anchors
from kaudit.audits.log_events.placement import LoggedBatch
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus, TransactionValue

KIND = LogEventKind


def event(kind: LogEventKind, time: int | None = 500, **more: object) -> LogEvent:
    stated: dict[str, object] = {"origin": "server", "path": "p", "line": 1, "pattern": "p", "text": "t"}
    return LogEvent(event=kind, timestamp_ms=time, **(stated | more))  # type: ignore[arg-type]


def batch(base_offset: int, timestamp: int, producer_id: int = -1, last_sequence: int = -1) -> LoggedBatch:
    return LoggedBatch(base_offset, base_offset + 9, timestamp, producer_id, 0, last_sequence, 0)


def anchors(events: list[LogEvent], *batches: LoggedBatch) -> list[Anchor]:
    found = PartitionAnchors(events)
    for each in batches:
        found.take(each)
    return [anchor for _, anchor in found.found()]


BATCHES = batch(10, 1000), batch(20, 2000), batch(30, 3000)


def test_a_line_with_the_logs_end_lies_between_the_batches_around_it():
    for offset, after, before in (
        *((0, None, 1000), (10, None, 1000), (11, 1000, 2000), (20, 1000, 2000)),
        *((21, 2000, 3000), (30, 2000, 3000), (31, 3000, None), (99, 3000, None)),
    ):
        assert anchors([event(KIND.OUT_OF_ORDER_SEQUENCE, offset=offset)], *BATCHES) == [Anchor(500, after, before)]


def test_lines_in_any_order_each_with_its_own_batches():
    lines = [event(KIND.OUT_OF_ORDER_SEQUENCE, time, offset=offset) for time, offset in ((1, 40), (2, 25), (3, 10))]
    found = PartitionAnchors(lines)
    for each in BATCHES:
        found.take(each)
    assert found.found() == [
        *((lines[2], Anchor(3, None, 1000)), (lines[1], Anchor(2, 2000, 3000)), (lines[0], Anchor(1, 3000, None)))
    ]


def test_before_any_batch_nothing_is_known():
    assert anchors([event(KIND.OUT_OF_ORDER_SEQUENCE, offset=5)]) == [Anchor(500, None, None)]


def test_lines_without_time_and_those_without_a_place_are_no_anchors():
    lines = [event(KIND.OUT_OF_ORDER_SEQUENCE, None, offset=15), event(KIND.OUT_OF_ORDER_SEQUENCE)]
    assert anchors(lines, *BATCHES) == []


def test_a_line_with_the_producers_state_lies_behind_that_batch_and_before_its_next():
    line = event(KIND.OUT_OF_ORDER_SEQUENCE, producer_id=7, last_sequence=4)
    before, other = batch(10, 1000, 7, 3), batch(15, 1100, 8, 4)
    state, marker, following = batch(20, 2000, 7, 4), batch(30, 3000, 7, -1), batch(40, 4000, 7, 9)
    assert anchors([line], before, other, state, batch(25, 2500, 8, 9), marker, following) == [Anchor(500, 2000, 4000)]
    # only the first batch with that sequence counts
    assert anchors([line], state, following, state, batch(60, 6000, 7, 12)) == [Anchor(500, 2000, 4000)]
    assert anchors([line], before, following) == []
    assert anchors([line], state) == []
    first = event(KIND.OUT_OF_ORDER_SEQUENCE, producer_id=0, last_sequence=0)
    assert anchors([first], batch(1, 10, 0, 0), batch(2, 20, 0, 1)) == [Anchor(500, 10, 20)]


def test_lines_that_name_the_end_too_are_placed_by_it_alone():
    line = event(KIND.OUT_OF_ORDER_SEQUENCE, offset=11, producer_id=7, last_sequence=4)
    assert anchors([line], batch(10, 1000, 7, 4), batch(20, 2000, 7, 5)) == [Anchor(500, 1000, 2000)]


def assigned(**more: object) -> LogEvent:
    stated: dict[str, object] = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": 2}
    return event(KIND.PRODUCER_ID_ASSIGNED, **(stated | more))  # type: ignore[arg-type]


def record(status: TransactionStatus = TransactionStatus.EMPTY, producer_id: int = 7, epoch: int = 2):
    return TransactionRecord("tx", TransactionValue(0, producer_id, epoch, 60_000, status, int(status), None, 9000, -1))


def test_an_assigned_producer_id_was_logged_within_a_second_of_its_record():
    records = {
        "tx": [
            TransactionRecord("tx", None),
            record(TransactionStatus.ONGOING),
            record(producer_id=8),
            record(epoch=1),
            record(),
        ]
    }
    line = assigned()
    assert coordinator_anchors([line], records) == [(line, Anchor(500, 9000, 10_000))]
    for other in (
        *(assigned(transactional_id="ty"), assigned(transactional_id=None), assigned(time=None)),
        *(assigned(producer_id=9), assigned(producer_epoch=3)),
        event(KIND.OUT_OF_ORDER_SEQUENCE, transactional_id="tx", producer_id=7, producer_epoch=2),
    ):
        assert coordinator_anchors([other], records) == []
