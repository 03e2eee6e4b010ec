"""Evidence of findings by name and type, for code that decides by it: incidents, known bugs, causes from logs, histories.

A finding's evidence is JSON: checks make it, reports show all of it, saved scans hold it. Code that decides by a value of it
reads the value here. A saved scan may have been edited or written by another release: a value of another type is None.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import Struct

_T = TypeVar("_T")
_S = TypeVar("_S", bound=Struct)


class BatchEvidence(Struct, frozen=True, gc=False):
    """A batch or an end marker; a time is in ms since the epoch, -1 where the batch has none."""

    timestamp: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None
    is_transactional: bool | None = None
    leader_epoch: int | None = None


class StateEvidence(Struct, frozen=True, gc=False):
    """The state of a producer before a batch, or the entry of a producer snapshot."""

    last_offset: int | None = None
    current_txn_start_offset: int | None = None


class BlockEvidence(Struct, frozen=True, gc=False):
    """A block of producer ids."""

    start: int | None = None


class RangeEvidence(Struct, frozen=True, gc=False):
    """Batches that repeat others, or are repeated: the leader epochs at both ends."""

    first_leader_epoch: int | None = None
    last_leader_epoch: int | None = None


class StepEvidence(Struct, frozen=True, gc=False):
    """By how much a client advanced its sequence after a batch, and how many records the batch had."""

    step: int | None = None
    records: int | None = None


class AbortedEvidence(Struct, frozen=True, gc=False):
    """A row that an index of aborted transactions lacks."""

    last_offset: int | None = None


class EpochEvidence(Struct, frozen=True, gc=False):
    """A leader epoch and the offset at which it begins."""

    epoch: int | None = None
    start_offset: int | None = None


class EventEvidence(Struct, frozen=True, gc=False):
    """An event of a log; `event` is a value of LogEventKind."""

    event: str | None = None


class _Part(Generic[_T]):
    """A value of one type under one key; the key is the attribute's name unless given."""

    def __init__(self, kind: type[_T], key: str = "") -> None:
        self._kind = kind
        self._key = key

    def __set_name__(self, _: type, name: str) -> None:
        self._key = self._key or name

    def __get__(self, evidence: "FindingEvidence", _: type) -> _T | None:
        return _read(evidence.fields.get(self._key), self._kind)


class _Parts(Generic[_S]):
    """A list of records under one key, which is the attribute's name unless given; what is not a record is left out."""

    def __init__(self, kind: type[_S], key: str = "") -> None:
        self._kind = kind
        self._key = key

    def __set_name__(self, _: type, name: str) -> None:
        self._key = self._key or name

    def __get__(self, evidence: "FindingEvidence", _: type) -> Sequence[_S]:
        return list(_records(evidence.fields.get(self._key), self._kind))


class FindingEvidence:
    """The evidence of one finding. An attribute is None where a finding has none of it."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields

    kind = _Part(str, "class")
    reason = _Part(str)
    previous = _Part(BatchEvidence)
    offending = _Part(BatchEvidence)
    next = _Part(BatchEvidence)
    remembered = _Part(StateEvidence)
    stored = _Part(StateEvidence)
    first_timestamp = _Part(int)
    last_timestamp = _Part(int)
    now_timestamp = _Part(int)
    transactional_id = _Part(str)
    coordinator = _Part(str)
    coordinator_state = _Part(str)
    coordinator_says = _Part(str)
    decided_at_offset = _Part(int)
    agreeing = _Part(list[object])
    previous_marker_offset = _Part(int)
    previous_marker_timestamp = _Part(int)
    leader_epoch = _Part(int)
    expected_leader_epoch = _Part(int)
    expected_offset = _Part(int)
    first_missing_offset = _Part(int)
    last_missing_offset = _Part(int)
    resynchronised_at = _Part(int)
    end_offsets = _Part(dict[str, int])
    size = _Part(int)
    missing = _Parts(AbortedEvidence)
    block_below = _Part(BlockEvidence)
    next_block = _Part(BlockEvidence)
    seen = _Part(int)
    copied = _Part(RangeEvidence)
    again = _Part(RangeEvidence)
    same_timestamps = _Part(bool)
    times_go_back = _Part(bool)
    records = _Part(int)
    batches = _Part(int)
    count = _Part(int)
    steps = _Parts(StepEvidence, "joints")
    log_events = _Parts(EventEvidence)

    @property
    def copies(self) -> Mapping[str, BatchEvidence] | None:
        """The batch that each replica has at an offset; one without values where it is not a batch."""
        copies = self.fields.get("copies")
        if not isinstance(copies, Mapping):
            return None
        return {name: _read(batch, BatchEvidence) or BatchEvidence() for name, batch in copies.items()}

    @property
    def seen_ids(self) -> Sequence[int] | None:
        """The producer ids of a block that are in the logs."""
        ids = self.fields.get("seen_ids")
        return [number for number in ids if type(number) is int] if isinstance(ids, list | tuple) else None

    @property
    def leader_epochs(self) -> Mapping[str, Sequence[EpochEvidence]]:
        """The history of leader epochs of each replica."""
        histories = self.fields.get("leader_epochs")
        if not isinstance(histories, Mapping):
            return {}
        return {name: list(_records(history, EpochEvidence)) for name, history in histories.items()}


def _records(values: object, kind: type[_S]) -> Iterator[_S]:
    for value in values if isinstance(values, list | tuple) else ():
        record = _read(value, kind)
        if record is not None:
            yield record


def _read(value: object, kind: type[_T]) -> _T | None:
    if value is None or type(value) is kind:
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        if not isinstance(value, Mapping) or not issubclass(kind, Struct):
            return None
    fields = msgspec.structs.fields(kind)
    known = {field.name: _valid(value.get(field.name), field.type) for field in fields}
    return cast("_T", kind(**known))


def _valid(value: object, kind: object) -> object:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
