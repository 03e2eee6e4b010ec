"""What evidence of findings consists of: batches and markers, producer states, blocks of producer ids, events of logs.

Every field may be None: evidence that was read back from a saved scan lacks what is not of its type there.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from kaudit.model.json_record import JsonRecord


class BatchEvidence(JsonRecord, frozen=True, kw_only=True, gc=False):
    """A batch or an end marker; a subclass shows its own fields of these. Times are in ms since 1970, -1 where there is none.

    `type` is COMMIT or ABORT for a marker. `producer_epoch` is None where it is not known.
    """

    shown: ClassVar[Sequence[str]] = ()
    """Fields of the JSON form, in order; `is_transactional` and `crc` only where they are known."""

    offset: int | None = None
    last_offset: int | None = None
    timestamp: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None
    is_transactional: bool | None = None
    coordinator_epoch: int | None = None
    type: str | None = None
    record_count: int | None = None
    crc: int | None = None
    size: int | None = None
    position: int | None = None
    leader_epoch: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        fields = {name: getattr(self, name) for name in self.shown}
        for name in ("is_transactional", "crc"):
            if name in fields and fields[name] is None:
                del fields[name]
        return fields


class ProducerBatch(BatchEvidence, frozen=True, kw_only=True, gc=False):
    """A batch of an idempotent producer."""

    shown = (
        *("offset", "last_offset", "timestamp", "producer_id", "producer_epoch", "base_sequence", "last_sequence"),
        *("is_transactional", "crc", "position", "leader_epoch"),
    )


class MarkerBatch(BatchEvidence, frozen=True, kw_only=True, gc=False):
    """An end marker of a transaction."""

    shown = ("offset", "timestamp", "producer_id", "producer_epoch", "coordinator_epoch", "type", "position")


class NonIdempotent(BatchEvidence, frozen=True, kw_only=True, gc=False):
    """A batch without a producer id."""

    shown = ("offset", "last_offset", "timestamp", "producer_id", "record_count", "crc", "position")


class CopyOfBatch(BatchEvidence, frozen=True, kw_only=True, gc=False):
    """A batch as one replica holds it; what it does not have is -1."""

    shown = (
        *("offset", "last_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence", "last_sequence"),
        *("record_count", "timestamp", "crc", "size", "position"),
    )


class WindowBatch(JsonRecord, frozen=True, gc=False):
    """A batch of a producer's duplicate window."""

    offset: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None


class StateEvidence(JsonRecord, frozen=True, gc=False):
    """The state of a producer before a batch."""

    producer_epoch: int | None = None
    last_sequence: int | None = None
    window: Sequence[WindowBatch] = ()
    coordinator_epoch: int | None = None
    current_txn_start_offset: int | None = None


class SnapshotState(JsonRecord, frozen=True, gc=False):
    """The entry of a producer snapshot, as SnapshotEntry has it."""

    producer_id: int | None = None
    producer_epoch: int | None = None
    last_sequence: int | None = None
    last_offset: int | None = None
    offset_delta: int | None = None
    timestamp: int | None = None
    coordinator_epoch: int | None = None
    current_txn_first_offset: int | None = None


class BlockRange(JsonRecord, frozen=True, gc=False):
    """The producer ids `start`..`end` of a block."""

    start: int | None = None
    end: int | None = None


class BlockEvidence(BlockRange, frozen=True, gc=False):
    """A grant of a block, and where the history has it."""

    broker: int | None = None
    version: int | None = None
    zxid: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    source: str | None = None
    position: int | None = None


class RangeEvidence(JsonRecord, frozen=True, gc=False):
    """Neighbouring batches that repeat others, or are repeated."""

    first_offset: int | None = None
    last_offset: int | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None
    producer_epoch: int | None = None
    first_leader_epoch: int | None = None
    last_leader_epoch: int | None = None
    batches: int | None = None


class FailedSends(JsonRecord, frozen=True, gc=False):
    """Sequences of one epoch that a client gave up: the log holds the first `written` of them."""

    producer_epoch: int | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None
    written: int | None = None


class StepEvidence(JsonRecord, frozen=True, gc=False):
    """By how much a client advanced its sequence after the batch at `offset`, and how many records the batch had."""

    offset: int | None = None
    step: int | None = None
    records: int | None = None


class AbortedEvidence(JsonRecord, frozen=True, gc=False):
    """An aborted transaction that the index of its segment lacks; `last_offset` is its marker's."""

    producer_id: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None


class EpochEvidence(JsonRecord, frozen=True, gc=False):
    """A leader epoch and the offset at which it begins."""

    epoch: int | None = None
    start_offset: int | None = None


class EventEvidence(JsonRecord, frozen=True, gc=False):
    """An event of a log of a broker or client; `event` is a value of LogEventKind, `timestamp` by the batches' clock, in ms."""

    path: str | None = None
    line: int | None = None
    timestamp: int | None = None
    event: str | None = None
    text: str | None = None


class FoldedNotes(JsonRecord, frozen=True, gc=False):
    """How many notes one stands for, and the offsets from the first to the last of them."""

    count: int
    first_offset: int | None
    last_offset: int | None


class ShownEvents(JsonRecord, frozen=True, gc=False, rename={"events": "log_events", "count": "log_events_count"}):
    """Events of logs that show a finding's cause: the first of them, and how many there are."""

    events: Sequence[EventEvidence]
    count: int


_PLACES = frozenset({"file", "segment", "position", "end_position"})


def without_places(fields: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON form without files and positions, at every depth: batches that brokers sent have none."""
    return {name: _placeless(value) for name, value in fields.items() if name not in _PLACES}


def _placeless(value: object) -> object:
    if isinstance(value, Mapping):
        return without_places(value)
    return [_placeless(own) for own in value] if isinstance(value, list | tuple) else value


class OwnerEvidence(JsonRecord, frozen=True, kw_only=True, gc=False):
    """The program whose form of names a transactional id has, as `source` defines it.

    `application` is what its ids have in common, `role` the member of it whose id this is: `subtask 1`. `naming` is pooled where the
    member's ids are used again and again, incrementing where each is used once, None where that is not known.
    """

    program: str | None = None
    application: str | None = None
    role: str | None = None
    naming: str | None = None
    source: str | None = None


class SiblingsEvidence(JsonRecord, frozen=True, kw_only=True, gc=False):
    """Other members of an application that committed after a transaction was written to for the last time.

    `transactional_ids` are those of the latest few, a * in place of numbers; `committed_timestamp` is the newest commit's, ms.
    """

    transactional_ids: Sequence[str] = ()
    count: int | None = None
    committed_timestamp: int | None = None
