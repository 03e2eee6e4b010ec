"""The files beside one partition's segments, each compared with the log."""

from collections.abc import Iterator, Mapping

from kaudit.audits.sidefiles.index_audit import compare_indexes
from kaudit.audits.sidefiles.leader_epoch_audit import compare_leader_epochs
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.audits.sidefiles.transaction_index_audit import compare_listed_aborts, compare_transaction_indexes
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.producer_snapshot import validate_producer_snapshot
from kaudit.model.side_files import CorruptSnapshot
from kaudit.source.layout import SegmentFile

_BASE_DIGITS = 20


def compare_side_files(reader: SideFileReader, log: LogFacts) -> list[object]:
    """Return what is wrong with the side files of one partition: the types of model.side_files."""
    files = {file.name: file for file in log.directory.side_files}
    found: list[object] = [*_corrupt_snapshots(reader, log, files)]
    if any(name.endswith((".index", ".timeindex")) for name in files):
        found += compare_indexes(reader, log, files)
        found += compare_transaction_indexes(reader, log, files)
    for segment in log.directory.segments:
        if segment.fetched is not None:
            found += compare_listed_aborts(log, segment.fetched)
    return [*found, *compare_leader_epochs(reader, log, files)]


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
