"""What runs in Spark's tasks: Arrow batches in, Arrow batches out. Needs pyarrow, not pyspark.

Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
from msgspec import Struct

from kaudit import __version__
from kaudit.analysis.scan.batch_export import BatchWriter, SegmentTask, write_segment
from kaudit.analysis.scan.chunk_plan import ChunkSpec, cut
from kaudit.analysis.scan.partition_assembler import PartitionAssembler, read_range
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_replay import RowSink
from kaudit.analysis.scan.planning import Job
from kaudit.analysis.scan.shuffle_codec import pack, unpack
from kaudit.analysis.timelines.producer_histories import HistoryWriter, Piece
from kaudit.engines.memory import keep_freed_memory
from kaudit.model.finding import Finding
from kaudit.source.schemes import open_segment

ROWS_SCHEMA = "replay int, place int, number long, rows binary"
AUDIT_SCHEMA = "place int, audit binary, kept binary"
PIECES_SCHEMA = "lot int, place int, number long, table string, data binary"
_ROWS = pa.schema([("replay", pa.int32()), ("place", pa.int32()), ("number", pa.int64()), ("rows", pa.binary())])
_AUDIT = pa.schema([("place", pa.int32()), ("audit", pa.binary()), ("kept", pa.binary())])
_PIECES = pa.schema(
    [
        ("lot", pa.int32()),
        ("place", pa.int32()),
        ("number", pa.int64()),
        ("table", pa.string()),
        ("data", pa.binary()),
    ]
)
_OPENING = -1
"""Number of the row that opens a partition: it sorts before its ranges."""
_SLICE_BYTES = 256 << 20
"""What is kept of a large partition goes in slices: a row of Spark holds 2 GiB at most."""

Batches = Iterator[pa.RecordBatch]
ArrowMap = Callable[[Batches], Batches]
Seal = Callable[[PartitionAudit, Any], Any]
"""Makes of a partition and what took its rows what is kept of them."""


class Opening(Struct, frozen=True):
    """A partition replica to be replayed: what it is, and how many ranges will come."""

    job: Job
    ranges: int


class Stretch(Struct, frozen=True):
    """Ranges of one segment that lie side by side; `number` is the first one's place in the partition's order."""

    place: int
    replay: int
    number: int
    spec: ChunkSpec
    chunk_bytes: int


class Work(Struct):
    """What one reading task does: stretches to read, and the partitions that begin with them."""

    stretches: list[Stretch]
    openings: list[tuple[int, int, Opening]]
    """(place, replay, opening)"""
    version: str = __version__


class VersionMismatchError(RuntimeError):
    """Driver and workers run different kaudits: what one packs the other may misread."""


def read(plan: Batches) -> Batches:
    """Read, verify and compress the ranges of each row's work; one row out per range, one more per partition."""
    keep_freed_memory()
    for batch in plan:
        for data in batch.column("work"):
            work: Work = unpack(data.as_py())
            if work.version != __version__:
                raise VersionMismatchError(f"the driver runs kaudit {work.version}, this worker {__version__}")
            for place, replay, opening in work.openings:
                yield _row(replay, place, _OPENING, pack(opening))
            for stretch in work.stretches:
                for number, spec in enumerate(cut(stretch.spec, stretch.chunk_bytes), stretch.number):
                    yield _row(stretch.replay, stretch.place, number, pack(read_range(spec)))


def _row(replay: int, place: int, number: int, rows: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"replay": replay, "place": place, "number": number, "rows": rows}], _ROWS)


def replayer(keeper: Callable[[], RowSink | None], seal: Seal) -> ArrowMap:
    """Return the function that replays partitions from rows sorted by place and number.

    `keeper` is asked for each partition what takes its rows beside the audit; what `seal` makes of that comes along.
    """

    def replay(rows: Batches) -> Batches:
        feed, place, expected = None, -1, 0
        for batch in rows:
            for at in range(batch.num_rows):
                number, data = batch.column("number")[at].as_py(), batch.column("rows")[at].as_py()
                if number == _OPENING:
                    if feed is not None:
                        yield from _close(feed, place, expected, seal)
                    opening: Opening = unpack(data)
                    place, expected = batch.column("place")[at].as_py(), opening.ranges
                    feed = PartitionAssembler(opening.job, keeper())
                else:
                    assert feed is not None, f"place {place}: a range came before its partition was opened"
                    feed.take(unpack(data))
                    expected -= 1
        if feed is not None:
            yield from _close(feed, place, expected, seal)

    return replay


def _close(feed: PartitionAssembler, place: int, missing: int, seal: Seal) -> Batches:
    assert missing == 0, f"place {place}: {missing} ranges did not arrive"
    audit = feed.close()
    kept = pack(seal(audit, feed.kept))
    for start in range(0, len(kept), _SLICE_BYTES):
        row = {"place": place, "audit": None if start else pack(audit), "kept": kept[start : start + _SLICE_BYTES]}
        yield pa.RecordBatch.from_pylist([row], _AUDIT)


def whole(slices: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Any]]:
    """Put together what was kept of each place; slices of one follow each other."""
    for place, own in groupby(slices, key=operator.itemgetter(0)):
        yield place, unpack(b"".join(data for _, data in own))


class Lots(Struct, frozen=True):
    """Places 0 to `places` in at most `most` lots of neighbours: as much as the driver takes at once."""

    places: int
    most: int

    @property
    def count(self) -> int:
        """How many lots there are."""
        return max(min(self.places, self.most), 1)

    def of(self, place: int) -> int:
        """Return the lot of a place."""
        return place * self.count // max(self.places, 1)


def history_writing(
    writer: HistoryWriter, findings: Mapping[int, bytes], lots: Lots, *, remembers_markers: bool
) -> ArrowMap:
    """Return the function that turns histories into pieces of tables. `findings` by place, packed."""

    def write_histories(histories: Batches) -> Batches:
        slices = (
            (batch.column("place")[at].as_py(), batch.column("kept")[at].as_py())
            for batch in histories
            for at in range(batch.num_rows)
        )
        for place, history in whole(slices):
            own: Sequence[Finding] = unpack(findings[place]) if place in findings else ()
            yield from _pieces(lots.of(place), place, writer(history, own, remembers_markers))

    return write_histories


def batch_writing(writer: BatchWriter, lots: Lots) -> ArrowMap:
    """Return the function that reads segments and turns their batches into pieces of a table."""

    def write_histories(segments: Batches) -> Batches:
        for batch in segments:
            for data in batch.column("work"):
                task: SegmentTask = unpack(data.as_py())
                yield from _pieces(lots.of(task.number), task.number, write_segment(task, open_segment, writer))

    return write_histories


def _pieces(lot: int, place: int, pieces: Iterable[Piece]) -> Batches:
    for number, (table, data) in enumerate(pieces):
        row = {"lot": lot, "place": place, "number": number, "table": table, "data": data}
        yield pa.RecordBatch.from_pylist([row], _PIECES)
