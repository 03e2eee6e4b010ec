"""Columns of tables: rows of `kaudit dedup`, the Parquet tables of scans, DataFrames on Spark.

One name has one type and one meaning in each of the families. Row builders, Parquet schemas, headings on a terminal and
docs/columns.md are derived from here.
"""

from collections.abc import Mapping
from typing import get_args, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import replace

from kaudit.model.finding import JSON_OMITS, Finding
from kaudit.model.result import PartitionSummary, SegmentSummary


class Column(Struct, frozen=True):
    """`type` of the values, what they mean (with their unit), and the heading on a terminal.

    Types: string, bool, int8 to int64, `timestamp` (ms since the epoch, UTC), and of inspect rows `bytes` (text, encoding,
    size, truncated), `headers`, `partitions` (topic and its partitions), `strings` and `json` (an object, in Parquet its text); of DataFrames `binary` and
    `record_headers` (key, value).
    """

    type: str
    meaning: str
    heading: str | None = None


def columns_of(type_: str, **meanings: str | tuple[str, str]) -> dict[str, Column]:
    """Columns of one type: each its meaning, or (meaning, heading)."""
    return {
        name: Column(type_, text) if isinstance(text, str) else Column(type_, *text) for name, text in meanings.items()
    }


_PARTITION = ("topic", "partition", "replica", "segment")
_OUTCOME = "committed, aborted or open; null outside transactions"
_REMEMBERS = "whether a consumer drops it that remembers"
DUPLICATE_COLUMNS: Mapping[str, Column] = {
    **columns_of(
        "string",
        topic="topic",
        replica="name of the log directory",
        segment="file name of the .log; null of a log that brokers send",
        transaction_outcome=_OUTCOME,
        original_transaction_outcome=f"the original's: {_OUTCOME}",
        relation="how its producer stands to the original's: same-sequence, no-producer-id, other-producer-id, other-epoch, "
        "other-sequence; sequence-reused where the records are others",
        key_hash="SHA-256, in hex, of its key; null without one",
    ),
    **columns_of(
        "bool",
        repeats="it equals the original in what was compared: key, value and headers, or what `identity` of the summary names; else only its "
        "sequence is the original's",
        dropped_by_key=f"{_REMEMBERS} keys; null where `repeats` is false",
        dropped_by_sequence=f"{_REMEMBERS} producer id, epoch and sequence",
        read_committed="whether a consumer with isolation.level=read_committed is given both",
    ),
    **columns_of(
        "int64",
        partition="partition",
        position="byte in the .log where its batch begins; null of a log that brokers send",
        offset="first offset",
        last_offset="last offset",
        record_count="records",
        timestamp="timestamp of its latest record, ms",
        producer_id="producer id; null without one, as the fields below",
        producer_epoch="producer epoch",
        sequence="sequence of its first record",
        original_offset="first offset of what it repeats",
        original_last_offset="last offset of what it repeats",
        original_timestamp="timestamp of the original's latest record, ms",
        original_producer_id="producer id of the original",
        original_producer_epoch="producer epoch of the original",
        original_sequence="sequence of the original's first record",
        copy="2 is the first repeat; null where `repeats` is false",
    ),
    **columns_of(
        "string",
        cause="what put the range into the log again: retry, restart, reprocessing, re-snapshot, mirror, recurring, unknown",
        confidence="that they repeat the others, and are not alike by chance or by intention: certain, likely, possible",
        differs_in="the parts of the records that are not the same; null if key, value and headers are equal",
        recognisable_by="by what a consumer can tell that it had them before; null if by nothing but their content",
    ),
    **columns_of("bool", same_timestamps="every record of the range has the timestamp of the one it repeats"),
}
"""Columns of the rows of `kaudit dedup`."""
DUPLICATE_TABLES: Mapping[str, tuple[str, ...]] = {
    "duplicate": (
        *_PARTITION, "position", "offset", "last_offset", "record_count", "timestamp", "producer_id", "producer_epoch",
        "sequence", "transaction_outcome", "original_offset", "original_last_offset", "original_timestamp",
        "original_producer_id", "original_producer_epoch", "original_sequence", "original_transaction_outcome",
        "relation", "repeats", "copy", "dropped_by_key", "dropped_by_sequence", "read_committed", "key_hash",
    ),
    "range": (
        "topic", "replica", "partition", "offset", "last_offset", "original_offset", "original_last_offset", "record_count",
        "timestamp", "original_timestamp", "producer_id", "producer_epoch", "original_producer_id", "original_producer_epoch",
        "relation", "cause", "confidence", "same_timestamps", "differs_in", "recognisable_by",
    ),
}  # fmt: skip

TRANSACTION_COLUMNS: Mapping[str, Column] = {
    **columns_of(
        "string",
        transactional_id="transactional id; null where __transaction_state does not name it",
        outcome="committed, aborted or open",
        group_id="group that committed offsets in the transaction",
        topic="topic",
    ),
    **columns_of(
        "bool", read_committed="whether consumers with isolation.level=read_committed are given all that it wrote"
    ),
    **columns_of(
        "int64",
        transaction="number of the transaction among those listed",
        producer_id="producer id",
        producer_epoch="producer epoch of its markers",
        began_timestamp="when it began, ms: the least timestamp of its records; null where it wrote none",
        ended_timestamp="when its last marker was written, ms; null while it is open",
        records="records written",
        partition="partition",
        first="first offset of its inputs; null where it is not known",
        end="offset after the last of its inputs, which is what the group committed",
        first_offset="offset of the first record written",
        last_offset="offset of its marker; of an open one, of the last record of the log",
    ),
}
"""Columns of the rows of `kaudit transactions`."""
TRANSACTION_TABLES: Mapping[str, tuple[str, ...]] = {
    "transaction": (
        "transaction", "transactional_id", "producer_id", "producer_epoch", "outcome", "began_timestamp", "ended_timestamp",
        "records", "read_committed",
    ),
    "input": ("transaction", "group_id", "topic", "partition", "first", "end"),
    "output": ("transaction", "topic", "partition", "first_offset", "last_offset", "records"),
}  # fmt: skip


GROUP_COLUMNS: Mapping[str, Column] = {
    **columns_of(
        "string",
        group="consumer group",
        topic="topic",
        member_id="member that the partition is assigned to; of a step: that committed",
        client_id="client.id of the member",
        host="host of the member",
        kind="went back, went back and was corrected at once, reset, removed, or went back unseen",
        before_member_id="member that had committed before",
    ),
    **columns_of(
        "int64",
        partition="partition",
        generation="generation of the group, its epoch in the consumer protocol; null where no record says",
        members="members; null where no record says",
        partitions="partitions with a committed offset; of a member: those it is assigned",
        lag="records between the committed offset and the log end; null where the log is not among the inputs",
        steps="commits that were not plain progress",
        committed="committed offset",
        committed_before="offset that was committed before",
        leader_epoch="leader epoch of the last record consumed, -1 where it is not known",
        timestamp="when the coordinator wrote it, ms",
        offset="offset of the record in __consumer_offsets",
        log_start_offset="log start offset",
        log_end_offset="log end offset",
        producer_id="producer id of the transaction; null outside of one",
        producer_epoch="its epoch",
        before_producer_id="producer id that had committed before",
    ),
}
"""Columns of the rows of `kaudit groups`."""
GROUP_TABLES: Mapping[str, tuple[str, ...]] = {
    "group": ("group", "generation", "members", "partitions", "lag", "steps"),
    "member": ("group", "member_id", "client_id", "host", "partitions"),
    "generation": ("group", "generation", "members", "offset", "timestamp"),
    "offset": (
        "group", "topic", "partition", "committed", "leader_epoch", "timestamp", "offset", "log_start_offset", "log_end_offset",
        "lag", "member_id", "steps",
    ),
    "commit": (
        "group", "topic", "partition", "committed", "offset", "timestamp", "producer_id", "producer_epoch", "generation",
        "member_id",
    ),
    "step": (
        "group", "topic", "partition", "kind", "committed_before", "committed", "offset", "timestamp", "producer_id",
        "generation", "member_id", "before_producer_id", "before_member_id",
    ),
}  # fmt: skip


def _finding_columns() -> dict[str, Column]:
    """Return a column for each field of Finding that has a description: int64, bool, or text, which is JSON where it nests."""
    columns: dict[str, Column] = {}
    for name, hint in get_type_hints(Finding, include_extras=True).items():
        meaning = next((meta.description for meta in get_args(hint) if isinstance(meta, Meta)), None)
        if meaning is not None:
            value = get_args(hint)[0]
            bare = next((kind for kind in get_args(value) if kind is not type(None)), value)
            columns[name] = Column({int: "int64", bool: "bool"}.get(bare, "string"), meaning)
    return columns


SCAN_COLUMNS: Mapping[str, Column] = {
    **_finding_columns(),
    **columns_of(
        "string",
        topic="topic",
        replica="name of the log directory",
        fingerprint="identifies a finding across runs, replicas and paths",
        code="code of the check",
        status="of a finding: new, known or suppressed; of a segment: read, empty, vanished or unreadable",
        segment="file name of the .log",
        path="path of the segment",
        reason="why the segment could not be read",
        transactional_id="transactional id, if a finding names it (`kaudit producers` looks all of them up)",
        kind="run, marker, missing or finding",
        transaction_outcome="committed, aborted, open or unknown",
        marker="COMMIT or ABORT; CLEANED where compaction emptied it",
        cause="why offsets are missing: log-start, compaction, damage, missing-segment, unknown",
        source="file or znode the block was read from",
        source_topic="topic of the source",
        target_topic="its copy in the target",
        difference="missing: of the source, not in the target; repeated: again in the target; only-in-target; pending: not copied yet",
        relation="the replica's relation to the reference, null for the reference itself",
        reference="the replica whose log the others would follow",
        leader_epochs="JSON: the leader epochs and their start offsets",
        codec="none, gzip, snappy, lz4 or zstd",
        algorithm="how the digest was made, and by which version of it",
        digest="digest of the batches that were checked, null without one",
        ranges="JSON: digests of ranges of their offsets",
    ),
    **columns_of(
        "bool",
        compacted="the partition is compacted",
        damaged="some bytes were no valid batch: they are in no digest",
        is_transactional="transactional flag",
        is_control="control flag",
        is_log_append_time="timestamps are the broker's",
    ),
    **columns_of("int8", magic="message format version"),
    **columns_of("int16", producer_epoch="producer epoch"),
    **columns_of(
        "int32",
        partition="partition",
        entry="number of the entry in its timeline, from 0",
        first_leader_epoch="leader epoch of the run's first batch",
        last_leader_epoch="leader epoch of the run's last batch",
        leader_epoch="leader epoch",
        coordinator_epoch="coordinator epoch",
        epochs="epochs the log shows of the producer id",
        broker="broker the block was granted to",
    ),
    **columns_of(
        "int64",
        position="byte in the file",
        offset="offset of the offending batch, or first missing offset",
        last_offset="last offset of the batch, run or range",
        producer_id="producer id",
        log_start_offset="log start offset",
        log_end_offset="offset after the last record",
        last_stable_offset="last stable offset",
        segments="segments",
        bytes="bytes",
        batches="batches",
        records="records",
        producers="producer ids",
        runs="runs of consecutive batches",
        base_offset="base offset of the batch or segment",
        first_offset="first offset of the run, range or producer id",
        first_sequence="first sequence",
        last_sequence="last sequence",
        transaction_first_offset="first offset of the transaction the run belongs to",
        state_last_offset="offset of the last batch a broker would remember",
        current_txn_start_offset="first offset of the open transaction",
        first_producer_id="first id of the block",
        last_producer_id="last id of the block",
        version="version of the znode",
        common_end_offset="offset below which all replicas agree",
        first_difference="first offset at which replicas differ",
        truncation_offset="where the replica would truncate its log to follow the reference",
        start_offset="first offset of the replica's log, or of the part that was checked",
        end_offset="offset after the replica's last record",
        only_first_offset="first offset that only this replica holds",
        only_last_offset="last offset that only this replica holds",
        source_partition="partition of the source",
        target_partition="partition of the target",
        source_first_offset="first offset of the records in the source",
        source_last_offset="last offset of the records in the source",
        target_first_offset="first offset of the records in the target",
        target_last_offset="last offset of the records in the target",
        earlier_partition="partition of the target that has the records already",
        earlier_first_offset="first offset at which the target has the records already",
        earlier_last_offset="last offset at which the target has the records already",
        crc="stored CRC",
    ),
    **columns_of(
        "timestamp",
        modified="when the segment file was last modified",
        min_timestamp="lowest timestamp",
        max_timestamp="highest timestamp",
        last_timestamp="last timestamp a broker would remember",
        granted_at="when the block was granted",
    ),
}
"""Columns of the Parquet tables of `scan`, `timeline`, `producers` and `diff`. Null: the log has none."""

_REPLICA = ("topic", "partition", "replica")
_FINDING_LEADS = (
    "fingerprint", "code", "name", "severity", "confidence", "status", *_REPLICA, "log_dir", "file", "segment",
    "position", "offset", "last_offset", "producer_id", "producer_epoch", "message",
)  # fmt: skip
"""The first columns of `findings`; the other fields follow in the order of Finding."""
SCAN_TABLES: Mapping[str, tuple[str, ...]] = {
    "findings": (
        *_FINDING_LEADS,
        *(name for name in Finding.__struct_fields__ if name not in {*_FINDING_LEADS, *JSON_OMITS}),
    ),
    "partitions": PartitionSummary.__struct_fields__,
    "segments": SegmentSummary.__struct_fields__,
    "digests": (
        *_REPLICA, "start_offset", "end_offset", "batches", "digest", "algorithm", "ranges", "compacted", "damaged",
    ),
    "timelines": (
        *_REPLICA, "producer_id", "transactional_id", "entry", "kind", "first_offset", "last_offset", "first_sequence",
        "last_sequence", "producer_epoch", "batches", "records", "bytes", "min_timestamp", "max_timestamp",
        "is_transactional", "first_leader_epoch", "last_leader_epoch", "transaction_first_offset",
        "transaction_outcome", "coordinator_epoch", "marker", "cause", "fingerprint", "code",
    ),
    "producers": (
        *_REPLICA, "producer_id", "transactional_id", "first_offset", "last_offset", "batches", "records", "epochs",
        "producer_epoch", "last_sequence", "state_last_offset", "last_timestamp", "coordinator_epoch",
        "current_txn_start_offset",
    ),
    "blocks": ("first_producer_id", "last_producer_id", "broker", "version", "granted_at", "source"),
    "comparisons": (
        *_REPLICA, "relation", "reference", "common_end_offset", "first_difference", "truncation_offset",
        "start_offset", "end_offset", "only_first_offset", "only_last_offset", "leader_epochs",
    ),
    "record_ranges": (
        "source_topic", "target_topic", "difference", "partition", "first_offset", "last_offset", "records",
        "source_partition", "source_first_offset", "source_last_offset", "earlier_partition", "earlier_first_offset",
        "earlier_last_offset",
    ),
    "offset_map": (
        "source_topic", "target_topic", "source_partition", "source_first_offset", "source_last_offset",
        "target_partition", "target_first_offset", "target_last_offset", "records",
    ),
    "batches": (
        *_REPLICA, "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch", "crc", "codec",
        "is_transactional", "is_control", "is_log_append_time", "max_timestamp", "producer_id", "producer_epoch",
        "first_sequence", "last_sequence", "records",
    ),
}  # fmt: skip
"""Parquet tables and their columns in order."""

DEDUP_COLUMNS: Mapping[str, Column] = {
    "row": Column("string", "duplicate or range; the columns of the other are null"),
    **{
        name: replace(column, type="timestamp" if name.endswith("_timestamp") or name == "timestamp" else column.type)
        for name, column in DUPLICATE_COLUMNS.items()
    },
}
"""Columns of the DataFrame `dedup`."""
AUDIT_COLUMNS = ("merge_key", "change", "found_at", "audited_at", "run_id", "kaudit_version")
"""What a DataFrame's findings say besides: what to merge by, and which audit found them and when."""
DATAFRAME_COLUMNS: Mapping[str, Column] = {
    **SCAN_COLUMNS,
    **columns_of(
        "string",
        row="run, marker or chunk",
        group="consumer group that goes on at `first_offset`",
        origin="what batches() or runs() read: its paths and options, as JSON",
        timestamp_type="CreateTime or LogAppendTime; null in magic 0",
        difference="missing: of the source, not in the target; repeated: again in the target; only-in-target; pending: not copied yet; "
        "matched: in both; group-offset: where a group of the source goes on, and how many records it is given again",
        error="why the records of this batch cannot be decoded: all fields of records are null",
        merge_key="what distinguishes a finding from all others, in every audit of the same logs",
        change="found; of a stream also changed (its words are others now) and withdrawn (the log no longer shows it)",
        run_id="id of the audit",
        kaudit_version="version of kaudit",
    ),
    **columns_of("evidence", evidence="what the check saw; `json` has all of it"),
    **columns_of("impact", impact="what it cost; times of structs are timestamps"),
    **columns_of(
        "bool",
        exact="the columns hold every field of the header; runs() reads a segment again if one of its batches lacks any",
    ),
    **columns_of("int8", control_type="type of the first control record, as Kafka numbers them: 0 ABORT, 1 COMMIT"),
    **columns_of("int16", attributes="attributes of the header"),
    **columns_of("int32", segment_number="place of the segment in its partition, from 0"),
    **columns_of(
        "int64",
        first_position="byte in the file where the chunk begins",
        clock_limit="timestamps after this (ms) are no clock's, by the files' modification times",
        sequence="sequence of the record",
        size="bytes of the record, uncompressed",
        offset="offset of the record; of a finding, of the offending batch or the first missing offset",
    ),
    **columns_of(
        "timestamp",
        base_timestamp="base timestamp of the header",
        timestamp="timestamp of the record",
        found_at="when the audit began that found it first",
        audited_at="when the audit began",
    ),
    **columns_of(
        "binary",
        chunk="of a chunk: what findings(), timelines() and producers() need of it, readable by the same kaudit only",
        key="record key",
        value="record value",
    ),
    **columns_of("record_headers", headers="record headers: key as text, value as bytes"),
}
"""Columns of the DataFrames of `kaudit.spark`: those of the Parquet tables, and what only DataFrames have."""
DATAFRAME_TABLES: Mapping[str, tuple[str, ...]] = {
    "batches": (
        *SCAN_TABLES["batches"], "attributes", "base_timestamp", "control_type", "coordinator_epoch", "path",
        "segment_number", "log_start_offset", "clock_limit", "exact", "origin",
    ),
    "runs": (
        *_REPLICA, "segment", "row", "producer_id", "producer_epoch", "first_offset", "last_offset", "first_sequence",
        "last_sequence", "batches", "records", "bytes", "min_timestamp", "max_timestamp", "is_transactional",
        "first_leader_epoch", "last_leader_epoch", "coordinator_epoch", "marker", "position", "segment_number",
        "first_position", "path", "chunk", "origin",
    ),
    "records": (
        *_REPLICA, "segment", "position", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "size",
        "producer_id", "producer_epoch", "sequence", "leader_epoch", "is_transactional", "error",
    ),
    "findings": (*SCAN_TABLES["findings"], *AUDIT_COLUMNS),
    "timelines": SCAN_TABLES["timelines"],
    "producers": SCAN_TABLES["producers"],
    "diff": SCAN_TABLES["comparisons"],
    "dedup": tuple(DEDUP_COLUMNS),
    "ledger": (*SCAN_TABLES["record_ranges"], "group"),
}  # fmt: skip
"""DataFrames of `kaudit.spark` and their columns in order."""
NEVER_NULL: Mapping[str, frozenset[str]] = {
    "batches": frozenset((
        *_REPLICA, "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch", "crc", "codec",
        "is_transactional", "is_control", "is_log_append_time", "attributes", "path", "segment_number", "clock_limit",
        "exact", "origin",
    )),
    "runs": frozenset((*_REPLICA, "segment", "row", "segment_number", "first_position", "path", "origin")),
    "records": frozenset((*_REPLICA, "segment", "position")),
    "findings": frozenset((
        "fingerprint", "code", "name", "severity", "confidence", "status", "message", "evidence", "impact", *AUDIT_COLUMNS,
    )),
    "timelines": frozenset((*_REPLICA, "producer_id", "entry", "kind")),
    "producers": frozenset((*_REPLICA, "producer_id")),
    "diff": frozenset((*_REPLICA, "leader_epochs")),
    "dedup": frozenset(("row", *_REPLICA)),
    "ledger": frozenset(SCAN_TABLES["record_ranges"][:7]) - {"last_offset"},
}  # fmt: skip
"""Columns of the DataFrames that are never null."""


def dataframe_column(table: str, name: str) -> Column:
    """Return what a column of a DataFrame is."""
    return (DEDUP_COLUMNS if table == "dedup" else DATAFRAME_COLUMNS)[name]


def schema_of(table: str) -> dict[str, str]:
    """Types of a Parquet table's columns, in order."""
    return {name: SCAN_COLUMNS[name].type for name in SCAN_TABLES[table]}
