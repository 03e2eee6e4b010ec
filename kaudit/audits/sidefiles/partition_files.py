"""The files beside one partition's segments, each compared with the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kaudit.audits.sidefiles.index_audit import compare_indexes
from kaudit.audits.sidefiles.leader_epoch_audit import compare_leader_epochs
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.audits.sidefiles.transaction_index_audit import compare_listed_aborts, compare_transaction_indexes
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint
from kaudit.formats.sidefiles.producer_snapshot import validate_producer_snapshot
from kaudit.model.side_files import CorruptSnapshot, KnownBeyondLogEnd, SideFileFault, UnparsableSideFile
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT, LEADER_EPOCHS, FileKind, kind_by_name
from kaudit.source.layout import SegmentFile, list_snapshots

_BASE_DIGITS = 20
_COMPARISONS: Mapping[str, Callable[[Any, LogFacts], Iterator[SideFileFault]]] = {
    LEADER_EPOCHS.name: compare_leader_epochs
}
"""By kind of file, the comparison of a parsed file with the log."""


def compare_side_files(reader: SideFileReader, log: LogFacts) -> list[SideFileFault]:
    """Return what is wrong with the side files of one partition."""
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
    found += _known_beyond(reader, log, epochs)
    return found


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


def _known_beyond(
    reader: SideFileReader, log: LogFacts, epochs: LeaderEpochCheckpoint | None
) -> Iterator[KnownBeyondLogEnd]:
    """Yield the files that know a later end of the log than its segments have; nothing where that end is not certain.

    A broker names a producer snapshot by the end of the log when it writes it (ProducerStateManager.takeSnapshot), begins a leader
    epoch there (LeaderEpochFileCache.assign), and takes both away when it truncates the log.
    """
    segments = log.directory.segments
    end = max([log.log_end_offset or 0, *(segment.base_offset for segment in segments[-1:])])
    is_hidden = log.log_end_offset is None and any(segment.size for segment in segments)
    if not segments or log.unread or is_hidden or any(each.segment == len(segments) - 1 for each in log.damages):
        return
    known = [(file.name, file.offset) for file in list_snapshots(log.directory)[-1:]]
    known += [(LEADER_EPOCH_CHECKPOINT, row.start_offset) for row in ([] if epochs is None else epochs.rows[-1:])]
    beyond = [(name, offset) for name, offset in known if offset > end]
    # side files are younger than a live log's end that was read
    if beyond and reader.size_now(segments[-1]) == segments[-1].size:
        yield KnownBeyondLogEnd(beyond, end)


def _offset_in(name: str) -> int | None:
    digits = name[:_BASE_DIGITS]
    return int(digits) if len(digits) == _BASE_DIGITS and digits.isdecimal() else None
