"""The files beside one partition's segments, each compared with the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaudit.audits.sidefiles.index_audit import compare_indexes
from kaudit.audits.sidefiles.leader_epoch_audit import compare_leader_epochs
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader, broken_off_at
from kaudit.audits.sidefiles.transaction_index_audit import compare_listed_aborts, compare_transaction_indexes
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint
from kaudit.formats.sidefiles.producer_snapshot import validate_producer_snapshot
from kaudit.model.coverage import EndWitness
from kaudit.model.side_files import (
    CorruptSnapshot,
    IndexBeyondLogEnd,
    KnownBeyondLogEnd,
    SideFileFault,
    UnparsableSideFile,
)
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT, LEADER_EPOCHS, FileKind, kind_by_name
from kaudit.source.layout import SegmentFile, list_snapshots

_BASE_DIGITS = 20
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
    try:
        parsed = kind.parse(data)
    except WireError as error:
        return None, [
            UnparsableSideFile(kind.name, file.name, error.position, len(data), error.reason.value, error.detail)
        ]
    for damage in getattr(parsed, "damage", ()):
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
