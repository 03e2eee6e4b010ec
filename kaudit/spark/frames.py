"""The DataFrames of `kaudit.spark`, and how each is made of another."""

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast
from weakref import WeakSet

import pyarrow as pa
from msgspec.structs import replace

from kaudit.engines.kept_rows import HISTORIES
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, record_ledger
from kaudit.engines.rows import NO_ROWS, Rows
from kaudit.errors import UsageError
from kaudit.model.replicas import Replica
from kaudit.model.result import ScanResult
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.report.machine.tables import matched_range_rows, record_range_rows
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import (
    STEP_ORDER,
    Evidence,
    Histories,
    WithIncidents,
    make_findings,
    require_complete,
    scan_result,
)
from kaudit.spark.options import ReadOptions, Time, absolute, read_options, time_ms
from kaudit.spark.readers import columns_of, read_parts, reader_of
from kaudit.spark.record_ledger import SessionRecords
from kaudit.spark.releases import HAS_DATA_SOURCES, arrow_table, by_number, frame_of
from kaudit.spark.rows import NEEDED, batches_to_runs
from kaudit.spark.schemas import arrow_schema, errors_of_tasks, spark_schema, to_batches
from kaudit.spark.session import SparkOptions, session
from kaudit.spark.tasks import CHUNK, CHUNK_ORDER, KEY, STEPS, replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_registered: "WeakSet[SparkSession]" = WeakSet()


class Read(TypedDict, total=False):
    """What to read. Offsets and times are inclusive; of a batch or record outside of them there is no row.

    `depth`: headers (CRCs are not checked), crc or records; `log_start_offset`, `compacted_topics` and `command_config` as of
    `kaudit.scan`; `partition_bytes`: bytes of segments that a task reads, about (a block of the store, 128 MiB where it
    has none, up to 1 GiB by the size of the input); `allow_incomplete`: what cannot be listed, and by `runs` what cannot
    be read, raises no error.
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
    remote: str
    remote_keys: Sequence[str]
    partition_bytes: int
    allow_incomplete: bool


class Judgement(TypedDict, total=False):
    """How to audit, as `kaudit.scan`: `since` and `until` choose findings by the time of their batch.

    `allow_incomplete`: what could not be read raises no error.
    """

    broker_version: str
    producer_ids: Sequence[int]
    since: Time
    until: Time
    now: Time
    allow_incomplete: bool


class Compared(TypedDict, total=False):
    """How records are compared, as `kaudit diff --by records` does.

    `identity`: the parts that make records the same; `maps`: texts REGEX=NAME; `isolation_level`: read_uncommitted or read_committed;
    `topics`, `partitions`, `compacted_topics`, `command_config`, `remote`, `remote_keys` as of Read, `target_command_config` and
    `target_remote` the target's;
    `allow_incomplete`: what could not be read raises no error.
    """

    identity: str
    maps: Sequence[str]
    isolation_level: str
    topics: Sequence[str]
    partitions: Sequence[int]
    compacted_topics: Sequence[str]
    command_config: str
    target_command_config: str
    remote: str
    remote_keys: Sequence[str]
    target_remote: str
    allow_incomplete: bool


def register(spark: "SparkSession") -> None:
    """Register the data sources with a session: `spark.read.format("kaudit.batches")`, `kaudit.runs`, `kaudit.records`."""
    if not HAS_DATA_SOURCES:
        raise UsageError(
            "Spark 3.5 has no Python data sources: use the functions of kaudit.spark, or Spark 4.0 or newer"
        )
    if spark not in _registered:  # Spark warns of each source that is replaced
        for source in import_module("kaudit.spark.sources").SOURCES:
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
    read = _options_of(given)
    to_runs = partial(batches_to_runs, paths=read.paths)
    return given.select(*NEEDED).mapInArrow(to_runs, spark_schema("runs", read.to_text()))


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
    found = _findings(_plan(source, paths, read), asked)
    return found.mapInArrow(WithIncidents(allow_incomplete), spark_schema("findings"))


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


def ledger(
    spark: "SparkSession",
    source: "str | os.PathLike[str]",
    target: "str | os.PathLike[str]",
    **options: Unpack[Compared],
) -> "DataFrame":
    """Return the ranges of records that only one of two inputs has, that are there again, and that both have.

    Unlike the others it reads when it is called: what is matched last depends on what was matched first.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no topic of the source has a copy in the target.
        UnreadableInputError: something could not be read.

    """
    isolation = options.get("isolation_level", "read_uncommitted")
    if isolation not in {"read_uncommitted", "read_committed"}:
        raise UsageError(f"isolation_level {isolation}: read_uncommitted or read_committed")
    identity = options.get("identity")
    request = LedgerRequest(
        reader=IdentityReader() if identity is None else IdentityReader(parse_identity(identity)),
        given=identity is not None,
        read_committed=isolation == "read_committed",
        maps=options.get("maps", ()),
        target_command_config=options.get("target_command_config"),
        target_remote=next(iter(absolute([options["target_remote"]] if "target_remote" in options else [])), None),
    )
    paths = absolute([os.fspath(source), os.fspath(target)])
    names = ("topics", "partitions", "compacted_topics", "command_config", "remote", "remote_keys")
    own = cast("Read", {name: options[name] for name in names if name in options})  # type: ignore[literal-required]
    asked = _read_options(paths, own).scan_options()
    on = SessionRecords(spark, nullcontext)
    sides = Replica("source", paths[0]), Replica("target", paths[1])
    with errors_of_tasks(), record_ledger(asked, sides, request, SilentProgress(), on) as result:
        if not options.get("allow_incomplete"):
            require_complete(result.scan)
        rows = pa.Table.from_batches(
            to_batches("ledger", chain(record_range_rows(result), matched_range_rows(result))), arrow_schema("ledger")
        )
    return frame_of(spark, rows)


def audit(spark: "SparkSession | None", options: ScanOptions) -> ScanResult:
    """Return the result of an audit on a session, or on one of its own (the active one, or a new one that ends with the audit).

    Raises:
        UsageError: an option is wrong, a path does not exist, or there is no Java for a session.
        NothingToAuditError: no segment was found.

    """
    with nullcontext(spark) if spark is not None else session(SparkOptions(), options.jobs) as running:
        return scan(running, options)


def scan(spark: "SparkSession", options: ScanOptions) -> ScanResult:
    """Return the whole result of an audit: one job. Local paths are made absolute.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no segment was found.

    """
    remote = None if options.remote is None else absolute([options.remote])[0]
    keys = absolute(options.remote_keys)
    asked = replace(options, paths=absolute(options.paths), remote=remote, remote_keys=keys)
    names = (
        "paths",
        "topics",
        "partitions",
        "log_start_offset",
        "compacted_topics",
        "remote",
        "remote_keys",
        "digests",
    )
    read = ReadOptions(
        **{name: getattr(asked, name) for name in names},
        depth=asked.depth.value,
        command_config=asked.cluster.command_config,
    )
    with errors_of_tasks():
        found = _findings(_plan(spark, asked.paths, read), asked)
        rows = arrow_table(found)
    return scan_result(rows.to_batches())


def _histories(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any], table: str
) -> "DataFrame":
    read, asked, allow_incomplete = _asked(source, paths, options)
    known = _with_evidence(_plan(source, paths, read), asked, HISTORIES)
    return known.mapInArrow(Histories(table, asked, allow_incomplete), spark_schema(table))


def _plan(source: "DataFrame | SparkSession", paths: Paths | None, read: ReadOptions) -> "DataFrame":
    """Return the plan of each partition replica with its chunks: as tasks read them, or those among the rows of `runs`."""
    if paths is not None:
        return _load(cast("SparkSession", source), "partitions", replace(read, cut=True))
    chunks = cast("DataFrame", source)
    only = chunks.where("chunk is not null").selectExpr(
        *KEY, f"{CHUNK} as kind", "segment_number", "first_position as place", "chunk as data"
    )
    return _load(chunks.sparkSession, "partitions", read).unionByName(only, allowMissingColumns=True)


def _with_evidence(plan: "DataFrame", asked: ScanOptions, keeps: Rows = NO_ROWS) -> "DataFrame":
    """Replay every partition, and find out what all of them together show."""
    by_partition = plan.repartition(*KEY).sortWithinPartitions(*KEY, *CHUNK_ORDER)
    replayed = by_partition.mapInArrow(partial(replay, keeps=keeps, open_source=open_segment), STEPS)
    return _by_shard(_by_shard(replayed).mapInArrow(Evidence(asked), STEPS))


def _by_shard(rows: "DataFrame") -> "DataFrame":
    return rows.repartition("shard").sortWithinPartitions(*STEP_ORDER)


def _findings(plan: "DataFrame", asked: ScanOptions) -> "DataFrame":
    """Return the findings of each topic partition, all of them in one task, which joins incidents."""
    found = _with_evidence(plan, asked).mapInArrow(make_findings, STEPS)
    return found.repartition(1).sortWithinPartitions(*STEP_ORDER)


def _load(spark: "SparkSession", table: str, options: ReadOptions) -> "DataFrame":
    if not HAS_DATA_SOURCES:
        reader = reader_of(table, options)
        parts = pa.array(reader.parts(), pa.binary())
        planned = frame_of(spark, pa.table({"number": pa.array(range(len(parts)), pa.int32()), "part": parts}))
        if len(parts):
            planned = by_number(planned, len(parts), "number")
        return planned.mapInArrow(partial(read_parts, reader=reader), columns_of(table, options))
    register(spark)
    return spark.read.format(f"kaudit.{table}").options(**options.to_text()).load()


def _asked(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any]
) -> tuple[ReadOptions, ScanOptions, bool]:
    """Split options into what to read, how to audit, and whether to go on where something cannot be read."""
    judgement = {name: options.pop(name) for name in Judgement.__annotations__ if name in options}
    allow_incomplete = bool(judgement.pop("allow_incomplete", False))
    read = _options_of(cast("DataFrame", source)) if paths is None else _read_options(paths, cast("Read", options))
    if paths is None and options:
        raise UsageError(f"{', '.join(sorted(options))}: given where the log is read, in batches() or runs()")
    return read, read.scan_options(**judgement), allow_incomplete


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
