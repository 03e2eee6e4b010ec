"""Whether a session begins with records that an earlier one wrote: both are read side by side from there, to where they part.

Where they may begin to be equal is known by whole batches (restarts.py), or by the first record of the session, which is
searched for in the log before it where records are decoded.
"""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.repeats.identities import CONTENT
from kaudit.audits.repeats.sessions import Handover, Session, merged_ranges, unlike_others
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records import Record, read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.content_rows import read_batches
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.reading.identity.parts import PartReader
from kaudit.reading.record_content import MAX_BATCH_BYTES, batch_bytes, content_of
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

MIN_RECORDS = 3
"""Fewer equal records in a row may be chance, unless their timestamps are equal too."""
FOLLOWED_BYTES = 256 << 20
"""Read of one partition where records are compared side by side."""
_PLACES = 8
"""Places of one earlier session from which records are compared, the last ones: a record that recurs is no evidence."""
_PROOF = 64
"""So many records of fewer than MIN_RECORDS kinds show that equal ones are what is written here."""
_LISTED = 100_000
"""Records held of one comparison; more are counted."""
_WINDOW_BYTES = 256 << 10

Place = tuple[BoundaryBatch, int]
"""A batch, and the offset of a record in it."""


class Places(Struct):
    """Where earlier sessions wrote the first record of a later one: by number of the handover, and (id, epoch)."""

    found: Mapping[tuple[int, int, int], Sequence[Place]]
    identity: str
    """By which records are compared, as `--identity` names it."""
    not_exhausted: int = 0
    """Sessions before which there is more of the log than was searched."""


class _Record(Struct, frozen=True):
    content: int
    timestamp: int
    offset: int
    batch: BoundaryBatch


class _Copy(Struct):
    """Records in a row that both sessions have: of each the first _LISTED, and the batches they lie in."""

    before: Session
    again: list[_Record]
    copied: list[_Record]
    records: int = 0
    last_again: int = -1
    last_copied: int = -1
    same_times: bool = True
    ends: bool = False
    """One of the sessions has no more records."""


def places_before(
    handovers: Sequence[Handover],
    directory: PartitionDirectory,
    open_source: OpenSource,
    identity: str,
    most_bytes: int | None = None,
) -> Places:
    """Search the log before each session for its first record, in one reading: all of it, or at most so many bytes."""
    reader = IdentityReader(parse_identity(identity))
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    not_exhausted = 0
    for number, handover in enumerate(handovers):
        first = handover.session.head[0]
        data = batch_bytes(first, directory, open_source)
        columns, _ = reader.columns([] if data is None else [data])
        if not len(columns.offsets):
            continue
        wanted[int(columns.identities[0, 0])].append(number)
        room = sum(segment.size for segment in directory.segments) if most_bytes is None else most_bytes
        for segment in range(first.segment, -1, -1):
            stop = first.position if segment == first.segment else directory.segments[segment].size
            ranges[segment].append((max(stop - room, 0), stop))
            room -= stop
            if room <= 0:
                break
        not_exhausted += room < 0
    found: defaultdict[tuple[int, int, int], deque[Place]] = defaultdict(lambda: deque(maxlen=_PLACES))
    contents = np.array(list(wanted), dtype=np.uint64)
    try:
        for batch, producer, content, offset in _hits(ranges, contents, directory, open_source, reader):
            for number in wanted[content]:
                if batch.last_offset < handovers[number].session.first_offset:
                    found[number, *producer].append((batch, offset))
    except OSError:
        return Places(found, identity, not_exhausted)  # reported by the audit itself
    return Places(found, identity, not_exhausted)


def _hits(
    ranges: Mapping[int, list[tuple[int, int]]],
    wanted: NDArray[np.uint64],
    directory: PartitionDirectory,
    open_source: OpenSource,
    reader: IdentityReader,
) -> Iterator[tuple[BoundaryBatch, tuple[int, int], int, int]]:
    """Yield the records with a wanted first half of an identity: batch, producer id and epoch, this half, offset."""
    for segment, own in sorted(ranges.items()):
        file = directory.segments[segment]
        if file.text is not None:
            continue
        with closing(open_source(file)) as source:
            for start, stop in merged_ranges(own):
                begin = boundary_from(source, start, file.size) if start else 0
                for piece in stream_batches(source, ByteRange(begin, stop, file.size), expected_offset=None):
                    rows = _of_producers(piece.batches)
                    for numbers, data in read_batches(source, rows):
                        columns, _ = reader.columns(data)
                        hits = np.flatnonzero(np.isin(columns.identities[:, 0], wanted))
                        at = np.array(numbers)[columns.batches[hits]].tolist()
                        values = columns.identities[hits, 0].tolist(), columns.offsets[hits].tolist()
                        for row, content, offset in zip(at, *values, strict=True):
                            (batch,) = boundary_batches(rows[row : row + 1], 0, segment)
                            producer = int(rows["producer_id"][row]), int(rows["producer_epoch"][row])
                            yield batch, producer, content, offset


def _of_producers(batches: Batches) -> Batches:
    """The data batches of producers that are outside transactions."""
    data = batches["attributes"] & (CONTROL_FLAG | TRANSACTIONAL_FLAG) == 0
    rows: Batches = batches[data & (batches["magic"] == CURRENT_MAGIC) & (batches["producer_id"] >= 0)]
    return rows


class SessionReader:
    """Reads records of sessions again, each batch once as long as it is among the last few."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource, identity: str) -> None:
        self._parts = None if identity == CONTENT else PartReader(parse_identity(identity))
        self._directory = directory
        self._open = open_source
        self._room = FOLLOWED_BYTES

    def of(self, batches: Iterable[BoundaryBatch]) -> list[_Record]:
        """Return the records of these batches; a batch that cannot be read has none."""
        return [record for batch in batches for record in self._read(batch)]

    def after(self, session: Session, place: Place, last_offset: int | None = None) -> Generator[_Record]:
        """Yield the records of a session from a place on, up to `last_offset`. Raises OSError."""
        first, offset = place
        for segment in range(first.segment, len(self._directory.segments)):
            file = self._directory.segments[segment]
            begin = first.position if segment == first.segment else 0
            with closing(self._open(file)) as source:
                where = ByteRange(begin, file.size, file.size)
                for piece in stream_batches(source, where, expected_offset=None, window_bytes=_WINDOW_BYTES):
                    rows = _of_producers(piece.batches)
                    own = (rows["producer_id"] == session.producer_id) & (
                        rows["producer_epoch"] == session.producer_epoch
                    )
                    for batch in boundary_batches(rows[own], 0, segment):
                        if last_offset is not None and batch.base_offset > last_offset:
                            return
                        yield from (record for record in self._read(batch) if record.offset >= offset)
                    self._room -= piece.read_to - begin
                    begin = piece.read_to
                    if self._room < 0:
                        return

    def _read(self, batch: BoundaryBatch) -> list[_Record]:
        data = batch_bytes(batch, self._directory, self._open)
        if data is None:
            return []
        try:
            records = read_records(memoryview(data), MAX_BATCH_BYTES)
            return [_Record(self._content(record), record.timestamp, record.offset, batch) for record in records]
        except WireError:
            return []  # reported by the audit itself

    def _content(self, record: Record) -> int:
        parts = None if self._parts is None else self._parts.read(record)
        return content_of(record) if parts is None else hash(parts)


def compare_sessions(
    handovers: Sequence[Handover], directory: PartitionDirectory, open_source: OpenSource, places: Places | None = None
) -> tuple[list[RepeatedSession], list[RepeatedEpoch]]:
    """Return the sessions that begin with records a predecessor wrote: another producer id's, and its own last epoch.

    `places` as of `places_before`; without, the first record is looked for among the predecessor's last batches.
    """
    reader = SessionReader(directory, open_source, CONTENT if places is None else places.identity)
    sessions: list[RepeatedSession] = []
    epochs: list[RepeatedEpoch] = []
    for number, handover in enumerate(handovers):
        session, best = handover.session, None
        for before in handover.before:
            try:
                found = _longest_copy(reader, session, before, _places(reader, number, handover, before, places))
            except OSError:
                continue  # reported by the audit itself
            if found is not None and (best is None or found.records > best.records):
                best = found
        if best is None:
            continue
        if best.before.producer_id == session.producer_id:
            epochs.append(_repeated_epoch(reader, session, best))
        else:
            sessions.append(_repeated(session, best))
    return sessions, epochs


def _places(
    reader: SessionReader, number: int, handover: Handover, before: Session, places: Places | None
) -> Sequence[Place]:
    if places is not None:
        found = places.found.get((number, before.producer_id, before.producer_epoch), ())
        return [place for place in found if place[1] <= before.last_offset]
    head = reader.of(handover.session.head[:1])
    equal = [record for record in reader.of(before.tail) if head and record.content == head[0].content]
    return [(record.batch, record.offset) for record in equal[-_PLACES:]]


def _longest_copy(reader: SessionReader, session: Session, before: Session, places: Sequence[Place]) -> _Copy | None:
    """Return the longest copy that begins at one of these places, the first of several; None where it may be chance."""
    best: _Copy | None = None
    for place in places:
        found = _copy(reader, session, before, place)
        if best is None or found.records > best.records:
            best = found
    if best is None or not best.records:
        return None
    if len({record.content for record in best.copied}) >= MIN_RECORDS:
        return best
    # one record is enough if it is the only one like it, and its time is the same to the millisecond
    tail = [record.content for record in reader.of(before.tail)]
    return best if best.same_times and len(set(tail)) == len(tail) > 1 else None


def _copy(reader: SessionReader, session: Session, before: Session, place: Place) -> _Copy:
    found = _Copy(before, [], [])
    head = session.head[0]
    with (
        closing(reader.after(session, (head, head.base_offset))) as ours,
        closing(reader.after(before, place, before.last_offset)) as theirs,
    ):
        contents: set[int] = set()
        for copied in theirs:
            again = next(ours, None)
            if again is None or again.content != copied.content:
                found.ends = again is None
                return found
            found.records += 1
            found.last_again, found.last_copied = again.offset, copied.offset
            found.same_times = found.same_times and again.timestamp == copied.timestamp >= 0
            if found.records <= _LISTED:
                found.again.append(again)
                found.copied.append(copied)
            if len(contents) < MIN_RECORDS:
                contents.add(copied.content)
            if found.records == _PROOF and len(contents) < MIN_RECORDS:
                return found
    found.ends = True
    return found


def _repeated(session: Session, copy: _Copy) -> RepeatedSession:
    return RepeatedSession(
        producer_id=session.producer_id,
        producer_epoch=session.producer_epoch,
        first_offset=copy.again[0].offset,
        last_offset=copy.last_again,
        previous_id=copy.before.producer_id,
        previous_epoch=copy.before.producer_epoch,
        copied_first=copy.copied[0].offset,
        copied_last=copy.last_copied,
        records=copy.records,
        same_times=copy.same_times,
        previous=copy.copied[0].batch,
        batch=session.head[0],
    )


def _repeated_epoch(reader: SessionReader, session: Session, copy: _Copy) -> RepeatedEpoch:
    """Whether other records around are like these shows in the first batches of `session` and the last ones before it."""
    tail = [*(each for each in reader.of(copy.before.tail) if each.offset > copy.last_copied), *copy.copied]
    head = [*copy.again, *(each for each in reader.of(session.head) if each.offset > copy.last_again)]
    head_keys, tail_keys = (
        [(record.content, record.timestamp if copy.same_times else 0) for record in side] for side in (head, tail)
    )
    return RepeatedEpoch(
        producer_id=session.producer_id,
        producer_epoch=session.producer_epoch,
        previous_epoch=copy.before.producer_epoch,
        first_offset=copy.again[0].offset,
        last_offset=copy.last_again,
        copied_first=copy.copied[0].offset,
        copied_last=copy.last_copied,
        copied=_batches_of(copy.copied),
        again=_batches_of(copy.again),
        records=copy.records,
        distinct=unlike_others(tail_keys, head_keys, len(copy.again)),
        same_times=copy.same_times,
        to_the_end=copy.ends,
    )


def _batches_of(records: Sequence[_Record]) -> list[BoundaryBatch]:
    return list({record.batch.position + (record.batch.segment << 40): record.batch for record in records}.values())
