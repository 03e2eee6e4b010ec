"""The files beside one partition's segments, each compared with the log."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kaudit.audits.sidefiles.index_audit import compare_indexes
from kaudit.audits.sidefiles.leader_epoch_audit import compare_leader_epochs
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.audits.sidefiles.transaction_index_audit import compare_listed_aborts, compare_transaction_indexes
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.producer_snapshot import validate_producer_snapshot
from kaudit.model.side_files import CorruptSnapshot, SideFileFault, UnparsableSideFile
from kaudit.source.file_kinds import LEADER_EPOCHS, FileKind, kind_by_name
from kaudit.source.layout import SegmentFile

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
    for name, file in files.items():
        kind, _ = kind_by_name(name)
        if kind.is_audited:
            found += _audit(kind, file, reader, log)
    return found


def _audit(kind: FileKind, file: SegmentFile, reader: SideFileReader, log: LogFacts) -> Iterator[SideFileFault]:
    """Yield that a file does not parse, else what its kind's comparison with the log yields."""
    assert kind.parse is not None
    data = reader.read(file)
    if data is None:
        return
    try:
        parsed = kind.parse(data)
    except WireError as error:
        yield UnparsableSideFile(kind.name, file.name, error.position, len(data), error.reason.value, error.detail)
        return
    for damage in getattr(parsed, "damage", ()):
        yield UnparsableSideFile(kind.name, file.name, damage.position, len(data), damage.reason.value, damage.detail)
        return
    if kind.name in _COMPARISONS:
        yield from _COMPARISONS[kind.name](parsed, log)


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


def _offset_in(name: str) -> int | None:
    digits = name[:_BASE_DIGITS]
    return int(digits) if len(digits) == _BASE_DIGITS and digits.isdecimal() else None
