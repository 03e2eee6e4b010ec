"""Partitions to findings: the part of an audit that sees all of them together, in one task."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.errors import UnreadableInputError
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.audit import Audit
from kaudit.scanning.block_histories import metadata_of, read_blocks
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.scanning.versions import newest_profile
from kaudit.source.schemes import open_segment
from kaudit.spark.assembling import JUDGED, KEY, Assembled, Intervals
from kaudit.spark.schemas import to_batches

ROWS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replica", pa.string()),
        ("kind", pa.int32()),
        ("segment_number", pa.int32()),
        ("first_position", pa.int64()),
        ("data", pa.binary()),
    ]
)
"""Rows that go from task to task: a partition's plan, judgement or chunks, or what it was put together to."""

FINDINGS_AT_ONCE = 500
"""Rows of `findings` made at once: some 10 KB each."""


class Judged(Struct, frozen=True):
    """What is found of one partition replica, and whether its brokers renew a producer's timestamp with a marker."""

    findings: list[Finding]
    newest: Profile


class Judge(Struct, frozen=True):
    """Judges all partitions that were put together, by the options of an audit.

    `allow_incomplete`: what could not be read raises no error.
    """

    options: ScanOptions
    allow_incomplete: bool = False

    def findings(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the findings in the order of `kaudit scan`."""
        yield from to_batches("findings", map(finding_row, self._complete(rows).findings), FINDINGS_AT_ONCE)

    def judged(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield for each partition replica what was found of it."""
        result = self._complete(rows)
        own, newest = by_replica(result.findings), newest_profile(result.broker_version)
        for partition in result.partitions:
            key = (partition.topic, partition.partition, partition.replica)
            yield row(key, JUDGED, pack(Judged(own.get(key, []), newest)))

    def result(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result as one row."""
        yield row((None, None, None), JUDGED, pack(self._judge(rows)))

    def _complete(self, rows: Iterator[pa.RecordBatch]) -> ScanResult:
        result = self._judge(rows)
        return result if self.allow_incomplete else require_complete(result)

    def _judge(self, rows: Iterator[pa.RecordBatch]) -> ScanResult:
        held = (unpack(data.as_py()) for batch in rows for data in batch.column("data"))
        assembled: dict[object, Assembled] = {_key(entry): entry for entry in held}
        layout = find_input(self.options)
        chosen = [directory for directory in layout.partitions if _key_of(directory) in assembled]
        others = [directory for directory in layout.partitions if _key_of(directory) not in assembled]
        layout = replace(layout, partitions=chosen, unchosen=[*layout.unchosen, *others])
        audit = Audit(self.options, layout, open_segment, read_blocks(self.options, layout, metadata_of(open_segment)))
        for directory in chosen:
            partition = assembled[_key_of(directory)].partition
            partition.directory = directory
            audit.add_compared(partition)
        result = audit.result()
        return replace(result, findings=list(_of_given(result.findings, assembled.values())))


def require_complete(result: ScanResult) -> ScanResult:
    """Return a result of which nothing could not be read.

    Raises:
        UnreadableInputError: something could not: rows cannot say so.

    """
    unread = [note for note in result.not_audited if note.unreadable]
    if unread:
        more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise UnreadableInputError(
            f"{unread[0].path}: {unread[0].reason}{more}; with allow_incomplete=True the functions of kaudit.spark give what is "
            "found in the rest"
        )
    return result


def row(key: tuple[object, ...], kind: int, data: bytes) -> pa.RecordBatch:
    """Return one row that goes to another task."""
    fields = {
        **dict(zip(KEY, key, strict=True)),
        "kind": kind,
        "segment_number": -1,
        "first_position": -1,
        "data": data,
    }
    return pa.RecordBatch.from_pylist([fields], ROWS)


def _key(entry: Assembled) -> object:
    return _key_of(entry.partition.directory)


def _key_of(directory: object) -> object:
    return tuple(getattr(directory, name) for name in KEY)


def _of_given(findings: Iterable[Finding], assembled: Iterable[Assembled]) -> Iterator[Finding]:
    """Leave out what is found at batches that a filter left out."""
    filtered = {_key(entry): entry for entry in assembled if entry.given is not None}
    for finding in findings:
        entry = filtered.get((finding.topic, finding.partition, finding.replica))
        if entry is None or finding.position is None or finding.segment is None or _is_given(finding, entry):
            yield finding


def _is_given(finding: Finding, entry: Assembled) -> bool:
    names = [segment.name for segment in entry.partition.directory.segments]
    number = names.index(finding.segment) if finding.segment in names else -1
    intervals: Intervals = (entry.given or {}).get(number, ())
    if any(damage.damage.position == finding.position for damage in entry.partition.damages):
        return True  # damaged bytes are in no row
    return any(first <= (finding.position or 0) < stop for first, stop in intervals)
