"""`diff --by records` on Spark, with the functions of the local engine, by DataFrames alone: a session needs no SparkContext.

A task reads a partition, and a task matches a bucket of identities, each with files of its own while it runs; their rows are exchanged by
bucket. The driver gets what was read of each partition and the bounds of each bucket; one task puts the ledgers together in the order of the log.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.records.reading import IDENTIFIED, RecordTask, read_partition
from kaudit.audits.records.spill import Spill
from kaudit.diff.records.assembly import Assembly
from kaudit.diff.records.bucket import BucketTask, MatchedBucket, Sides, matched
from kaudit.diff.records.matching import Begins, Rows
from kaudit.diff.records.side import COPIED, PLACED
from kaudit.diff.records.windows import ReadWindows, WindowTask, read_windows
from kaudit.engines.progress import Progress
from kaudit.engines.record_ledger import Compared, Comparison
from kaudit.model.ledger import TopicLedger
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.scanning.options import ScanOptions
from kaudit.spark.jobs import collected, errors_in_one_line, from_here, named_job, on_disk, require_readable
from kaudit.spark.releases import arrow_table, by_number, work_frame
from kaudit.spark.tasks import Batches, cells, packed, prepare_worker, row, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "bucket int, kind int, data binary"
_READ, _SOURCE, _TARGET, _MATCHED, _PLACED, _COPIED, _LEFT_SOURCE, _LEFT_TARGET, _LEDGER, _MAP = range(10)
_BUCKET_BYTES = 64 << 20
"""Bytes of log whose records are one bucket, which is a task."""
_MOST_BITS = 12
_ROW_BYTES = 4 << 20


_OWN = ("directory", "number", "topic", "again")
"""What differs between tasks, beside the side that they read."""


class SparkRecords(Struct, frozen=True):
    """Compares on the session that `sessions` gives for so many jobs at once; a RecordEngine."""

    sessions: Callable[[int | None], AbstractContextManager["SparkSession"]]

    def compare(self, comparison: Comparison, options: ScanOptions, directory: Path, progress: Progress) -> Compared:
        """Return what was read, and the ledger of each pair; the maps of offsets are files in the directory."""
        bits = comparison.bits(_BUCKET_BYTES, _MOST_BITS)
        work = comparison.tasks(Path(), bits)
        progress.start(comparison.bytes)
        read_one = partial(_read, like=work[0], options=options, open_source=from_here())
        with (
            self._reading(work, options) as spark,
            on_disk(_questions(spark, work).mapInArrow(read_one, _ROWS)) as rows,
        ):
            with named_job(spark, "kaudit: read records"):
                answers = sorted(map(unpacked, _data(rows, _READ)), key=itemgetter(0))
            progress.advance(comparison.bytes)
            assembly = comparison.assembly([read for _, read in answers])
            match = partial(_match, bits=bits, partitions=assembly.partitions, cut_off=assembly.cut_off, begins=None)
            with on_disk(by_number(rows, 1 << bits, "bucket").mapInArrow(match, _ROWS)) as single:
                return assembly, _grouped(spark, single, match, assembly, directory)

    def windows(self, work: Sequence[WindowTask], options: ScanOptions, progress: Progress) -> Sequence[ReadWindows]:
        """Return the windows of each partition, in their order."""
        progress.start(sum(task.bytes for task in work))
        read = partial(_read_windows, like=work[0], options=options, open_source=from_here())
        with self._reading(work, options) as spark:
            questions = _questions(spark, [task.records for task in work]).mapInArrow(read, _ROWS)
            table = collected(spark, "kaudit: count records by windows", questions.select("bucket", "data"))
        progress.advance(sum(task.bytes for task in work))
        found = dict(zip(table["bucket"].to_pylist(), table["data"], strict=True))
        return [unpack(found[index].as_py(), ReadWindows) for index in range(len(work))]

    @contextmanager
    def _reading(
        self, work: Sequence[RecordTask] | Sequence[WindowTask], options: ScanOptions
    ) -> Iterator["SparkSession"]:
        """Give the session, whose workers see what is to be read."""
        directories = [each for task in work for each in task.directories]
        with self.sessions(options.jobs) as spark, errors_in_one_line():
            require_readable(spark, {each.log_dir: each.segments[-1] for each in directories})
            yield spark


def _grouped(
    spark: "SparkSession", single: "DataFrame", match: Callable[..., Batches], assembly: Assembly, directory: Path
) -> list[TopicLedger]:
    with named_job(spark, "kaudit: match records"):
        found = assembly.joined(_matched(single))
    begins = assembly.begins(found)
    with on_disk(single.mapInArrow(partial(match, begins=begins), _ROWS)) as grouped:
        with named_job(spark, "kaudit: match records that a side has several times"):
            found = assembly.joined([found, *_matched(grouped)])
        build = partial(_build, assembly=assembly.without_logs(), found=found, begins=begins)
        built = single.unionByName(grouped).coalesce(1).mapInArrow(build, _ROWS)
        with named_job(spark, "kaudit: put the ledgers together"):
            return _ledgers(built, directory)


def _questions(spark: "SparkSession", work: Sequence[RecordTask]) -> "DataFrame":
    """Return a row for each partition, each in a Spark partition of its own, the largest first."""
    largest = sorted(enumerate(work), key=lambda each: -each[1].directory.bytes)
    return work_frame(
        spark,
        (
            packed((index, task.identified.name == "target", {name: getattr(task, name) for name in _OWN}))
            for index, task in largest
        ),
    )


def _data(rows: "DataFrame", kind: int) -> list[bytes]:
    column: list[bytes] = arrow_table(rows.where(f"kind = {kind}").select("data"))["data"].to_pylist()
    return column


def _matched(rows: "DataFrame") -> Iterator[MatchedBucket]:
    return (unpack(data, MatchedBucket) for data in _data(rows, _MATCHED))


def _ledgers(built: "DataFrame", directory: Path) -> list[TopicLedger]:
    """Return the ledgers of the rows that `_build` gives: each pair's ledger before its map of offsets."""
    ledgers: list[TopicLedger] = []
    for each in built.toLocalIterator(prefetchPartitions=True):
        if each["kind"] == _LEDGER:
            file = directory / f"map.{len(ledgers)}"
            file.write_bytes(b"")
            ledgers.append(replace(unpack(bytes(each["data"]), TopicLedger), map_file=str(file)))
        else:
            with (directory / f"map.{each['bucket']}").open("ab") as map_file:
                map_file.write(each["data"])
    return ledgers


def _read(questions: Batches, like: RecordTask, options: ScanOptions, open_source: OpenSource) -> Batches:
    """Read the partition of each question; yield what was read of it, and its records by bucket."""
    prepare_worker()
    for index, of_target, own in (unpacked(work) for (work,) in cells(questions, "work")):
        with tempfile.TemporaryDirectory(prefix="kaudit-ledger-") as place:
            spill = Spill(place, "identified", IDENTIFIED)
            done = read_partition(replace(like, identified=spill, **own), options, open_source)
            yield row(_ROWS, 0, _READ, packed((index, done)))
            yield from _spilled(spill, _TARGET if of_target else _SOURCE)


def _read_windows(questions: Batches, like: WindowTask, options: ScanOptions, open_source: OpenSource) -> Batches:
    """Read the partition of each question by windows; yield a row for each, its bucket being its place among the tasks."""
    prepare_worker()
    for index, _, own in (unpacked(work) for (work,) in cells(questions, "work")):
        task = replace(like, records=replace(like.records, **own))
        yield row(_ROWS, index, _READ, pack(read_windows(task, options, open_source)))


def _spilled(spill: Spill, kind: int) -> Batches:
    for number in spill.numbers():
        for part in spill.parts(number):
            at_once = _ROW_BYTES // part.itemsize
            for first in range(0, len(part), at_once):
                yield row(_ROWS, number, kind, part[first : first + at_once].tobytes())


def _match(rows: Batches, bits: int, partitions: int, *, cut_off: bool, begins: Begins | None) -> Batches:
    """Match the bucket of a task: first of all records, then, with `begins`, of those that a side has several times."""
    prepare_worker()
    with tempfile.TemporaryDirectory(prefix="kaudit-ledger-") as place:
        whole = np.empty(0, dtype=np.uint64)
        spills = [Spill(place, name, IDENTIFIED) for name in ("source", "target")]
        placed, copied = Spill(place, "placed", PLACED), Spill(place, "copied", COPIED)
        sides = Sides.of((spills[0], spills[1]), (placed, copied), (whole, whole))
        task = BucketTask(0, bits, sides, partitions, cut_off, begins)
        kinds = (_SOURCE, _TARGET) if begins is None else (_LEFT_SOURCE, _LEFT_TARGET)
        _take(rows, dict(zip(kinds, task.spills, strict=True)))
        for each in task.of_each_bucket():
            yield row(_ROWS, each.number, _MATCHED, pack(matched(each)))
        yield from _spilled(placed, _PLACED)
        yield from _spilled(copied, _COPIED)
        for spill, kind in zip((sides.left_source, sides.left_target), (_LEFT_SOURCE, _LEFT_TARGET), strict=True):
            yield from _spilled(spill, kind)


def _take(rows: Batches, spills: dict[int, Spill]) -> None:
    """Write the rows of these kinds under their buckets."""
    for bucket, kind, own in _parts(rows, {kind: spill.dtype for kind, spill in spills.items()}):
        spills[kind].append(np.full(len(own), bucket), own)


def _parts(rows: Batches, dtypes: dict[int, Any]) -> Iterator[tuple[int, int, Rows]]:
    """Yield bucket, kind and rows of these kinds."""
    for batch in rows:
        numbers = zip(batch.column("bucket").to_pylist(), batch.column("kind").to_pylist(), strict=True)
        for (bucket, kind), data in zip(numbers, batch.column("data"), strict=True):
            if kind in dtypes:
                yield bucket, kind, np.frombuffer(data.as_buffer(), dtype=dtypes[kind])


def _build(rows: Batches, assembly: Assembly, found: MatchedBucket, begins: Begins) -> Batches:
    """Put the ledgers together from all matched records, in the one task that has them; yield each with its map."""
    prepare_worker()
    with tempfile.TemporaryDirectory(prefix="kaudit-ledger-") as place:
        placed, copied = assembly.spills(Path(place))
        spills = {_PLACED: placed, _COPIED: copied}
        cuts = dict(zip(spills, assembly.cuts(), strict=True))
        for _, kind, own in _parts(rows, {kind: spill.dtype for kind, spill in spills.items()}):
            spills[kind].append(np.searchsorted(cuts[kind], own["place"], side="right"), own)
        for index, ledger in enumerate(assembly.ledgers(Path(place), found, begins)):
            yield row(_ROWS, index, _LEDGER, pack(ledger))
            with Path(ledger.map_file).open("rb") as file:
                while data := file.read(_ROW_BYTES):
                    yield row(_ROWS, index, _MAP, data)
