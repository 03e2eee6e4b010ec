"""The DataFrames of `kaudit.spark`, and how each is made of another."""

import inspect
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from weakref import WeakSet

import pyarrow as pa
from msgspec.structs import replace

from kaudit.engines.kept_rows import HISTORIES
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, record_ledger
from kaudit.engines.rows import NO_ROWS, Rows
from kaudit.errors import UsageError
from kaudit.model.result import ScanResult
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.scanning.comparison_options import LedgerOptions
from kaudit.scanning.options import ScanOptions, scan_options_of
from kaudit.source.schemes import open_segment
from kaudit.spark.comparisons import commits_of, ledger_rows, sides_of
from kaudit.spark.composition import (
    STEP_ORDER,
    Evidence,
    FindingRows,
    Histories,
    join_incidents,
    make_findings,
    scan_result,
)
from kaudit.spark.given_rows import origin_row
from kaudit.spark.given_rows import replayed as replayed_rows
from kaudit.spark.jobs import errors_in_one_line, is_connect, retries
from kaudit.spark.options import (
    AUDITING,
    COMPARED,
    READING,
    RESULTS,
    Path,
    Paths,
    ReadOptions,
    absolute,
    checked_name,
    hint,
    read_options,
)
from kaudit.spark.plan import TASKS_PER_CORE, AuditPlan, listed_input
from kaudit.spark.readers import read_parts, reader_of
from kaudit.spark.reading_in_tasks import replayed_on
from kaudit.spark.record_ledger import SparkRecords
from kaudit.spark.releases import HAS_DATA_SOURCES, arrow_table, by_number, frame_of, work_frame
from kaudit.spark.rows import NEEDED, batches_to_runs
from kaudit.spark.schemas import arrow_schema, raise_own_errors, spark_schema, to_batches
from kaudit.spark.session import SparkOptions, session
from kaudit.spark.table_target import table_schema
from kaudit.spark.tasks import PLANNED, SCAN_WIDE, STEPS, WHOLE, ArrowMap, Batches, packed, row, step, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Function = TypeVar("_Function", bound=Callable[..., Any])
_registered: "WeakSet[SparkSession]" = WeakSet()


def _takes(known: frozenset[str]) -> Callable[[_Function], _Function]:
    """Show the options that a function takes as its keywords, each with its type."""

    def shown(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = sorted(known - {"paths", *signature.parameters})
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint(name))
            for name in named
        ]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *options])
        return function

    return shown


def register(spark: "SparkSession") -> None:
    """Register the data sources with a session: `spark.read.format("kaudit.batches")`, `kaudit.runs`, `kaudit.records`."""
    if not HAS_DATA_SOURCES:
        raise UsageError(
            "Spark 3.5 has no Python data sources: use the functions of kaudit.spark, or Spark 4.0 or newer"
        )
    raise_own_errors()
    if spark not in _registered:  # Spark warns of each source that is replaced
        for source in import_module("kaudit.spark.sources").SOURCES:
            spark.dataSource.register(source)
        _registered.add(spark)


@_takes(READING)
def batches(spark: "SparkSession", paths: Paths, **options: object) -> "DataFrame":
    """Return a row for each valid batch of the segments under `paths`.

    Offsets and times are inclusive; of a batch outside of them there is no row. `partition_bytes`: bytes of segments that a task reads,
    about (a block of the store, 128 MiB where it has none, up to 1 GiB by the size of the input); `pushdown`: filters of Spark choose
    segments, in data sources; `allow_incomplete`: what cannot be listed, and by `runs` what cannot be read, raises no error.

    Raises:
        UsageError: an option is wrong. What cannot be found or read is said when an action reads.

    """
    return _load(spark, "batches", paths, options)


@_takes(READING)
def records(spark: "SparkSession", paths: Paths, **options: object) -> "DataFrame":
    """Return a row for each record of data: offset, timestamp, key, value, headers, decompressed in tasks.

    Control records are left out; aborted transactions are not. Raises as `batches` does.
    """
    return _load(spark, "records", paths, options)


@_takes(READING)
def runs(source: "DataFrame | SparkSession", paths: Paths | None = None, **options: object) -> "DataFrame":
    """Return runs and markers of producers, and the chunks that findings() and the others need: of `batches`, or of `paths`.

    `runs(spark, paths)` reads segments without a row for each batch in between. Of `batches` all columns must be there.
    Raises as `batches` does; `since` and `until` choose whole segments.
    """
    if paths is not None:
        return _load(cast("SparkSession", source), "runs", paths, options)
    given = cast("DataFrame", source)
    missing = [name for name in NEEDED if name not in given.columns]
    if missing:
        raise UsageError(f"runs() needs all columns of batches(): {', '.join(missing)} missing")
    return given.select(*NEEDED).mapInArrow(batches_to_runs, spark_schema("runs", _origin_of(given)))


@_takes(RESULTS)
def findings(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: object,
) -> "DataFrame":
    """Return what `kaudit scan` finds, of `runs` or of `paths`, in its order.

    `paths` are listed when it is called, the logs of `runs` by the action. Of runs of several logs these are audited as if all had
    been given to one call. Of `runs` that were made of some of the batches, the others are read again, so that what a filter
    left out never looks lost, and findings about them are left out. Options of reading go with `paths` alone. `since` and `until`
    choose findings here. `allow_incomplete`: what could not be read raises no error.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no segment was found.

    """
    known, allow_incomplete = _with_evidence(source, paths, options)
    return _joined(known).mapInArrow(FindingRows(allow_incomplete), spark_schema("findings"))


@_takes(RESULTS)
def timelines(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: object,
) -> "DataFrame":
    """Return the history of every producer id, of `runs` or of `paths`: runs, markers, missing offsets and findings by offset.

    Raises as `findings` does.
    """
    return _histories(source, paths, options, "timelines")


@_takes(RESULTS)
def producers(
    source: "DataFrame | SparkSession",
    paths: Paths | None = None,
    **options: object,
) -> "DataFrame":
    """Return every producer id of every partition replica with the state a broker would rebuild, of `runs` or of `paths`.

    Raises as `findings` does.
    """
    return _histories(source, paths, options, "producers")


@_takes(COMPARED["diff"])
def diff(spark: "SparkSession", paths: Paths, **options: object) -> "DataFrame":
    """Return each replica of each partition of several log directories, as `kaudit diff` compares them, partitions in tasks.

    `names`: texts NAME=PATH. Raises as `batches` does.
    """
    return _load(spark, "diff", paths, options)


@_takes(COMPARED["dedup"])
def dedup(spark: "SparkSession", paths: Paths, **options: object) -> "DataFrame":
    """Return the records that repeat earlier ones of their partition, and ranges of them, as `kaudit dedup` does, partitions in tasks.

    `schemas` and `key_schemas`: texts ID=FILE or FILE, read where Spark plans. Raises as `batches` does.
    """
    return _load(spark, "dedup", paths, options)


@_takes(COMPARED["ledger"])
def ledger(
    spark: "SparkSession",
    source: Path,
    target: Path,
    **options: object,
) -> "DataFrame":
    """Return the ranges of records that only one of two inputs has, that are there again, and that both have.

    `maps`: texts REGEX=NAME; `windows`: a span of time such as 10m; `translate_groups`: groups of the source, of which rows `group-offset`
    say where they go on in the target. Unlike the others it reads when it is called: what is matched last depends on what was matched first.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no topic of the source has a copy in the target.
        UnreadableInputError: something could not be read.

    """
    read = _read_options(source, {**options, "target": os.fspath(target)}, COMPARED["ledger"])
    request, on = LedgerRequest.of(read.compared_as(LedgerOptions)), SparkRecords(lambda _: nullcontext(spark))
    raise_own_errors()
    commits = commits_of(read)
    with record_ledger(read.scan_options(), sides_of(read), request, SilentProgress(), on) as result:
        rows = pa.Table.from_batches(to_batches("ledger", ledger_rows(result, commits, read)), arrow_schema("ledger"))
    return frame_of(spark, rows)


def read_table(spark: "SparkSession", url: str, table: str) -> "DataFrame":
    """Return a table that executors wrote below a URL. Its topics and runs are text, also where all of them look like numbers.

    Raises:
        UsageError: there is no such table.

    """
    if table not in SCAN_TABLES:
        raise UsageError(f"table {table}: there is none; there are {', '.join(SCAN_TABLES)}")
    schema = table_schema(table).add("run_id", "string")
    return spark.read.schema(schema).parquet(f"{url.rstrip('/')}/{table}")


def audit(spark: "SparkSession | None", options: ScanOptions) -> ScanResult:
    """Return the result of an audit on a session, or on one of its own (the active one, or a new one that ends with the audit).

    Raises:
        UsageError: an option is wrong, a path does not exist, or there is no Java for a session.
        NothingToAuditError: no segment was found.

    """
    with nullcontext(spark) if spark is not None else session(SparkOptions(), options.jobs) as running:
        return scan(running, options)


def scan(spark: "SparkSession", options: ScanOptions) -> ScanResult:
    """Return the whole result of an audit. Local paths are made absolute.

    Raises:
        UsageError: an option is wrong, or a path does not exist.
        NothingToAuditError: no segment was found.

    """
    raise_own_errors()
    remote = None if options.remote is None else absolute([options.remote])[0]
    own = {"paths": absolute(options.paths), "remote": remote, "remote_keys": absolute(options.remote_keys)}
    known = _evidence_of(_replayed(spark, replace(options, **own), NO_ROWS))
    return scan_result(arrow_table(_joined(known)).to_batches())


def _histories(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any], table: str
) -> "DataFrame":
    known, allow_incomplete = _with_evidence(source, paths, options, HISTORIES)
    return known.exchanged().mapInArrow(Histories(table, allow_incomplete), spark_schema(table))


class _Steps(NamedTuple):
    """Rows of STEPS, and the number of shards besides the one that is about all partitions."""

    frame: "DataFrame"
    shards: int

    def exchanged(self) -> "DataFrame":
        """Move the rows to the task of their shard, in order."""
        return by_number(self.frame, self.shards + 1, "shard").sortWithinPartitions(*STEP_ORDER)

    def mapped(self, function: ArrowMap) -> "_Steps":
        """Exchange the rows, and let tasks make others of them."""
        return _Steps(self.exchanged().mapInArrow(function, STEPS), self.shards)


def _with_evidence(
    source: "DataFrame | SparkSession", paths: Paths | None, options: dict[str, Any], keeps: Rows = NO_ROWS
) -> tuple[_Steps, bool]:
    """Replay every partition, and find out what all of them together show; return whether something may be left out, too."""
    raise_own_errors()
    if paths is not None:
        read = _read_options(paths, options, RESULTS)
        asked = read.scan_options(since=read.since, until=read.until)
        return _evidence_of(_replayed(cast("SparkSession", source), asked, keeps), keeps.kind), read.allow_incomplete
    runs = cast("DataFrame", source)
    audit = {checked_name(name, AUDITING): value for name, value in options.items() if value is not None}
    allow_incomplete = bool(audit.pop("allow_incomplete", False))
    scan_options_of({"paths": (), **audit})
    origins = pa.Table.from_batches([origin_row(_origin_of(runs))])
    tasks = _parallelism(runs.sparkSession) * TASKS_PER_CORE
    rows = replayed_rows(runs, frame_of(runs.sparkSession, origins), audit, keeps, tasks)
    return _evidence_of(_Steps(rows, tasks), keeps.kind), allow_incomplete


def _evidence_of(replayed: _Steps, kept: object = None) -> _Steps:
    return replayed.mapped(Evidence(replayed.shards, kept))


def _joined(known: _Steps) -> "DataFrame":
    """Return the findings of each topic partition with their incidents, in the order of `kaudit scan`."""
    return known.mapped(make_findings).mapped(join_incidents).exchanged()


def _replayed(spark: "SparkSession", asked: ScanOptions, keeps: Rows) -> _Steps:
    """List the input, and describe the rows of STEPS of its partitions, as the command line reads and replays them."""
    planned = _on_cluster(spark, partial(_planned, asked, resumes=keeps is NO_ROWS))
    plan = planned.share(_parallelism(spark))
    known = frame_of(spark, pa.Table.from_batches([step(SCAN_WIDE, WHOLE, PLANNED, planned.known)]))
    return _Steps(replayed_on(spark, plan, keeps, retries(spark)).unionByName(known), plan.shuffle_partitions)


def _planned(asked: ScanOptions, *, resumes: bool) -> AuditPlan:
    planned = listed_input(asked).planned()
    state = planned.state
    if state is None:
        return planned
    state.sweep(planned.known.layout)
    jobs = [state.matched(job, open_segment, resumes=resumes) for job in planned.jobs]
    return replace(planned, jobs=jobs, state=None)


def _on_cluster(spark: "SparkSession", ask: Callable[[], AuditPlan]) -> AuditPlan:
    """Plan where Spark plans: here, or for a client of Spark Connect in a task."""
    if not is_connect(spark):
        return ask()
    question = frame_of(spark, pa.table({"number": pa.array([0], pa.int32())}))
    (answer,) = arrow_table(question.mapInArrow(partial(_answer, ask=ask), "answer binary"))["answer"].to_pylist()
    planned: AuditPlan = unpacked(answer)
    return planned


def _answer(rows: Batches, ask: Callable[[], AuditPlan]) -> Batches:
    for _ in rows:
        yield row("answer binary", packed(ask()))


def _parallelism(spark: "SparkSession") -> int:
    """Return the number of cores; a client of Spark Connect knows only how many tasks its exchanges have."""
    if is_connect(spark):
        return max(int(spark.conf.get("spark.sql.shuffle.partitions") or 200) // TASKS_PER_CORE, 1)
    return spark.sparkContext.defaultParallelism


def _load(spark: "SparkSession", table: str, paths: Paths, options: dict[str, Any]) -> "DataFrame":
    raise_own_errors()
    read = _read_options(paths, options, COMPARED.get(table, READING))
    if HAS_DATA_SOURCES:
        register(spark)
        with errors_in_one_line():
            return spark.read.format(f"kaudit.{table}").options(**read.to_text()).load()
    reader = reader_of(table, read.to_text())
    parts = work_frame(spark, reader.parts())
    return parts.mapInArrow(partial(read_parts, reader=reader), spark_schema(table, read.origin))


def _read_options(paths: Paths, options: dict[str, Any], known: frozenset[str]) -> ReadOptions:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return read_options({"paths": given, **options}, known)


def _origin_of(frame: "DataFrame") -> str:
    """Return what rows were read from; those of other logs, which a union has added, name theirs themselves.

    Raises:
        UsageError: the schema does not say it.

    """
    for field in frame.schema.fields:
        if field.name == "origin" and "kaudit" in field.metadata:
            return str(field.metadata["kaudit"])
    raise UsageError(
        "these rows do not say what they were read from: keep the column origin of batches() or runs(), without an alias"
    )
