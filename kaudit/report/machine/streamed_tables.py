"""Tables too large for memory (`timelines`, `producers`, `batches`): packed piece by piece where their rows are made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.formats.log.codecs import Codec
from kaudit.listings.producer_histories import EngineTables, PartitionHistory, Piece
from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.partition.batch_export import SegmentTask
from kaudit.report.machine.parquet import arrow_schema, columns_to_ipc, to_ipc
from kaudit.report.machine.tables import (
    block_row,
    digest_row,
    finding_row,
    producer_row,
    producer_rows,
    producers_tables,
    scan_tables,
    timeline_rows,
)
from kaudit.report.render_options import Decide, RenderOptions, Row, Tables
from kaudit.scanning.summaries import partition_summary, segment_rows

_PIECE_ROWS = 20_000
"""Rows made at once: some MB as Python objects."""
_CODECS = np.array([*(codec.name.lower() for codec in Codec), *map(str, range(max(Codec) + 1, CODEC_MASK + 1))])


class ShownProducers(Struct, frozen=True):
    """The producer ids whose histories a table has (None: all), and their transactional ids as far as known.

    `look_up_names`: an engine that makes the tables itself looks up the transactional ids.
    """

    producer_ids: frozenset[int] | None = None
    names: Mapping[int, str] = {}
    look_up_names: bool = False

    def includes(self, producer_id: int) -> bool:
        """Return whether the tables have an id's histories."""
        return self.producer_ids is None or producer_id in self.producer_ids


_EVERYBODY = ShownProducers()


def recorded_tables(result: ScanResult, options: RenderOptions) -> Tables:
    """Return a scan's tables, with the timelines and producers of all producer ids where they are recorded."""
    return _recorded(result, options, _EVERYBODY)


def recorded_timelines(result: TimelineResult, options: RenderOptions) -> Tables:
    """Return a scan's tables, with the timelines and producers of those asked for, and their transactional ids."""
    if options.producer_ids is None and any(recorded.tables is not None for recorded in options.recorded.values()):
        return _recorded(result.scan, options, ShownProducers(look_up_names=True))
    names = {
        producer_id: name
        for recorded in options.recorded.values()
        for producer_id, name in recorded.transactional_ids(options.producer_ids).items()
    }
    return _recorded(result.scan, options, ShownProducers(options.producer_ids, names))


def listed_producers(result: ProducersResult, options: RenderOptions) -> Tables:
    """Return the tables of a list of producer ids; tables that an engine makes have all chosen ids, not only those listed."""
    if options.listed is None:
        return producers_tables(result, options)
    writer = TablePieces(options.decide, options.log_start_offset, blocks=result.blocks)
    return _of_engine(scan_tables(result.scan, options), options.listed, writer, options)


def _of_engine(tables: Tables, engine: EngineTables, writer: "TablePieces", options: RenderOptions) -> Tables:
    batches = write_batches if options.batches else None
    return replace(
        tables,
        rows={},
        streamed=writer.tables(batches=options.batches),
        pieces=engine.pieces(writer, batches),
        write_to=lambda url: engine.write_to(url, {**tables.manifest, "exit_code": options.exit_code}, writer, batches),
    )


def _recorded(result: ScanResult, options: RenderOptions, shown: ShownProducers) -> Tables:
    tables = scan_tables(result, options)
    by_engine = [recorded.tables for recorded in options.recorded.values() if recorded.tables is not None]
    if by_engine:
        writer = TablePieces(options.decide, options.log_start_offset, shown, digests=options.digests)
        return _of_engine(tables, by_engine[0], writer, options)
    write = partial(write_histories, shown=shown)
    pieces = [recorded.write_histories(write, result.findings) for recorded in options.recorded.values()]
    if not pieces:
        return tables
    if options.batches:
        pieces += [recorded.write_batches(write_batches) for recorded in options.recorded.values()]
    streamed = ("timelines", "producers", *(["batches"] if options.batches else []))
    return replace(tables, streamed=streamed, pieces=chain.from_iterable(pieces))


def write_histories(
    history: PartitionHistory,
    findings: Sequence[Finding],
    newest: Profile,
    shown: ShownProducers = _EVERYBODY,
) -> Iterator[Piece]:
    """Yield the rows of one partition replica: its timelines, then its producers."""
    yield from _pieces("timelines", timeline_table_rows(history, findings, shown))
    rows = producer_table_rows(history, findings, shown, newest=newest)
    yield from _pieces("producers", rows)


def timeline_table_rows(
    history: PartitionHistory, findings: Sequence[Finding], shown: ShownProducers = _EVERYBODY
) -> Iterator[Row]:
    """Yield the rows of `timelines` of one partition replica, `findings` being its own."""
    for timeline in history.timelines(findings):
        if shown.includes(timeline.producer_id):
            name = shown.names.get(timeline.producer_id, timeline.transactional_id)
            yield from timeline_rows(replace(timeline, transactional_id=name))


def producer_table_rows(
    history: PartitionHistory, findings: Sequence[Finding], shown: ShownProducers = _EVERYBODY, *, newest: Profile
) -> Iterator[Row]:
    """Yield the rows of `producers` of one partition replica, with the transactional ids that its `findings` name."""
    names = {
        finding.producer_id: name for finding in findings if (name := finding.evidence.transactional_id) is not None
    }
    producers = history.producers(remembers_markers=newest.marker_sets_timestamp)
    return (
        producer_row(number, shown.names.get(number, names.get(number)), part)
        for number, part in producers
        if shown.includes(number)
    )


class TablePieces(Struct, frozen=True):
    """Makes rows of a scan's tables where its partitions are audited (producer_histories.TableWriter)."""

    decide: Decide
    log_start_offset: int | None = None
    shown: ShownProducers = _EVERYBODY
    blocks: Sequence[GrantedBlock] | None = None
    """The blocks of producer ids. A list of producer ids has a table of them instead of timelines."""
    digests: bool = False

    @property
    def looks_up_names(self) -> bool:
        """Whether the engine puts the transactional ids that __transaction_state names into the rows."""
        return self.shown.look_up_names

    def tables(self, *, batches: bool) -> Sequence[str]:
        """Return the names of all tables that there are pieces of."""
        names = ("findings", "partitions", "segments", "timelines" if self.blocks is None else "blocks", "producers")
        return (*names, *(["digests"] if self.digests else []), *(["batches"] if batches else []))

    def schema(self, table: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return the Arrow schema of a table."""
        return arrow_schema(table)

    def of_findings(self, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield the rows of findings."""
        return _pieces("findings", map(finding_row, findings))

    def of_scan(self, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield the rows that belong to no partition, including these findings."""
        yield from self.of_findings(findings)
        if self.blocks is not None:
            yield from _pieces("blocks", map(block_row, self.blocks))

    def of_producers(self, producers: Sequence[Producer]) -> Iterator[Piece]:
        """Yield the rows of `producers` of these, in their order."""
        return _pieces("producers", producer_rows(producers))

    def of_replica(
        self,
        history: PartitionHistory,
        findings: Sequence[Finding],
        newest: Profile,
    ) -> Iterator[Piece]:
        """Yield the rows of a partition replica."""
        part = history.partition
        yield from _pieces(
            "partitions", [partition_summary(part, newest, log_start_offset=self.log_start_offset).to_dict()]
        )
        segments = segment_rows(part.directory, [*part.unreadable, *part.removed])
        yield from _pieces("segments", (segment.to_dict() for segment in segments))
        if part.digest is not None:
            yield from _pieces("digests", [digest_row(part.digest)])
        if self.blocks is None:
            yield from write_histories(history, findings, newest, self.shown)


def _pieces(table: str, rows: Iterable[Row]) -> Iterator[Piece]:
    waiting = iter(rows)
    while held := list(islice(waiting, _PIECE_ROWS)):
        yield table, to_ipc(table, held)


def write_batches(task: SegmentTask, batches: Batches) -> Piece:
    """Pack some of a segment's batches as rows of `batches`."""
    return "batches", columns_to_ipc("batches", batch_columns(task, batches))


def batch_columns(task: SegmentTask, batches: Batches) -> dict[str, Any]:
    """Return the columns of `batches` for some of a segment's batches: numpy arrays, masked where null.

    Fields of batches without a producer are null. Times are ms since the epoch.
    """
    attributes, count = batches["attributes"], len(batches)
    no_producer = batches["producer_id"] <= NO_PRODUCER_ID
    no_sequence = no_producer | (batches["base_sequence"] < 0)
    return {
        **{name: np.full(count, getattr(task, name)) for name in ("topic", "partition", "replica")},
        "segment": np.full(count, task.spec.file.name),
        **{name: batches[name] for name in ("position", "base_offset", "magic", "leader_epoch")},
        "bytes": batches["size"],
        "last_offset": last_offsets(batches),
        "crc": batches["crc"].astype(np.int64),
        "codec": _CODECS[attributes & CODEC_MASK],
        "is_transactional": attributes & TRANSACTIONAL_FLAG != 0,
        "is_control": attributes & CONTROL_FLAG != 0,
        "is_log_append_time": attributes & LOG_APPEND_TIME_FLAG != 0,
        "max_timestamp": np.ma.array(batches["max_timestamp"], mask=batches["max_timestamp"] < 0),
        "producer_id": np.ma.array(batches["producer_id"], mask=no_producer),
        "producer_epoch": np.ma.array(batches["producer_epoch"], mask=no_producer),
        "first_sequence": np.ma.array(batches["base_sequence"], mask=no_sequence),
        "last_sequence": np.ma.array(last_sequences(batches), mask=no_sequence),
        "records": np.ma.array(batches["record_count"], mask=batches["record_count"] < 0),
    }
