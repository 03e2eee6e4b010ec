"""The lines of one partition: its batches as accepted attempts, and between them what the server logs say.

Every line is answered by the broker's rules before it is written. An accepted batch they do not accept is written as found on
disk, so that the log of whoever replays the lines is the log that was read; a refusal they do not repeat is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from kaudit.audits.log_events.placement import Certainty, EventPlacer, Placement
from kaudit.broker.attempts import Attempt, Describe, Wait
from kaudit.broker.broker import Broker
from kaudit.broker.producer_state.append_result import AppendResult, Origin, Outcome
from kaudit.broker.producer_state.producer_append_info import validate_append, validate_end_txn_marker
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.response import TopicPartition
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.sequence import add as add_sequence
from kaudit.replay.reconstruction.account import Account, LeftOut
from kaudit.replay.reconstruction.broker_logs import BrokerLog
from kaudit.replay.reconstruction.log_rows import LogRow
from kaudit.replay.reconstruction.refusals import (
    ERRORS,
    REFUSALS,
    agrees,
    candidates,
    expected_by,
    possible_producer,
    says_forgotten,
)

Line = dict[str, Any]
TimedLine = tuple[int, Line]
"""When, ms, for putting the lines of several partitions in one order; and the line."""
OFFSETS_TOPIC = "__consumer_offsets"
_SLACK_MS = 60_000
"""A segment's last write may be a little older than its newest timestamp."""
_APPENDED = Outcome.APPENDED
_OF_FOLLOWERS = "WARN"
"""The level of a stale epoch that is only noted, in what a follower replicates; a leader refuses at other levels."""


class Around(msgspec.Struct, frozen=True):
    """What is known beside a partition's batches: the brokers' logs, transactional ids by producer id, and the account.

    `epochs` are those that each producer id has anywhere in the partition.
    """

    logs: Sequence[BrokerLog]
    epochs: Mapping[int, AbstractSet[int]]
    transactional_ids: Mapping[int, str]
    account: Account


def placed(key: TopicPartition, rows: Iterable[LogRow], logs: Sequence[BrokerLog]) -> Iterator[LogRow | Placement]:
    """Yield the batches of a partition with the events of logs between them."""
    placer = EventPlacer([log.of_partition(*key) for log in logs])
    for row in rows:
        yield from placer.before(row.logged)
        yield row
    yield from placer.rest()


class PartitionLines:
    """Yields the lines of a partition, for what happened in it in this order; `broker` answers them, and has nothing else to answer."""

    def __init__(
        self, key: TopicPartition, happened: Iterable[LogRow | Placement], broker: Broker, around: Around
    ) -> None:
        self._key = key
        self._in_order = happened
        self._broker = broker
        self._around = around
        self._account = around.account
        self._logs = logs = around.logs
        self._unnamed: set[int] = set()
        self._of_path = {path: log for log in logs for path in log.paths}
        self._leader: BrokerLog | None = logs[0] if len(logs) == 1 else None
        self._elections_logged = len(logs) == 1
        """Whether logs say when another broker becomes the leader; else one that restarts may have been followed."""
        self._start = self._end = 0
        self._at: int | None = None

    def __iter__(self) -> Iterator[TimedLine]:
        """Yield the lines, each with a time that is not before that of the line before."""
        for one in self._in_order:
            yield from self._happened(one) if isinstance(one, Placement) else self._appended(one)
        self._account.transactional_ids += len(self._unnamed)

    # -- batches -------------------------------------------------------------------------------------------------------
    def _appended(self, row: LogRow) -> Iterator[TimedLine]:
        self._pass_time(row)
        if row.producer_id == NO_PRODUCER_ID:
            if row.base_sequence != -1 and row.commit is None:
                self._account.control_batches += 1
            line = self._unchecked(row)
        elif row.commit is None:
            line = self._produced(row)
        else:
            line = self._marker(row)
        recorded = line.pop("recorded", "appended")
        follows = row.producer_id == NO_PRODUCER_ID or (row.base_offset == self._end and self._accepts(row))
        written = self._write(line, row.source, recorded) if follows else None
        if written is None:
            written = self._write(_found(row), row.source, "ok")
            self._account.found_on_disk += written is not None
        if written is None:
            self._account.impossible += 1  # values that no attempt can have
            return
        yield written
        self._end = row.last_offset + 1

    def _accepts(self, row: LogRow) -> bool:
        """Whether the rules let the batch follow, if need be after what is due by now: idle producers are forgotten."""
        if self._passes(row):
            return True
        self._sync()
        return self._passes(row)

    def _sync(self) -> None:
        """Let the broker do what is due by now."""
        if self._at is not None:
            self._broker.answer(Wait(topic=self._key[0], partition=self._key[1], at=self._at, ms=0))

    def _passes(self, row: LogRow) -> bool:
        known = self._broker.remembered(self._key).get(row.producer_id, UNKNOWN)
        profile = self._broker.profile
        if row.commit is not None:
            _, result, _ = validate_end_txn_marker(known, _marker_of(row), profile, Origin.COORDINATOR)
        else:
            origin = Origin.COORDINATOR if self._key[0] == OFFSETS_TOPIC else Origin.CLIENT
            _, result = validate_append(known, _batch_of(row), profile, origin)
        return result.outcome is _APPENDED

    def _produced(self, row: LogRow) -> Line:
        line: Line = {
            "op": "produce",
            "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch,
            "base_sequence": row.base_sequence,
            "record_count": row.record_count,
            "is_transactional": row.is_transactional,
            "timestamp": row.timestamp,
        }
        if self._key[0] == OFFSETS_TOPIC:
            for name in ("base_sequence", "is_transactional", "timestamp"):
                del line[name]
            return {**line, "op": "txn_offset_commit", **self._owner(row.producer_id), "recorded": "ok"}
        return {**line, **self._owner(row.producer_id)} if row.is_transactional else line

    def _owner(self, producer_id: int) -> Line:
        name = self._around.transactional_ids.get(producer_id)
        if name is None:
            self._unnamed.add(producer_id)
            return {"transactional_id": f"producer-{producer_id}", "assumed": ["transactional_id"]}
        return {"transactional_id": name}

    @staticmethod
    def _unchecked(row: LogRow) -> Line:
        return {
            "op": "produce",
            "producer_id": NO_PRODUCER_ID,
            "producer_epoch": -1,
            "base_sequence": -1,
            "record_count": row.record_count,
            "timestamp": row.timestamp,
        }

    @staticmethod
    def _marker(row: LogRow) -> Line:
        return {
            "op": "write_marker",
            "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch,
            "commit": row.commit,
            "coordinator_epoch": row.coordinator_epoch,
            "recorded": "ok",
        }

    def _pass_time(self, row: LogRow) -> None:
        """Let the clock follow the batches' timestamps, which may be wrong: not beyond the segment's last write."""
        exact = row.log_append_time or row.commit is not None
        if row.timestamp >= 0 and (exact or row.timestamp <= row.modified_ms + _SLACK_MS):
            self._at = max(self._at or 0, row.timestamp)

    # -- events --------------------------------------------------------------------------------------------------------
    def _happened(self, placement: Placement) -> Iterator[TimedLine]:
        event = placement.event
        if placement.at_ms is not None:
            self._at = max(self._at or 0, placement.at_ms)
        if event.event in REFUSALS:
            yield from self._refused(placement)
        elif event.event is LogEventKind.STARTED:
            yield from self._restarted(placement)
        elif event.event is LogEventKind.BECAME_LEADER:
            yield from self._leads(event)
        elif event.event is LogEventKind.LOG_START_OFFSET_MOVED:
            yield from self._starts(event)

    def _starts(self, event: LogEvent) -> Iterator[TimedLine]:
        """The log starts later; followers log the same later than their leader."""
        if event.offset is not None and self._start < event.offset <= self._end:
            self._start = event.offset
            yield from self._noted({"op": "delete_records", "before_offset": event.offset}, event)

    def _refused(self, placement: Placement) -> Iterator[TimedLine]:
        event = placement.event
        if placement.lost:
            self._account.leave_out(event, LeftOut.LOST)
            return
        if event.level != _OF_FOLLOWERS:
            yield from self._leads(event)
        self._sync()
        states = self._broker.remembered(self._key)
        producer_id = possible_producer(event, states, self._around.epochs)
        if producer_id is None or event.event not in ERRORS:
            self._account.leave_out(event, LeftOut.NO_PRODUCER_ID)
            return
        if producer_id in states and says_forgotten(event, states[producer_id]):
            # whatever made the broker forget it
            yield from self._noted({"op": "expire_producers", "producer_ids": [producer_id]}, event)
        known = self._broker.remembered(self._key).get(producer_id, UNKNOWN)
        for sent, assumed in candidates(event, producer_id, known):
            line = {**sent, **expected_by(event), "assumed": assumed, "place": placement.certainty.value}
            result = self._result(line, known)
            if result.outcome is Outcome.REJECTED and result.error in ERRORS[event.event]:
                if line.get("is_transactional"):
                    owner = self._owner(producer_id)
                    line |= owner | {"assumed": [*assumed, *owner.get("assumed", ())]}
                if not agrees(event, known, self._end):
                    line["differs"] = True
                written = self._write(line, placed_at(event), result.error.name)
                if written is not None:
                    self._account.placed[placement.certainty] += 1
                    self._account.named += event.producer_id is None
                    yield written
                    return
        sent, assumed = next(candidates(event, producer_id, known))
        yield from self._not_repeated(placement, {**sent, **expected_by(event), "assumed": assumed})

    def _not_repeated(self, placement: Placement, line: Line) -> Iterator[TimedLine]:  # noqa: ARG002 - of those that write it
        """Leave out an attempt that the rules do not refuse after the batches before it."""
        self._account.leave_out(placement.event, LeftOut.CONTRADICTING)
        yield from ()

    def _result(self, line: Line, known: ProducerStateEntry) -> AppendResult:
        profile = self._broker.profile
        if line["op"] == "write_marker":
            marker = MarkerBatch(
                line["producer_id"], line["producer_epoch"], line["coordinator_epoch"], self._end, 0, line["commit"]
            )
            return validate_end_txn_marker(known, marker, profile, Origin.COORDINATOR)[1]
        batch = DataBatch(
            line["producer_id"],
            line["producer_epoch"],
            line["base_sequence"],
            add_sequence(line["base_sequence"], line["record_count"] - 1),
            self._end,
            self._end + line["record_count"] - 1,
            self._at or 0,
            line["is_transactional"],
        )
        return validate_append(known, batch, profile, Origin.CLIENT)[1]

    def _restarted(self, placement: Placement) -> Iterator[TimedLine]:
        event = placement.event
        log = self._of_path[event.path]
        lives = log.restart(event)
        if lives is None:
            return
        if placement.certainty is Certainty.ORDER and placement.at_ms is None:
            self._account.unplaced_restarts += 1
            return
        before, run = lives
        clean = before.stopped is not None
        if self._leader is log and not self._elections_logged:
            self._leader = None
            self._account.unplaced_restarts += 1
            return
        if self._leader is log:
            line: Line = {"op": "restart", "clean": clean}
            last = None if before.last is None else log.batch_time(before.last)
            if last is not None and placement.at_ms is not None:
                up = None if run.up is None else log.batch_time(run.up)
                line |= {"at": last, "started_at": placement.at_ms if up is None else up}
        elif self._leader is None:
            return
        else:
            line = {"op": "follower_restart", "clean": clean}
            if log.broker_id is not None:
                line["replica"] = log.broker_id
        yield from self._noted(line, event)

    def _leads(self, event: LogEvent) -> Iterator[TimedLine]:
        log = self._of_path.get(event.path)
        if log is None:  # a client's
            return
        self._elections_logged = self._elections_logged or event.event is LogEventKind.BECAME_LEADER
        before, self._leader = self._leader, log
        if before is None or before is log:
            return
        line: Line = {"op": "leader_change", "how": "clean"}
        if event.timestamp_ms is not None:
            over = before.ended_before(event.timestamp_ms)
            if over is not None:
                line["how"] = "kill9" if over.stopped is None else "clean"
                if over.stopped is not None:
                    line["via"] = "controlled_shutdown"
        for name, leading in (("old_leader", before), ("new_leader", log)):
            if leading.broker_id is not None:
                line[name] = leading.broker_id
        yield from self._noted(line, event)

    def _noted(self, line: Line, event: LogEvent) -> Iterator[TimedLine]:
        """Yield the line of an event in the partition, if the rules allow it."""
        written = self._write(line, placed_at(event), "ok")
        if written is not None:
            yield written

    def _write(self, line: Line, source: str, recorded: str, answered: str | None = None) -> TimedLine | None:
        """Answer a line; return it with the fields that the schema does not know.

        None if the rules do not answer as `answered`, by default as recorded.
        """
        topic, partition = self._key
        at = line.pop("at", self._at)
        whole: Line = {"op": line.pop("op"), "topic": topic, "partition": partition}
        if at is not None:
            whole["at"] = at
        whole |= line
        try:
            answer = self._broker.answer(msgspec.convert(whole, Attempt)).fields
        except msgspec.ValidationError:
            return None
        if (answered or recorded) not in (answer["outcome"], answer.get("error")):
            return None
        if whole["op"] == "restart":
            # when log starts were last written down depends on all partitions' times: the answer must not
            asked = self._broker.answer(Describe(topic=topic, partition=partition, at=self._at))
            whole["log_start_offset"] = asked.fields["log_start_offset"]
        self._account.written[f"{whole['op']} {recorded}"] += 1
        return self._at or 0, whole | {"recorded": recorded, "source": source}


def placed_at(event: LogEvent) -> str:
    """Return where a line stands, as `source`."""
    return f"{event.path}:{event.line}"


def _batch_of(row: LogRow) -> DataBatch:
    last = add_sequence(row.base_sequence, row.record_count - 1)
    return DataBatch(
        row.producer_id,
        row.producer_epoch,
        row.base_sequence,
        last,
        row.base_offset,
        row.last_offset,
        row.timestamp,
        row.is_transactional,
    )


def _marker_of(row: LogRow) -> MarkerBatch:
    return MarkerBatch(
        row.producer_id, row.producer_epoch, row.coordinator_epoch, row.base_offset, row.timestamp, bool(row.commit)
    )


def _found(row: LogRow) -> Line:
    batch: Line = {
        "base_offset": row.base_offset,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "timestamp": row.timestamp,
    }
    if row.commit is None:
        batch |= {
            "base_sequence": row.base_sequence,
            "record_count": row.record_count,
            "is_transactional": row.is_transactional,
        }
    else:
        batch |= {"commit": row.commit, "coordinator_epoch": row.coordinator_epoch}
    return {"op": "restart", "clean": False, "found_on_disk": [batch], "assumed": ["clean"]}
