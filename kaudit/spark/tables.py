"""Tables made in Spark's tasks: brought to the driver a piece at a time, or written by the executors to a store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct

from kaudit.broker.releases.profile import Profile
from kaudit.listings.producer_histories import HistoryWriter, PartitionHistory, Piece, TableWriter
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited
from kaudit.partition.batch_export import BatchWriter, SegmentTask, segment_tasks, write_segment
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.parquet import table_to_ipc
from kaudit.spark.jobs import errors_in_one_line, from_here, named_job, on_disk
from kaudit.spark.producer_listing import RowsOfList
from kaudit.spark.releases import by_number, frame_of
from kaudit.spark.table_target import NAMES, PIECES_SCHEMA, OutputBatches, TableTarget
from kaudit.spark.task_findings import FindingsInTasks, audits_of, replicas
from kaudit.spark.tasks import Batches, arrow_schema, packed, row, unpacked, works_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED_TABLES = frozenset(("timelines", "producers"))


class SparkTables(Struct, frozen=True):
    """The tables of an audit, made in tasks, of all findings."""

    session: "SparkSession"
    replayed: "DataFrame"
    jobs: Sequence[Job]
    in_tasks: FindingsInTasks
    scan_wide: Sequence[Finding]
    names: Callable[["DataFrame", OutputBatches], "DataFrame | None"]
    """What puts transactional ids into rows, where the writer looks them up."""
    listed: RowsOfList | None = None
    """The rows of a list of producer ids, which only all partitions together show."""
    not_audited: Sequence[NotAudited] = ()

    def histories(self, writer: HistoryWriter, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield what `writer` makes of each partition replica and its own of these findings, in order."""
        own = by_replica(findings)
        keys = ((job.directory.topic, job.directory.partition, job.directory.replica) for job in self.jobs)
        by_job = {number: packed(own[key]) for number, key in enumerate(keys) if key in own}
        output_batches = OutputBatches(len(self.jobs))
        write = partial(
            write_histories, writer=writer, findings=by_job, output_batches=output_batches, newest=self.in_tasks.newest
        )
        yield from self._in_order(self._kept.mapInArrow(write, PIECES_SCHEMA), output_batches, "histories")

    def batches(self, writer: BatchWriter) -> Iterator[Piece]:
        """Yield what `writer` makes of the batches of each segment, which is read once more, in order."""
        frame, output_batches = self._batches(writer)
        yield from self._in_order(frame, output_batches, "batches")

    def pieces(self, writer: TableWriter, batches: BatchWriter | None) -> Iterator[Piece]:
        """Yield all tables a piece at a time, each in its order."""
        output_batches = OutputBatches(len(self.jobs))
        yield from writer.of_scan(writer.decide(self.scan_wide))
        tables, names = self._tables(writer, output_batches), self._names(writer, output_batches)
        yield from self._in_order(tables, output_batches, "tables", names)
        if self.listed is not None:
            yield from self.listed.pieces(writer)
        if batches is not None:
            yield from self.batches(batches)

    def write_to(
        self, url: str, manifest: Mapping[str, object], writer: TableWriter, batches: BatchWriter | None
    ) -> str:
        """Let the executors write all tables, and commit the run with its manifest; return its id.

        A URL that ends in `run_id=ID` names the run, and what it wrote before is replaced; else the time does.

        Raises:
            SparkFailedError: Spark gave up, or the driver does not find what the workers wrote.

        """
        target = TableTarget.of(self.session, url, manifest)
        output_batches = OutputBatches(len(self.jobs))
        frame = self._tables(writer, output_batches)
        if (names := self._names(writer, output_batches)) is not None:
            frame = _named(frame.unionByName(names), output_batches)
        frame = frame.unionByName(_pieces_frame(self.session, writer.of_scan(writer.decide(self.scan_wide))))
        if batches is not None:
            frame = frame.unionByName(self._batches(batches)[0])
        schemas = {name: writer.schema(name) for name in writer.tables(batches=batches is not None)}
        with errors_in_one_line(), ExitStack() as kept:
            listed = {} if self.listed is None else {"producers": self.listed.frame(writer)}
            own = {name: kept.enter_context(on_disk(rows)) for name, rows in listed.items()}
            target.write(self.session, kept.enter_context(on_disk(frame)), schemas, own)
        return target.run_id

    @property
    def _kept(self) -> "DataFrame":
        return audits_of(self.replayed, "kept")

    def _tables(self, writer: TableWriter, output_batches: OutputBatches) -> "DataFrame":
        write = partial(write_tables, in_tasks=self.in_tasks, writer=writer, output_batches=output_batches)
        return self._kept.mapInArrow(write, PIECES_SCHEMA)

    def _names(self, writer: TableWriter, output_batches: OutputBatches) -> "DataFrame | None":
        if not writer.looks_up_names:
            return None
        return self.names(self._kept, output_batches)

    def _batches(self, writer: BatchWriter) -> tuple["DataFrame", OutputBatches]:
        tasks = segment_tasks(self.jobs, self.not_audited)
        output_batches = OutputBatches(len(tasks))
        table = pa.table(
            {
                "output_batch": pa.array((output_batches.of(task.number) for task in tasks), pa.int32()),
                "work": pa.array((pack(task) for task in tasks), pa.binary()),
            }
        )
        planned = by_number(frame_of(self.session, table), output_batches.count, "output_batch")
        write = partial(write_batches, writer=writer, output_batches=output_batches, open_source=from_here())
        return planned.mapInArrow(write, PIECES_SCHEMA), output_batches

    def _in_order(
        self, pieces: "DataFrame", output_batches: OutputBatches, what: str, names: "DataFrame | None" = None
    ) -> Iterator[Piece]:
        """Bring pieces of tables to the driver in order, one batch of them in memory at a time."""
        ordered = (
            _ordered(pieces, output_batches) if names is None else _named(pieces.unionByName(names), output_batches)
        )
        with errors_in_one_line(), named_job(self.session, f"kaudit: bring the {what}"):
            for cells in ordered.toLocalIterator(prefetchPartitions=True):
                yield cells["table"], bytes(cells["data"])


def _ordered(pieces: "DataFrame", output_batches: OutputBatches) -> "DataFrame":
    ordered = by_number(pieces, output_batches.count, "output_batch")
    return ordered.sortWithinPartitions("job_index", "number")


def _named(pieces: "DataFrame", output_batches: OutputBatches) -> "DataFrame":
    """Put names, which are among the pieces, into the rows of their jobs."""
    return _ordered(pieces, output_batches).mapInArrow(put_names, PIECES_SCHEMA)


def _pieces_frame(spark: "SparkSession", pieces: Iterable[Piece]) -> "DataFrame":
    """Pieces that the driver has made, before all others."""
    return frame_of(spark, pa.Table.from_batches(_in_batch(0, -1, None, pieces), arrow_schema(PIECES_SCHEMA)))


def write_histories(
    rows: Batches,
    writer: HistoryWriter,
    findings: Mapping[int, bytes],
    output_batches: OutputBatches,
    newest: Profile,
) -> Batches:
    """Turn histories into pieces of tables. `findings` by job index, packed."""
    for job_index, _, history in replicas(rows, PartitionHistory):
        own = unpacked(findings[job_index]) if job_index in findings else ()
        # what a report makes of a history is its own: no rows to count
        for number, (table, data) in enumerate(writer(history, own, newest)):
            place = output_batches.of(job_index), job_index, number
            yield row(PIECES_SCHEMA, *place, table, history.key[0], None, data)


def write_tables(
    rows: Batches, in_tasks: FindingsInTasks, writer: TableWriter, output_batches: OutputBatches
) -> Batches:
    """Turn partitions and their findings into pieces of tables."""
    for partition in in_tasks.topic_partitions(rows):
        findings = writer.decide(partition.findings(in_tasks.across))
        topic, first = partition.topic, partition.job_index
        own = by_replica(findings)
        yield from _in_batch(output_batches.of(first), first, topic, writer.of_findings(findings), -1_000_000)
        for job_index, history in enumerate(partition.kept, first):
            pieces = writer.of_replica(history, own.get(history.key, ()), in_tasks.newest)
            yield from _in_batch(output_batches.of(job_index), job_index, topic, pieces)


def put_names(pieces: Batches) -> Batches:
    """Put the names of a job's producer ids into its rows, and leave the names out."""
    job, names = -1, dict[int, str]()
    for batch in pieces:
        for cells in batch.to_pylist():
            if cells["job_index"] != job:
                job, names = cells["job_index"], {}
            if cells["table"] == NAMES:
                names |= unpack(cells["data"], dict[int, str])
                continue
            if names and cells["table"] in _NAMED_TABLES:
                cells["data"] = _with_names(cells["data"], names)
            yield row(PIECES_SCHEMA, *cells.values())


def _with_names(data: bytes, names: Mapping[int, str]) -> bytes:
    rows = pa.ipc.open_stream(data).read_all()
    before = rows["transactional_id"].to_pylist()
    ids = rows["producer_id"].to_pylist()
    own = [names.get(producer_id, name) for producer_id, name in zip(ids, before, strict=True)]
    at = rows.schema.get_field_index("transactional_id")
    return table_to_ipc(rows.set_column(at, rows.schema.field(at), pa.array(own, rows.schema.field(at).type)))


def write_batches(
    segments: Batches, writer: BatchWriter, output_batches: OutputBatches, open_source: OpenSource
) -> Batches:
    """Read segments and turn their batches into pieces of a table."""
    for task in works_of(segments, SegmentTask):
        pieces = write_segment(task, open_source, writer)
        yield from _in_batch(output_batches.of(task.number), task.number, task.topic, pieces)


def _in_batch(output_batch: int, job_index: int, topic: str | None, pieces: Iterable[Piece], start: int = 0) -> Batches:
    for number, (table, data) in enumerate(pieces, start):
        count = pa.ipc.open_stream(data).read_all().num_rows
        yield row(PIECES_SCHEMA, output_batch, job_index, number, table, topic, count, data)
