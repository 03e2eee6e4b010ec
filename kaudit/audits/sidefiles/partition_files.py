"""The files beside one partition's segments, each compared with the log.

Aborted transactions that the log itself shows, compared with the transaction indexes, or with what a broker's fetch lists.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from kaudit.audits.sidefiles.index_audit import compare_indexes
from kaudit.audits.sidefiles.leader_epoch_audit import compare_leader_epochs
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader, broken_off_at
from kaudit.formats.errors import Damage, WireError
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint
from kaudit.formats.sidefiles.indexes import AbortedTxn, TransactionIndex, parse_transaction_index
from kaudit.formats.sidefiles.producer_snapshot import validate_producer_snapshot
from kaudit.model.batch_fields import ABORT_MARKER, NO_OFFSET
from kaudit.model.coverage import EndWitness
from kaudit.model.side_files import (
    CorruptSnapshot,
    IndexBeyondLogEnd,
    KnownBeyondLogEnd,
    MissingAbortedTxn,
    SideFileFault,
    TransactionIndexMismatch,
    UnparsableSideFile,
    WrongAbortedTxn,
)
from kaudit.reading.rows import Rows
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT, LEADER_EPOCHS, FileKind, kind_by_name
from kaudit.source.layout import FetchedRange, SegmentFile, list_snapshots

_BASE_DIGITS = 20


class Abort(Struct, frozen=True):
    """An abort marker in the log.

    `first_offset` is the transaction's first data offset, None for a transaction without data here; `stable_offset` the
    first offset of the oldest other transaction open at the marker, None without one.
    """

    producer_id: int
    first_offset: int | None
    marker_offset: int
    stable_offset: int | None


class ExpectedRows(Struct, frozen=True):
    """The aborts whose markers lie in one segment.

    Where transactions that began before `log_start_offset` begin is not known. `complete` False: the log is damaged or
    compacted, and only the form of the rows is checked.
    """

    aborts: Sequence[Abort]
    log_start_offset: int
    complete: bool


def compare_transaction_indexes(
    files: SideFileReader, log: LogFacts, names: Mapping[str, SegmentFile]
) -> Iterator[TransactionIndexMismatch]:
    """Yield the indexes of one partition that differ from their segments."""
    complete = log.is_whole and log.ended is not None
    ended = log.ended if log.ended is not None else np.empty(0, dtype=[("type", np.int8), ("segment", np.int32)])
    aborted = ended[ended["type"] == ABORT_MARKER]
    start = max(log.directory.log_start_offset or 0, log.first_offset or 0)
    for number, segment in enumerate(log.directory.segments):
        name = f"{segment.base_offset:0{_BASE_DIGITS}d}.txnindex"
        own = aborted[aborted["segment"] == number]
        if segment.deleted or segment.is_cut or (name not in names and not len(own)):
            continue
        data = files.read(names[name]) if name in names else b""
        if data is None:
            continue
        index = parse_transaction_index(data) if data else TransactionIndex((), ())
        expected = ExpectedRows([_abort(row) for row in own] if complete else (), start, complete)
        found = compare_rows(name, number, index, expected)
        if found is not None:
            yield found


def compare_rows(
    file: str, segment: int, index: TransactionIndex, expected: ExpectedRows
) -> TransactionIndexMismatch | None:
    """Return all that differs, None if nothing does.

    A row for an abort without data is what brokers up to 2.7 write (KAFKA-10702). The last stable offset may name a
    transaction that begins after the marker: followers append both at once.
    """
    by_marker = {abort.marker_offset: abort for abort in expected.aborts}
    wrong: list[WrongAbortedTxn] = []
    previous = -1
    seen: set[int] = set()
    for row in index.rows:
        if row.last_offset <= previous:
            wrong.append(_wrong(row, f"its marker offset does not rise above {previous}"))
        previous = row.last_offset
        if expected.complete and row.last_offset >= expected.log_start_offset:
            seen.add(row.last_offset)
            reason = _difference(row, by_marker.get(row.last_offset), expected.log_start_offset)
            if reason is not None:
                wrong.append(_wrong(row, reason))
    missing = [
        MissingAbortedTxn(abort.producer_id, abort.first_offset, abort.marker_offset)
        for abort in expected.aborts
        if abort.first_offset is not None and abort.marker_offset not in seen
    ]
    if not (wrong or missing or index.damage):
        return None
    torn = (index.damage[0].position, index.damage[0].detail) if index.damage else None
    return TransactionIndexMismatch(file, segment, wrong, missing, torn)


def _difference(row: AbortedTxn, abort: Abort | None, log_start_offset: int) -> str | None:
    """Return how the log contradicts the row, None if it does not."""
    if abort is None:
        return "no abort marker lies at its last offset"
    if row.producer_id != abort.producer_id:
        return f"the marker is producer {abort.producer_id}'s"
    empty = row.first_offset == row.last_offset
    first = abort.marker_offset if abort.first_offset is None else abort.first_offset
    reason = None
    if row.first_offset != first and not empty and row.first_offset >= log_start_offset:
        reason = f"the transaction began at {first}"
    elif empty and abort.first_offset is not None:
        reason = f"the transaction has data from {abort.first_offset} on"
    elif not _stable_offset_holds(row, abort, log_start_offset):
        stable = abort.marker_offset + 1 if abort.stable_offset is None else abort.stable_offset
        reason = f"the last stable offset was {stable}"
    return reason


def _stable_offset_holds(row: AbortedTxn, abort: Abort, log_start_offset: int) -> bool:
    below_start = row.last_stable_offset < log_start_offset
    if abort.stable_offset is None:
        return row.last_stable_offset > abort.marker_offset or below_start
    return row.last_stable_offset == abort.stable_offset or (
        below_start and row.last_stable_offset <= abort.stable_offset
    )


def _wrong(row: AbortedTxn, reason: str) -> WrongAbortedTxn:
    return WrongAbortedTxn(
        row.position, row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset, reason
    )


def _abort(row: Rows) -> Abort:
    first, stable = int(row["first_offset"]), int(row["stable_offset"])
    return Abort(
        int(row["producer_id"]),
        None if first == NO_OFFSET else first,
        int(row["marker_offset"]),
        None if stable == NO_OFFSET else stable,
    )


def compare_listed_aborts(log: LogFacts, place: FetchedRange) -> Iterator[TransactionIndexMismatch]:
    """Yield what of a partition's aborted transactions the broker does not list to read_committed consumers.

    It lists those that end below the last stable offset, by producer id and first offset (FetchResponse, KIP-98). Of a
    transaction that began below what was read the log shows another beginning.
    """
    if log.ended is None or not log.is_whole:
        return
    ended = log.ended[log.ended["type"] == ABORT_MARKER]
    ended = ended[(ended["first_offset"] != NO_OFFSET) & (ended["marker_offset"] < place.stable_offset)]
    begun_before = {producer_id for producer_id, first in log.listed_aborts if first < place.readable_from}
    missing = [
        MissingAbortedTxn(producer_id, first, marker)
        for producer_id, first, marker in zip(
            ended["producer_id"].tolist(), ended["first_offset"].tolist(), ended["marker_offset"].tolist(), strict=True
        )
        if (producer_id, first) not in log.listed_aborts and producer_id not in begun_before
    ]
    if missing:
        yield TransactionIndexMismatch("", 0, [], missing, None)


_COMPARISONS: Mapping[str, Callable[[Any, LogFacts], Iterator[SideFileFault]]] = {
    LEADER_EPOCHS.name: compare_leader_epochs
}
"""By kind of file, the comparison of a parsed file with the log."""


class SideFileAudit(Struct, frozen=True):
    """What is wrong with the side files of one partition, and which of them know how far its log once went."""

    faults: Sequence[SideFileFault]
    witnesses: Sequence[EndWitness]


def compare_side_files(reader: SideFileReader, log: LogFacts) -> SideFileAudit:
    """Compare the side files of one partition with its log."""
    files = {file.name: file for file in log.directory.side_files}
    found: list[SideFileFault] = [*_corrupt_snapshots(reader, log, files)]
    if any(name.endswith((".index", ".timeindex")) for name in files):
        found += compare_indexes(reader, log, files)
        found += compare_transaction_indexes(reader, log, files)
    for segment in log.directory.segments:
        if segment.fetched is not None:
            found += compare_listed_aborts(log, segment.fetched)
    epochs: LeaderEpochCheckpoint | None = None
    for name, file in files.items():
        kind, _ = kind_by_name(name)
        if not kind.is_audited:
            continue
        parsed, faults = _parsed(kind, file, reader)
        found += faults
        if parsed is not None and kind.name in _COMPARISONS:
            found += _COMPARISONS[kind.name](parsed, log)
        if name == LEADER_EPOCH_CHECKPOINT:
            epochs = parsed
    indexes = [fault for fault in found if isinstance(fault, IndexBeyondLogEnd) and fault.lost]
    witnesses = [*_end_witnesses(reader, log, epochs)]
    witnesses += [EndWitness(index.file, index.end_offset) for index in indexes]
    found += _known_beyond(log, witnesses)
    return SideFileAudit(found, witnesses)


def _parsed(kind: FileKind, file: SegmentFile, reader: SideFileReader) -> tuple[Any, Sequence[UnparsableSideFile]]:
    """Return the parsed file, or None and why it does not parse; nothing of one that cannot be read."""
    assert kind.parse is not None
    data = reader.read(file)
    if data is None:
        return None, ()
    damages: Sequence[Damage | WireError]
    try:
        parsed = kind.parse(data)
        damages = getattr(parsed, "damage", ())
    except WireError as error:
        damages = (error,)
    for damage in damages:
        return None, [
            UnparsableSideFile(kind.name, file.name, damage.position, len(data), damage.reason.value, damage.detail)
        ]
    return parsed, ()


def _corrupt_snapshots(
    reader: SideFileReader, log: LogFacts, files: Mapping[str, SegmentFile]
) -> Iterator[CorruptSnapshot]:
    valid: str | None = None
    begun_at = {segment.base_offset: number for number, segment in reversed([*enumerate(log.directory.segments)])}
    for name in sorted(name for name in files if name.endswith(".snapshot")):
        offset = _offset_in(name)
        data = None if offset is None else reader.read(files[name])
        if offset is None or data is None:
            continue
        try:
            validate_producer_snapshot(data)
        except WireError as error:
            position = min(error.position, max(len(data) - 1, 0))
            # written for the segment it begins, else the last
            segment = begun_at.get(offset, len(log.directory.segments) - 1 if begun_at else None)
            yield CorruptSnapshot(name, segment, position, len(data), error.reason.value, error.detail, valid)
        else:
            valid = name


def _end_witnesses(reader: SideFileReader, log: LogFacts, epochs: LeaderEpochCheckpoint | None) -> Iterator[EndWitness]:
    """Yield the files that know how far the log went, of a log that grew while it was read only those that know no more than was read.

    A broker names a producer snapshot by the end of the log when it writes it (ProducerStateManager.takeSnapshot), begins a leader
    epoch there (LeaderEpochFileCache.assign), and takes both away when it truncates the log.
    """
    known = [EndWitness(file.name, file.base_offset) for file in list_snapshots(log.directory)[-1:]]
    known += [
        EndWitness(LEADER_EPOCH_CHECKPOINT, row.start_offset) for row in ([] if epochs is None else epochs.rows[-1:])
    ]
    segments = log.directory.segments
    has_grown = any(found.end_offset > log.end_offset for found in known) and any(
        reader.size_now(segment) != segment.size for segment in segments[-1:]
    )
    return (found for found in known if found.end_offset <= log.end_offset or not has_grown)


def _known_beyond(log: LogFacts, witnesses: Sequence[EndWitness]) -> Iterator[KnownBeyondLogEnd]:
    """Yield the files that know a later end of the log than its segments have; nothing where that end is not certain."""
    segments = log.directory.segments
    is_hidden = log.log_end_offset is None and any(segment.size for segment in segments)
    end = log.claimed_end
    if not segments or log.unread or is_hidden or end is None:
        return
    beyond = [(known.name, known.end_offset) for known in witnesses if known.end_offset > end]
    if beyond:
        last = max(known for _, known in beyond)
        cut = broken_off_at(log.directory, log.after_last_batch)
        of_index = cut is not None and all(
            name.endswith((".index", ".timeindex")) for name, known in beyond if known == last
        )
        yield KnownBeyondLogEnd(beyond, end, last - end if cut is not None and log.only_records else 0, cut, of_index)


def _offset_in(name: str) -> int | None:
    digits = name[:_BASE_DIGITS]
    return int(digits) if len(digits) == _BASE_DIGITS and digits.isdecimal() else None
