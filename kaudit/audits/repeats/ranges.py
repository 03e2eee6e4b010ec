"""Repeats that follow one another as ranges: what repeats what, for which cause, and how certain that is.

What equality proves depends on what is equal. The same producer id, epoch and sequence, or an id that the writer of a
record gave it, prove a repeat. So do different records in a row under the timestamps they had, over more than a
millisecond. Under other timestamps, equal records are as likely to be two events that are alike.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from kaudit.audits.repeats.identities import (
    CONTENT,
    MOST_DIFFERENCES,
    Content,
    differences,
    identifying,
    is_of_snapshot,
)
from kaudit.model.duplicates import RECURRING_COPY, Cause, Duplicate, Relation, RepeatedRange
from kaudit.model.severity import Confidence

_GAP = 1024
"""Repeats with so many offsets between them, or between what they repeat, are not of one range."""
_MOST_OPEN = 64
"""Ranges open at a time; each is of other producers."""
_MIN_DISTINCT = 3
"""Fewer different records in a row, under other timestamps, may be alike by chance."""
_DELIVERY_TIMEOUT_MS = 120_000
"""delivery.timeout.ms by default: a client's retry is no later."""
_REPLAYED_MS = 600_000
"""What a restarted application had not committed is not older than that: Connect flushes offsets every minute, consumers commit every five seconds."""


class Repeat(NamedTuple):
    """A repeat with the two records, and what is known of it beside that."""

    duplicate: Duplicate
    record: Content
    earlier: Content
    copies: int
    """Equal records in the partition."""
    same_layout: bool
    """Its batch has the same records at the same places as that of the earlier one."""


class _Open(Struct):
    """A range that may go on."""

    first: Repeat
    last: Repeat
    records: int = 1
    most_copies: int = 2
    contents: set[int] = field(default_factory=set)
    """At most _MIN_DISTINCT."""
    times: set[int | None] = field(default_factory=set)
    """At most two."""
    same_timestamps: bool = True
    same_layout: bool = True
    keyed: bool = True
    by_sequence: bool = True
    differs_in: set[str] = field(default_factory=set)
    headers: dict[bytes, bytes | None] = field(default_factory=dict)
    """Headers that both records of each repeat have, and whose value is another in each of them: of the last one."""

    def goes_on_with(self, repeat: Repeat) -> bool:
        last, duplicate = self.last.duplicate, repeat.duplicate
        return (
            0 < duplicate.offset - last.offset <= _GAP
            and 0 < duplicate.original_offset - last.original_offset <= _GAP
            and _has_same_time(repeat) == self.same_timestamps
        )

    def add(self, repeat: Repeat, content: int) -> None:
        headers = _headers(repeat)
        if repeat is self.first:
            self.headers, self.same_timestamps = headers, _has_same_time(repeat)
        else:
            self.records += 1
            self.headers = {
                key: headers[key] for key in self.headers.keys() & headers.keys() if headers[key] != self.headers[key]
            }
        self.last = repeat
        self.most_copies = max(self.most_copies, repeat.copies)
        self.same_layout = self.same_layout and repeat.same_layout
        self.keyed = self.keyed and bool(repeat.duplicate.dropped_by_key)
        self.by_sequence = self.by_sequence and repeat.duplicate.dropped_by_sequence
        if len(self.contents) < _MIN_DISTINCT:
            self.contents.add(content)
        if len(self.times) < 2:
            self.times.add(repeat.duplicate.timestamp)

    @property
    def recurs(self) -> bool:
        return self.most_copies >= RECURRING_COPY and not self.keeps_time

    @property
    def keeps_time(self) -> bool:
        """Whether all have the timestamps they had, and not all the same."""
        return self.same_timestamps and len(self.times) > 1

    def cause(self, *, has_id: bool) -> Cause:  # noqa: PLR0911 - one line for each
        """Return what put them there; `has_id`: their writer gave them ids."""
        first, last = self.first.duplicate, self.last.duplicate
        relation, distinct = first.relation, len(self.contents)
        if relation is Relation.SAME_SEQUENCE or first.original_transaction_outcome == "aborted":
            return Cause.RETRY
        if has_id and is_of_snapshot(self.first.record):
            return Cause.RE_SNAPSHOT
        if self.recurs and not has_id:
            return Cause.RECURRING
        again = Cause.REPROCESSING if distinct >= _MIN_DISTINCT else Cause.UNKNOWN
        if relation is Relation.OTHER_EPOCH:
            return Cause.RETRY if first.transaction_outcome is None else Cause.RESTART
        if relation is Relation.OTHER_PRODUCER_ID:
            if self.keeps_time:
                return Cause.MIRROR
            begins = first.sequence == 0 and _span(first.original_timestamp, last.original_timestamp) <= _REPLAYED_MS
            return Cause.RESTART if begins else again
        if relation is Relation.NO_PRODUCER_ID:
            if self.same_timestamps:
                soon = _span(first.timestamp, last.timestamp) <= _DELIVERY_TIMEOUT_MS
                return Cause.RETRY if soon and self.same_layout else Cause.MIRROR
            soon = 0 <= _span(first.original_timestamp, first.timestamp) <= _DELIVERY_TIMEOUT_MS
            return Cause.RETRY if soon and self.same_layout and distinct > 1 else again
        return again

    def confidence(self, cause: Cause, *, has_id: bool) -> Confidence:
        """Return how certain it is that they repeat the others; `has_id`: their writer gave them ids."""
        first, distinct = self.first.duplicate, len(self.contents)
        if has_id or first.relation is Relation.SAME_SEQUENCE or (self.keeps_time and distinct > 1):
            return Confidence.CERTAIN
        if first.original_transaction_outcome == "aborted":
            return Confidence.LIKELY
        if self.recurs or (first.relation is Relation.OTHER_SEQUENCE and not self.keeps_time):
            return Confidence.POSSIBLE
        anchored = cause in (Cause.RETRY, Cause.RESTART) and distinct >= _MIN_DISTINCT
        return Confidence.LIKELY if self.same_timestamps or anchored else Confidence.POSSIBLE


class RangeBuilder:
    """Takes the repeats of a partition in offset order. Memory: at most _MOST_OPEN ranges, two repeats each."""

    def __init__(self, identity: str, *, keys_recur: bool) -> None:
        self._identity = identity
        self._keys_recur = keys_recur
        self._open: dict[tuple[object, ...], _Open] = {}
        self._oldest = -1
        """No open range has its last repeat before this offset."""

    def add(self, repeat: Repeat, content: int) -> Sequence[RepeatedRange]:
        """Return the ranges that ended before this repeat; `content` is equal for equal records."""
        duplicate, ended = repeat.duplicate, []
        if duplicate.offset - self._oldest > _GAP:
            for key, each in list(self._open.items()):
                if duplicate.offset - each.last.duplicate.offset > _GAP:
                    ended.append(self._closed(self._open.pop(key)))
            self._oldest = min((each.last.duplicate.offset for each in self._open.values()), default=duplicate.offset)
        key = _producers(duplicate)
        found = self._open.get(key)
        if found is None or not found.goes_on_with(repeat):
            if found is not None:
                ended.append(self._closed(self._open.pop(key)))
            elif len(self._open) == _MOST_OPEN:
                ended.append(self._closed(self._open.pop(next(iter(self._open)))))
            self._open[key] = found = _Open(repeat, repeat)
        found.add(repeat, content)
        if self._identity != CONTENT:
            found.differs_in.update(differences(repeat.record, repeat.earlier))
        return ended

    def finish(self) -> Iterator[RepeatedRange]:
        """Yield the ranges that are still open."""
        yield from map(self._closed, self._open.values())
        self._open.clear()

    def _closed(self, found: _Open) -> RepeatedRange:
        first, last = found.first.duplicate, found.last.duplicate
        id_of = identifying(self._identity, found.first.record)
        cause = found.cause(has_id=id_of is not None)
        return RepeatedRange(
            offset=first.offset,
            last_offset=last.offset,
            original_offset=first.original_offset,
            original_last_offset=last.original_offset,
            record_count=found.records,
            timestamp=first.timestamp,
            original_timestamp=first.original_timestamp,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            original_producer_id=first.original_producer_id,
            original_producer_epoch=first.original_producer_epoch,
            relation=first.relation,
            cause=cause,
            confidence=found.confidence(cause, has_id=id_of is not None),
            same_timestamps=found.same_timestamps,
            differs_in=", ".join(sorted(found.differs_in)[:MOST_DIFFERENCES]) or None,
            recognisable_by=", ".join(self._marks(found, id_of)) or None,
        )

    def _marks(self, found: _Open, id_of: str | None) -> Sequence[str]:
        """Return by what a consumer recognises all of these repeats, the surest first."""
        marks = ["producer id, epoch and sequence"] if found.by_sequence else []
        names = sorted(f"header {_text(key)}" for key in found.headers if found.records > 1 or key.lower() in _IDS)
        marks += names if id_of is None else [id_of]
        marks += ["key"] if found.keyed and not self._keys_recur else []
        return marks


_IDS = frozenset({b"id", b"ce_id", b"event_id", b"event-id", b"eventid", b"message_id", b"message-id", b"messageid"})
"""Names of headers that identify an event, in lower case: of one repeat alone they show it."""


def _producers(found: Duplicate) -> tuple[object, ...]:
    return (
        *(found.relation, found.producer_id, found.producer_epoch),
        *(found.original_producer_id, found.original_producer_epoch),
        *(found.transaction_outcome, found.original_transaction_outcome),
    )


def _has_same_time(repeat: Repeat) -> bool:
    return repeat.duplicate.timestamp is not None and repeat.duplicate.timestamp == repeat.duplicate.original_timestamp


def _headers(repeat: Repeat) -> dict[bytes, bytes | None]:
    if not repeat.record.headers:
        return {}
    own, earlier = (dict(record.headers) for record in (repeat.record, repeat.earlier))
    return {key: value for key, value in own.items() if value is not None and earlier.get(key) == value}


def _span(first: int | None, last: int | None) -> int:
    """Milliseconds from one to the other, 0 where one is not known."""
    return 0 if first is None or last is None else last - first


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
