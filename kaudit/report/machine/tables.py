"""Results as rows of the tables of `kaudit.model.table_columns`, and the manifest beside them (docs/tables.md).

Tables too large for memory (`timelines`, `producers`, `batches`) are packed piece by piece where their rows are made.
"""

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.broker.releases.profile import Profile
from kaudit.formats.log.codecs import Codec
from kaudit.listings.producer_histories import EngineTables, PartitionHistory, Piece
from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from kaudit.model.digests import ALGORITHM, PartitionDigest
from kaudit.model.finding import Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.ledger import LedgerResult, RecordRange, RepeatedRange, TopicLedger, mapped_ranges
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducerPartition, ProducersResult
from kaudit.model.replicas import DiffResult, PartitionComparison
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.model.timeline import NONE, OTHER, OUTCOMES, RUN, RUN_FIELDS, TYPES, FindingEntry, Histories, MissingEntry
from kaudit.partition.batch_export import SegmentTask
from kaudit.report.json_documents import header
from kaudit.report.machine.parquet import arrow_schema, columns_to_ipc, to_ipc, to_table
from kaudit.report.render_options import Decide, RenderOptions, Row, Tables
from kaudit.scanning.summaries import partition_summary, segment_rows

SCHEMA = "kaudit.tables/1"


def scan_tables(result: ScanResult, options: RenderOptions) -> Tables:
    """Return a scan's findings, partitions and segments."""
    return _tables(result, options, {})


def producers_tables(result: ProducersResult, options: RenderOptions) -> Tables:
    """Return the scan's tables, one row for each producer id in each partition listed, and one for each block."""
    blocks = [block_row(block) for block in result.blocks]
    return _tables(result.scan, options, {"producers": list(producer_rows(result.producers)), "blocks": blocks})


def diff_tables(result: DiffResult, options: RenderOptions) -> Tables:
    """Return the scan's tables, and one row for each replica of each partition compared."""
    return _tables(result.scan, options, {"comparisons": list(comparison_rows(result.partitions))})


def ledger_tables(result: LedgerResult, options: RenderOptions) -> Tables:
    """Return the scan's tables, the ranges of records that differ, and the maps of offsets."""
    tables = _tables(result.scan, options, {"record_ranges": list(record_range_rows(result))})
    return replace(tables, streamed=("offset_map",), pieces=_mapped(result))


def record_range_rows(result: LedgerResult) -> Iterator[Row]:
    """Yield the ranges of records that differ."""
    for ledger in result.ledgers:
        kinds: Mapping[str, Sequence[RecordRange | RepeatedRange]] = {
            "missing": ledger.missing_ranges,
            "repeated": ledger.repeated_ranges,
            "only-in-target": ledger.only_in_target_ranges,
            "pending": ledger.pending_ranges,
        }
        for kind, ranges in kinds.items():
            for each in ranges:
                yield {**_topics(ledger), "difference": kind, **each.to_dict()}


def _mapped(result: LedgerResult) -> Iterator[tuple[str, bytes]]:
    for ledger in result.ledgers:
        rows = ({**_topics(ledger), **each._asdict()} for each in mapped_ranges(ledger.map_file))
        yield from _pieces("offset_map", rows)


def matched_range_rows(result: LedgerResult) -> Iterator[Row]:
    """Yield the ranges of the maps of offsets as rows of ranges: those of the target, and where they are in the source."""
    for ledger in result.ledgers:
        for each in mapped_ranges(ledger.map_file):
            yield {
                **_topics(ledger),
                "difference": "matched",
                "partition": each.target_partition,
                "first_offset": each.target_first_offset,
                "last_offset": each.target_last_offset,
                "records": each.records,
                "source_partition": each.source_partition,
                "source_first_offset": each.source_first_offset,
                "source_last_offset": each.source_last_offset,
            }


def _topics(ledger: TopicLedger) -> Row:
    return {"source_topic": ledger.source, "target_topic": ledger.target}


def comparison_rows(compared: Iterable[PartitionComparison]) -> Iterator[Row]:
    """Yield a row for each replica of each partition that was compared."""
    for entry in compared:
        for name, end in entry.end_offsets.items():
            only = entry.only_on.get(name)
            yield {
                "topic": entry.topic,
                "partition": entry.partition,
                "replica": name,
                "relation": _relation(entry, name),
                "reference": entry.reference,
                "common_end_offset": entry.common_end_offset,
                "first_difference": None if entry.first_difference is None else entry.first_difference.offset,
                "truncation_offset": entry.truncation_offsets.get(name),
                "start_offset": entry.start_offsets[name],
                "end_offset": end,
                "only_first_offset": None if only is None else only.first,
                "only_last_offset": None if only is None else only.last,
                "leader_epochs": to_json([row.to_dict() for row in entry.leader_epochs[name]]),
            }


def _relation(entry: PartitionComparison, name: str) -> str | None:
    """Return a replica's relation to the reference, None for the reference itself."""
    if entry.reference is None:
        return entry.relation.value
    return entry.relations[name].value if name in entry.relations else None


def _tables(result: ScanResult, options: RenderOptions, more: Mapping[str, Sequence[Row]]) -> Tables:
    rows: dict[str, Sequence[Row]] = {
        "findings": [finding_row(finding) for finding in result.findings],
        "partitions": [partition.to_dict() for partition in result.partitions],
        "segments": [segment.to_dict() for segment in result.segments],
        **more,
    }
    if result.digests is not None:
        rows["digests"] = list(map(digest_row, result.digests.partitions))
    in_tables = ("partitions", "baseline", "digests")
    manifest = {name: value for name, value in header(result, SCHEMA, options).items() if name not in in_tables}
    return Tables(rows, manifest)


def finding_row(finding: Finding) -> Row:
    """Return a row of `findings`: nested values are JSON."""
    return {
        name: to_json(value) if isinstance(value, dict | list) else value for name, value in finding.to_dict().items()
    }


_IMPACT_NUMBERS = tuple(name for name in Impact.__struct_fields__ if getattr(NO_IMPACT, name) is None)


def findings_table(findings: Sequence[Finding]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the table `findings` as a `pyarrow.Table`: each number of `impact` is a column, `next` a list of texts."""
    table = to_table("findings", [finding_row(finding) for finding in findings])
    table = table.set_column(
        table.schema.get_field_index("next"),
        "next",
        pa.array([list(found.next) for found in findings], pa.list_(pa.string())),
    )
    place = table.schema.get_field_index("impact")
    table = table.remove_column(place)
    for name in reversed(_IMPACT_NUMBERS):
        kind = pa.timestamp("ms", tz="UTC") if name.endswith("_timestamp") else pa.int64()
        table = table.add_column(place, name, pa.array([getattr(found.impact, name) for found in findings], kind))
    return table


def digest_row(digest: PartitionDigest) -> Row:
    """Return a row of `digests`: the digests of ranges are JSON."""
    fields = digest.to_dict()
    return {**fields, "algorithm": ALGORITHM, "ranges": to_json(fields["ranges"])}


def to_json(value: object) -> str:
    """Serialise a nested value into one column, keys sorted."""
    return json.dumps(value, sort_keys=True, allow_nan=False, default=operator.index)


_TEXTS = ("transaction_outcome", "marker", "cause", "fingerprint", "code")
_KINDS = np.array(["run", "marker", None], dtype=object)
_MARKERS, _ENDS = np.array(TYPES, dtype=object), np.array(OUTCOMES, dtype=object)


def timeline_columns(histories: Histories, names: Mapping[int, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return the columns of `timelines`: numpy arrays, masked where null. `names`: transactional ids, over those known.

    Times are ms since the epoch.
    """
    rows, owners, ids = histories.rows, histories.owners, histories.producer_ids
    is_run, within = rows["row"] == RUN, rows["is_transactional"]
    texts = {name: np.full(len(rows), None, dtype=object) for name in _TEXTS}
    kinds = _KINDS[rows["row"]]
    is_marker = ~is_run & (rows["row"] != OTHER)
    texts["transaction_outcome"][within] = _ENDS[rows["transaction_outcome"][within]]
    texts["marker"][is_marker] = _MARKERS[rows["type"][is_marker]]
    for at, entry in histories.others.items():
        kinds[at] = entry.kind
        if isinstance(entry, MissingEntry):
            texts["cause"][at] = entry.cause.value
        elif isinstance(entry, FindingEntry):
            texts["fingerprint"][at], texts["code"][at] = entry.fingerprint, entry.code
    known = {**histories.transactional_ids, **names}
    return {
        **{name: np.full(len(rows), getattr(histories, name)) for name in ("topic", "partition", "replica")},
        "producer_id": ids[owners],
        "transactional_id": np.array([*map(known.get, ids.tolist())], dtype=object)[owners],
        "entry": np.arange(len(rows)) - histories.starts[:-1][owners],
        "kind": kinds,
        **{name: np.ma.array(rows[name], mask=(rows[name] == NONE) & ~is_run) for name in RUN_FIELDS},
        "coordinator_epoch": np.ma.array(rows["coordinator_epoch"], mask=rows["coordinator_epoch"] == NONE),
        **{name: np.ma.array(rows[name], mask=rows[name] < 0) for name in ("min_timestamp", "max_timestamp")},
        "is_transactional": np.ma.array(rows["is_transactional"], mask=~is_run),
        "transaction_first_offset": np.ma.array(rows["transaction_first_offset"], mask=~within),
        **texts,
    }


def producer_rows(producers: Iterable[Producer]) -> Iterable[Row]:
    """Yield the rows of `producers`: each id in each partition replica."""
    for producer in producers:
        for part in producer.partitions:
            yield producer_row(producer.producer_id, producer.transactional_id, part)


def block_row(block: GrantedBlock) -> Row:
    """Return a row of `blocks`."""
    names = {"first_producer_id": "start", "last_producer_id": "end", "granted_at": "at_ms"}
    return {column: getattr(block, names.get(column, column)) for column in SCAN_TABLES["blocks"]}


def producer_row(producer_id: int, transactional_id: str | None, part: ProducerPartition) -> Row:
    """Return a row of `producers`: one id in one partition replica. Fields that a broker would not have are null."""
    state = {name: None if value == -1 else value for name, value in part.state.to_dict().items()}
    shared = ("topic", "partition", "replica", "first_offset", "last_offset", "batches", "records", "epochs")
    return {
        "producer_id": producer_id,
        "transactional_id": transactional_id,
        **state,
        "state_last_offset": state["last_offset"],
        **{name: getattr(part, name) for name in shared},
    }


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

    def rows_of(self, histories: Histories) -> NDArray[np.bool_]:
        """Return which rows the tables have."""
        return np.isin(histories.producer_ids, list(self.producer_ids or ()))[histories.owners]

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
    for histories in history.histories(findings):
        chosen = histories if shown.producer_ids is None else histories.where(shown.rows_of(histories))
        if len(chosen.rows):
            yield "timelines", columns_to_ipc("timelines", timeline_columns(chosen, shown.names))
    rows = producer_table_rows(history, findings, shown, newest=newest)
    yield from _pieces("producers", rows)


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
        if self.digests and part.digest is not None:  # copies of a partition have them for their comparison
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
