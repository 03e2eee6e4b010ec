"""Results as rows of the tables of `kaudit.model.table_columns`, and the manifest beside them (docs/tables.md)."""

import json
import operator
from collections.abc import Iterable, Mapping, Sequence

from kaudit.model.digests import ALGORITHM, PartitionDigest
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducerPartition, ProducersResult
from kaudit.model.replicas import DiffResult, PartitionComparison
from kaudit.model.result import ScanResult
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.model.timeline import RunEntry, Timeline
from kaudit.report.json_documents import header
from kaudit.report.render_options import RenderOptions, Row, Tables

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
    return _tables(result.scan, options, {"comparisons": list(_compared(result))})


def _compared(result: DiffResult) -> Iterable[Row]:
    for entry in result.partitions:
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


def digest_row(digest: PartitionDigest) -> Row:
    """Return a row of `digests`: the digests of ranges are JSON."""
    fields = digest.to_dict()
    return {**fields, "algorithm": ALGORITHM, "ranges": to_json(fields["ranges"])}


def to_json(value: object) -> str:
    """Serialise a nested value into one column, keys sorted."""
    return json.dumps(value, sort_keys=True, allow_nan=False, default=operator.index)


def timeline_rows(timeline: Timeline) -> Iterable[Row]:
    """Yield the entries of one timeline as rows of `timelines`."""
    for number, entry in enumerate(timeline.entries):
        row = {**_place(timeline), "entry": number, **entry.to_dict()}
        row |= {"first_offset": entry.first_offset, "last_offset": entry.last_offset, "marker": row.get("type")}
        if entry.first_timestamp is not None:
            row |= {"min_timestamp": entry.first_timestamp, "max_timestamp": entry.last_timestamp}
        if isinstance(entry, RunEntry) and entry.transaction is not None:
            row["transaction_first_offset"] = entry.transaction.first_offset
            row["transaction_outcome"] = entry.transaction.outcome
        yield row


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


def _place(timeline: Timeline) -> dict[str, object]:
    names = ("topic", "partition", "replica", "producer_id", "transactional_id")
    return {name: getattr(timeline, name) for name in names}
