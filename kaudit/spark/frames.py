"""The DataFrames of `kaudit.spark`, and how each is made of another."""

import json
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast
from weakref import WeakSet

from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.model.result import ScanResult
from kaudit.reading.shuffle_codec import unpack
from kaudit.scanning.options import ScanOptions
from kaudit.spark.assembling import CHUNK as CHUNK_KIND
from kaudit.spark.assembling import KEY
from kaudit.spark.judging import Judge
from kaudit.spark.options import ReadOptions, Time, absolute, read_options, time_ms
from kaudit.spark.partition_tables import assembled_rows, rows_of_histories
from kaudit.spark.rows import NEEDED, batches_to_runs
from kaudit.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_TASK_ROWS = (
    "topic string, partition int, replica string, kind int, segment_number int, first_position bigint, data binary"
)
_ORDER = (*KEY, "kind", "segment_number", "first_position")

_registered: "WeakSet[SparkSession]" = WeakSet()


class Read(TypedDict, total=False):
    """What to read. Offsets and times are inclusive; of a batch or record outside of them there is no row.

    `depth`: headers (CRCs are not checked), crc or records; `log_start_offset`, `compacted_topics` and `command_config` as of
    `kaudit.scan`; `partition_bytes`: bytes of segments that a task reads, about (a block of the store, 128 MiB where it
    has none, up to 1 GiB by the size of the input).
    """

    topics: Sequence[str]
    partitions: Sequence[int]
    first_offset: int
    last_offset: int
    since: Time
    until: Time
    depth: str
    log_start_offset: int
    compacted_topics: Sequence[str]
    command_config: str
    partition_bytes: int


class Judgement(TypedDict, total=False):
    """How to judge, as `kaudit.scan`: `since` and `until` choose findings by the time of their batch.

    `allow_incomplete`: what could not be read raises no error.
    """

    broker_version: str
    producer_ids: Sequence[int]
    since: Time
    until: Time
    now: Time
    allow_incomplete: bool


def register(spark: "SparkSession") -> None:
    """Register the data sources with a session: `spark.read.format("kaudit.batches")`, `kaudit.runs`, `kaudit.records`."""
    from kaudit.spark.sources import SOURCES  # noqa: PLC0415 - pyspark is an extra

    if spark not in _registered:  # Spark warns of each source that is replaced
        for source in SOURCES:
            spark.dataSource.register(source)
        _registered.add(spark)


def batches(spark: "SparkSession", paths: Paths, **options: Unpack[Read]) -> "DataFrame":
    """Return a row for each valid batch of the segments under `paths`.

    Raises:
        UsageError: an option is wrong. What cannot be found or read is said when an action reads.

    """
    return _load(spark, "batches", _read_options(paths, options))


def records(spark: "SparkSession", paths: Paths, **options: Unpack[Read]) -> "DataFrame":
    """Return a row for each record of data: offset, timestamp, key, value, headers, decompressed in tasks.

    Control records are left out; aborted transactions are not. Raises as `batches` does.
    """
    return _load(spark, "records", _read_options(paths, options))


def runs(source: "DataFrame | SparkSession", paths: Paths | None = None, **options: Unpack[Read]) -> "DataFrame":
    """Return runs and markers of producers, and the chunks that findings() and the others need: of `batches`, or of `paths`.

    `runs(spark, paths)` reads segments without a row for each batch in between. Of `batches` all columns must be there.
    Raises as `batches` does; `since` and `until` choose whole segments.
    """
    if paths is not None:
        return _load(cast("SparkSession", source), "runs", _read_options(paths, options))
    given = cast("DataFrame", source)
    missing = [name for name in NEEDED if name not in given.columns]
    if missing:
        raise UsageError(f"runs() needs all columns of batches(): {', '.join(missing)} missing")
    return given.select(*NEEDED).mapInArrow(batches_to_runs, spark_schema("runs", _options_of(given).to_text()))


def findings(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: Any,  # noqa: ANN401 - Read and Judgement
) -> "DataFrame":
    """Return what `kaudit scan` finds, of `runs` or of `paths`, in its order.

    Of `runs` that were made of some of the batches, those of which the others are not: they are read again, so that what a filter
    left out never looks lost, and findings about them are left out. `options` are those of Read, with `paths`, and of
    Judgement. `since` and `until` choose findings here.

    Raises:
        UsageError: an option is wrong.

    """
    read, asked, allow_incomplete = _asked(source, paths, options)
    assembled = _assembled(_runs_of(source, paths, read), read)
    judge = Judge(asked, allow_incomplete)
    return assembled.repartition(1).mapInArrow(judge.findings, spark_schema("findings"))


def timelines(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: Any,  # noqa: ANN401 - as above
) -> "DataFrame":
    """Return the history of every producer id, of `runs` or of `paths`: runs, markers, missing offsets and findings by offset.

    Raises as `findings` does.
    """
    return _histories(source, paths, options, "timelines")


def producers(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: Any,  # noqa: ANN401 - as above
) -> "DataFrame":
    """Return every producer id of every partition replica with the state a broker would rebuild, of `runs` or of `paths`.

    Raises as `findings` does.
    """
    return _histories(source, paths, options, "producers")


def scan_with(spark: "SparkSession", options: ScanOptions) -> ScanResult:
    """Return the whole result of an audit: one job. Local paths are made absolute.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no segment was found.

    """
    from kaudit.spark.errors import errors_of_tasks  # noqa: PLC0415 - pyspark is an extra

    asked = replace(options, paths=absolute(options.paths))
    read = ReadOptions(
        **{
            name: getattr(asked, name)
            for name in ("paths", "topics", "partitions", "log_start_offset", "compacted_topics", "digests")
        },
        depth=asked.depth.value,
        command_config=asked.cluster.command_config,
        cut=True,
    )
    with errors_of_tasks():
        assembled = _assembled(_load(spark, "runs", read), read)
        (packed,) = assembled.repartition(1).mapInArrow(Judge(asked).result, _TASK_ROWS).collect()
    result: ScanResult = unpack(bytes(packed["data"]))
    return result


def _histories(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any], table: str
) -> "DataFrame":
    read, asked, allow_incomplete = _asked(source, paths, options)
    chunks = _runs_of(source, paths, read)
    judge = Judge(asked, allow_incomplete)
    judged = _assembled(chunks, read).repartition(1).mapInArrow(judge.judged, _TASK_ROWS)
    return (
        _together(chunks, read)
        .unionByName(judged)
        .transform(_by_partition)
        .mapInArrow(partial(rows_of_histories, table=table), spark_schema(table))
    )


def _assembled(chunks: "DataFrame", read: ReadOptions) -> "DataFrame":
    return _by_partition(_together(chunks, read)).mapInArrow(assembled_rows, _TASK_ROWS)


def _together(chunks: "DataFrame", read: ReadOptions) -> "DataFrame":
    """Return the chunks with the plan of each partition replica, as rows that go from task to task."""
    spark = chunks.sparkSession
    only = chunks.where("chunk is not null").selectExpr(
        *KEY, f"{CHUNK_KIND} as kind", "segment_number", "first_position", "chunk as data"
    )
    return _load(spark, "partitions", read).unionByName(only)


def _by_partition(rows: "DataFrame") -> "DataFrame":
    return rows.repartition(*KEY).sortWithinPartitions(*_ORDER)


def _load(spark: "SparkSession", table: str, options: ReadOptions) -> "DataFrame":
    register(spark)
    return spark.read.format(f"kaudit.{table}").options(**options.to_text()).load()


def _runs_of(source: "DataFrame | SparkSession", paths: Paths | None, read: ReadOptions) -> "DataFrame":
    if paths is None:
        return cast("DataFrame", source)
    return _load(cast("SparkSession", source), "runs", replace(read, cut=True))


def _asked(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any]
) -> tuple[ReadOptions, ScanOptions, bool]:
    """Split options into what to read, how to judge, and whether to go on where something cannot be read."""
    judgement = {name: options.pop(name) for name in Judgement.__annotations__ if name in options}
    allow_incomplete = bool(judgement.pop("allow_incomplete", False))
    read = _options_of(cast("DataFrame", source)) if paths is None else _read_options(paths, cast("Read", options))
    if paths is None and options:
        raise UsageError(f"{', '.join(sorted(options))}: given where the log is read, in batches() or runs()")
    audit = {f"{name}_ms": time_ms(judgement.pop(name)) for name in ("since", "until", "now") if name in judgement}
    return read, read.scan_options(**audit, **judgement), allow_incomplete


def _read_options(paths: Paths, options: Read) -> ReadOptions:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    text = ReadOptions(paths=absolute([os.fspath(path) for path in given])).to_text()
    known = {name: value for name, value in options.items() if value is not None}
    for name in ("since", "until"):
        if name in known:
            known[name] = time_ms(cast("Time", known[name]))
    return read_options(text | {name: json.dumps(value) for name, value in known.items()})


def _options_of(frame: "DataFrame") -> ReadOptions:
    """Return what rows were read from: their schema says it, through filters, joins and tables of Spark.

    Raises:
        UsageError: it does not.

    """
    for field in frame.schema.fields:
        if "kaudit" in field.metadata:
            return read_options(field.metadata["kaudit"])
    raise UsageError(
        "these rows do not say what they were read from: keep the column topic of batches() or runs(), without an alias"
    )
