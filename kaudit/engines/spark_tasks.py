"""What runs in Spark's tasks: Arrow batches in, Arrow batches out. Needs pyarrow, not pyspark.

Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from kaudit import __version__
from kaudit.pipeline.exchange import pack, unpack
from kaudit.pipeline.partition import RowKeeper
from kaudit.pipeline.plan import cut
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.schedule import Job, PartitionFeed, read_range

PLAN_SCHEMA = "task int, work binary"
ROWS_SCHEMA = "replay int, place int, number long, rows binary"
AUDIT_SCHEMA = "place int, audit binary"
_ROWS = pa.schema([("replay", pa.int32()), ("place", pa.int32()), ("number", pa.int64()), ("rows", pa.binary())])
_AUDIT = pa.schema([("place", pa.int32()), ("audit", pa.binary())])
_OPENING = -1
"""Number of the row that opens a partition: it sorts before its ranges."""

Batches = Iterator[pa.RecordBatch]
ArrowMap = Callable[[Batches], Batches]


@dataclass(frozen=True, slots=True)
class Opening:
    """A partition replica to be replayed: what it is, how many ranges will come, and what the user says of its topic."""

    job: Job
    ranges: int
    says_compacted: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """Ranges of one segment that lie side by side; `number` is the first one's place in the partition's order."""

    place: int
    replay: int
    number: int
    spec: ChunkSpec
    chunk_bytes: int


@dataclass(slots=True)
class Work:
    """What one reading task does: stretches to read, and the partitions that begin with them."""

    stretches: list[Stretch]
    openings: list[tuple[int, int, Opening]]
    """(place, replay, opening)"""
    version: str = __version__


class VersionMismatchError(RuntimeError):
    """Driver and workers run different kaudits: what one packs the other may misread."""


def read(plan: Batches) -> Batches:
    """Read, verify and compress the ranges of each row's work; one row out per range, one more per partition."""
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


def replayer(keeper: Callable[[], RowKeeper | None]) -> ArrowMap:
    """Return the function that replays partitions from rows sorted by place and number.

    `keeper` is asked for each partition what takes its rows beside the audit; that comes along.
    """

    def replay(rows: Batches) -> Batches:
        feed, place, opening, expected = None, -1, None, 0
        for batch in rows:
            for at in range(batch.num_rows):
                number, data = batch.column("number")[at].as_py(), batch.column("rows")[at].as_py()
                if number == _OPENING:
                    if feed is not None and opening is not None:
                        yield _close(feed, place, expected, compacted=opening.says_compacted)
                    opening = cast("Opening", unpack(data))
                    place, expected = batch.column("place")[at].as_py(), opening.ranges
                    feed = PartitionFeed(opening.job, keeper())
                else:
                    assert feed is not None, f"place {place}: a range came before its partition was opened"
                    feed.take(unpack(data))
                    expected -= 1
        if feed is not None and opening is not None:
            yield _close(feed, place, expected, compacted=opening.says_compacted)

    return replay


def _close(feed: PartitionFeed, place: int, missing: int, *, compacted: bool) -> pa.RecordBatch:
    assert missing == 0, f"place {place}: {missing} ranges did not arrive"
    audit = pack((feed.close(compacted=compacted), feed.kept))
    return pa.RecordBatch.from_pylist([{"place": place, "audit": audit}], _AUDIT)
