"""Tables made in Spark's tasks: brought to the driver a piece at a time, or written by the executors to a store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from msgspec import Struct
from pyspark import StorageLevel

from kaudit.broker.releases.profile import Profile
from kaudit.listings.producer_histories import HistoryWriter, PartitionHistory, Piece, TableWriter
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited
from kaudit.partition.batch_export import BatchWriter, SegmentTask, segment_tasks, write_segment
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.spark.jobs import errors_in_one_line, from_here, named_job
from kaudit.spark.releases import by_number, frame_of
from kaudit.spark.table_target import TableTarget
from kaudit.spark.task_findings import FindingsInTasks, SentFinding, audits_of, replicas, sent
from kaudit.spark.tasks import ArrowMap, Batches, arrow_schema, works_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PIECES_SCHEMA = "output_batch int, job_index int, number long, table string, topic string, rows long, data binary"
_PIECES = arrow_schema(PIECES_SCHEMA)
_MOST_OUTPUT_BATCHES = 200
"""Each batch of pieces that the driver takes is a job of its own: some 50 ms."""
NAMES = "names"
"""Beside the tables' names: names of producer ids, to be put into a job's rows."""
_NAMES_NUMBER = -2_000_000
"""Before all pieces of a job."""
_NAMED_TABLES = frozenset(("timelines", "producers"))


class OutputBatches(Struct, frozen=True):
    """Items 0 to `items` in at most `most` batches of neighbours, each as much as the driver takes at once."""

    items: int
    most: int = _MOST_OUTPUT_BATCHES

    @property
    def count(self) -> int:
        """How many batches there are."""
        return max(min(self.items, self.most), 1)

    def of(self, job_index: int) -> int:
        """Return the batch of an item."""
        return job_index * self.count // max(self.items, 1)


class ListedRows(Protocol):
    """Rows of the table `producers` of a list of producer ids."""

    def frame(self, writer: TableWriter) -> "DataFrame":
        """Describe the rows, with the columns SORTED_BY."""

    def pieces(self, writer: TableWriter) -> Iterator[Piece]:
        """Bring the rows to the driver, in order."""


class Names(Protocol):
    """The transactional ids that __transaction_state names, by the jobs whose partitions have their producer ids."""

    def pieces(self, kept: "DataFrame", output_batches: OutputBatches) -> "DataFrame | None":
        """Describe rows like those of pieces, `NAMES` being their table; None where there is no such topic."""


class SparkTables(Struct, frozen=True):
    """The tables of an audit, made in tasks, of all findings."""

    session: "SparkSession"
    replayed: "DataFrame"
    jobs: Sequence[Job]
    in_tasks: FindingsInTasks
    across: Mapping[int, Mapping[int, str]]
    scan_wide: Sequence[Finding]
    newest: Profile
    listed: ListedRows | None = None
    """The rows of a list of producer ids, which only all partitions together show."""
    names: Names | None = None
    """What puts transactional ids into rows, where the writer looks them up."""
    not_audited: Sequence[NotAudited] = ()

    def histories(self, writer: HistoryWriter, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield what `writer` makes of each partition replica and its own of these findings, in order."""
        own = by_replica(findings)
        keys = ((job.directory.topic, job.directory.partition, job.directory.replica) for job in self.jobs)
        packed = {number: pack(sent(own[key])) for number, key in enumerate(keys) if key in own}
        output_batches = OutputBatches(len(self.jobs))
        write = history_writing(writer, packed, output_batches, newest=self.newest)
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
        pieces = frame.persist(StorageLevel.DISK_ONLY)
        own = {} if self.listed is None else {"producers": self.listed.frame(writer).persist(StorageLevel.DISK_ONLY)}
        try:
            with errors_in_one_line():
                schemas = {name: writer.schema(name) for name in writer.tables(batches=batches is not None)}
                target.write(self.session, pieces, schemas, own)
        finally:
            for kept in (pieces, *own.values()):
                kept.unpersist()
        return target.run_id

    @property
    def _kept(self) -> "DataFrame":
        return audits_of(self.replayed, "kept")

    def _tables(self, writer: TableWriter, output_batches: OutputBatches) -> "DataFrame":
        write = table_writing(self.in_tasks, self.across, writer, output_batches, newest=self.newest)
        return self._kept.mapInArrow(write, PIECES_SCHEMA)

    def _names(self, writer: TableWriter, output_batches: OutputBatches) -> "DataFrame | None":
        if self.names is None or not writer.looks_up_names:
            return None
        return self.names.pieces(self._kept, output_batches)

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
        return planned.mapInArrow(batch_writing(writer, output_batches, from_here()), PIECES_SCHEMA), output_batches

    def _in_order(
        self, pieces: "DataFrame", output_batches: OutputBatches, what: str, names: "DataFrame | None" = None
    ) -> Iterator[Piece]:
        """Bring pieces of tables to the driver in order, one batch of them in memory at a time."""
        ordered = (
            _ordered(pieces, output_batches) if names is None else _named(pieces.unionByName(names), output_batches)
        )
        with errors_in_one_line(), named_job(self.session, f"kaudit: bring the {what}"):
            for row in ordered.toLocalIterator(prefetchPartitions=True):
                yield row["table"], bytes(row["data"])


def _ordered(pieces: "DataFrame", output_batches: OutputBatches) -> "DataFrame":
    ordered = by_number(pieces, output_batches.count, "output_batch")
    return ordered.sortWithinPartitions("job_index", "number")


def _named(pieces: "DataFrame", output_batches: OutputBatches) -> "DataFrame":
    """Put names, which are among the pieces, into the rows of their jobs."""
    return _ordered(pieces, output_batches).mapInArrow(naming(), PIECES_SCHEMA)


def _pieces_frame(spark: "SparkSession", pieces: Iterable[Piece]) -> "DataFrame":
    """Pieces that the driver has made, before all others."""
    rows = [_piece_row(0, -1, number, None, piece) | {"rows": _row_count(piece)} for number, piece in enumerate(pieces)]
    return frame_of(spark, pa.Table.from_pylist(rows, _PIECES))


def history_writing(
    writer: HistoryWriter, findings: Mapping[int, bytes], output_batches: OutputBatches, *, newest: Profile
) -> ArrowMap:
    """Return the function that turns histories into pieces of tables. `findings` by job index, packed."""

    def write_histories(rows: Batches) -> Batches:
        for job_index, _, history in replicas(rows, PartitionHistory):
            own = unpack(findings[job_index], list[SentFinding]) if job_index in findings else ()
            # what a report makes of a history is its own: no rows to count
            for number, piece in enumerate(writer(history, own, newest)):
                row = _piece_row(output_batches.of(job_index), job_index, number, history.key[0], piece)
                yield pa.RecordBatch.from_pylist([row], _PIECES)

    return write_histories


def table_writing(
    in_tasks: FindingsInTasks,
    across: Mapping[int, Mapping[int, str]],
    writer: TableWriter,
    output_batches: OutputBatches,
    *,
    newest: Profile,
) -> ArrowMap:
    """Return the function that turns partitions and their findings into pieces of tables."""

    def write_tables(rows: Batches) -> Batches:
        for partition in in_tasks.topic_partitions(rows):
            findings = writer.decide(partition.findings(across))
            topic = partition.replicas[0].directory.topic
            own = by_replica(findings)

            def pieces(history: PartitionHistory, own: Mapping[Any, Sequence[Finding]] = own) -> Iterator[Piece]:
                return writer.of_replica(history, own.get(history.key, ()), newest)

            first = partition.job_index
            yield from _in_batch(output_batches.of(first), first, topic, writer.of_findings(findings), -1_000_000)
            for job_index, history in enumerate(partition.kept, first):
                yield from _in_batch(output_batches.of(job_index), job_index, topic, pieces(history))

    return write_tables


def names_piece(output_batches: OutputBatches, job_index: int, names: Mapping[int, str]) -> pa.RecordBatch:
    """Return names of some of a job's producer ids as a row before its pieces."""
    piece = NAMES, pack(names)
    row = _piece_row(output_batches.of(job_index), job_index, _NAMES_NUMBER, None, piece) | {"rows": 0}
    return pa.RecordBatch.from_pylist([row], _PIECES)


def naming() -> ArrowMap:
    """Return the function that puts the names of a job's producer ids into its rows, and leaves the names out."""

    def name(pieces: Batches) -> Batches:
        job, names = -1, dict[int, str]()
        for batch in pieces:
            for row in batch.to_pylist():
                if row["job_index"] != job:
                    job, names = row["job_index"], {}
                if row["table"] == NAMES:
                    names |= unpack(row["data"], dict[int, str])
                    continue
                if names and row["table"] in _NAMED_TABLES:
                    row["data"] = _with_names(row["data"], names)
                yield pa.RecordBatch.from_pylist([row], _PIECES)

    return name


def _with_names(data: bytes, names: Mapping[int, str]) -> bytes:
    rows = pa.ipc.open_stream(data).read_all()
    before = rows["transactional_id"].to_pylist()
    ids = rows["producer_id"].to_pylist()
    own = [names.get(producer_id, name) for producer_id, name in zip(ids, before, strict=True)]
    at = rows.schema.get_field_index("transactional_id")
    named = rows.set_column(at, rows.schema.field(at), pa.array(own, rows.schema.field(at).type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, named.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(named)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def batch_writing(writer: BatchWriter, output_batches: OutputBatches, open_source: OpenSource) -> ArrowMap:
    """Return the function that reads segments and turns their batches into pieces of a table."""

    def write_batches(segments: Batches) -> Batches:
        for task in works_of(segments, SegmentTask):
            pieces = write_segment(task, open_source, writer)
            yield from _in_batch(output_batches.of(task.number), task.number, task.topic, pieces)

    return write_batches


def _in_batch(output_batch: int, job_index: int, topic: str | None, pieces: Iterable[Piece], start: int = 0) -> Batches:
    for number, piece in enumerate(pieces, start):
        row = _piece_row(output_batch, job_index, number, topic, piece) | {"rows": _row_count(piece)}
        yield pa.RecordBatch.from_pylist([row], _PIECES)


def _piece_row(output_batch: int, job_index: int, number: int, topic: str | None, piece: Piece) -> dict[str, object]:
    table, data = piece
    return {
        "output_batch": output_batch,
        "job_index": job_index,
        "number": number,
        "table": table,
        "topic": topic,
        "data": data,
    }


def _row_count(piece: Piece) -> int:
    return int(pa.ipc.open_stream(piece[1]).read_all().num_rows)
