"""Columns of every table: rows of `kaudit inspect` and `kaudit dedup`, the Parquet tables of scans, DataFrames on Spark.

One name has one type and one meaning in each of the families. Row builders, Parquet schemas, headings on a terminal and
docs/columns.md are derived from here.
"""

from collections.abc import Mapping
from typing import get_args, get_type_hints

from msgspec import Meta, Struct

from kaudit.model.finding import JSON_OMITS, Finding
from kaudit.model.result import PartitionSummary, SegmentSummary


class Column(Struct, frozen=True):
    """`type` of the values, what they mean (with their unit), and the heading on a terminal.

    Types: string, bool, int8 to int64, `timestamp` (ms since the epoch, UTC), and of inspect rows `bytes` (text, encoding,
    size, truncated), `headers`, `partitions` (topic and its partitions) and `strings`; of DataFrames `binary` and
    `record_headers` (key, value).
    """

    type: str
    meaning: str
    heading: str | None = None


def _columns(type_: str, **meanings: str | tuple[str, str]) -> dict[str, Column]:
    """Columns of one type: each its meaning, or (meaning, heading)."""
    return {
        name: Column(type_, text) if isinstance(text, str) else Column(type_, *text) for name, text in meanings.items()
    }


INSPECT_COLUMNS: Mapping[str, Column] = {
    **_columns(
        "string",
        topic="topic, from the directory's name or --topic",
        replica="name of the log directory",
        segment="file name of the .log the row belongs to",
        file="file name; relative to the input in `file` rows",
        codec="none, gzip, snappy, lz4, zstd; `codec-5` and above for numbers no release has used",
        timestamp_type="CreateTime or LogAppendTime; null in magic 0",
        control_type=("COMMIT, ABORT, or the name of another control record", "control"),
        kind="kind of file, or kind of damage",
        leftover="suffix a broker gave a file it no longer uses: deleted, cleaned, swap",
        status="ok, empty, zero-tail, damaged, unreadable or unknown",
        detail="the first damage, or the reason a file cannot be read",
        broker=("what a broker does when it loads the damaged bytes", "broker's reaction"),
        transactional_id="transactional id",
        group="consumer group",
        committed_topic="topic of a committed offset",
        metadata="the client's own text beside a committed offset",
        protocol_type="protocol type of a group",
        protocol="assignor of a group",
        leader="member id of the group's leader",
        name=("name of the metadata record's type", "record"),
        feature="name of a feature",
        cluster_id="cluster id",
        directory_id="id of the log directory (KIP-858)",
        topic_id="topic id (KIP-516)",
        control="fields of a control record as JSON, from a text of kafka-dump-log",
        field="field of the batch header",
        hex="the field's bytes",
        meaning="what the value means in this batch",
        error="why a record of an internal topic could not be decoded",
    ),
    **_columns(
        "bool",
        crc_valid="whether the CRC matches; null where it was not computed",
        is_transactional="transactional flag",
        is_control="control flag",
        tombstone="the record's value is null",
        resynchronised="a valid batch follows the damage",
        here="the field holds the byte asked for",
    ),
    **_columns("bytes", key="record key", value="record value"),
    **_columns("headers", headers="record headers"),
    **_columns("partitions", partitions="partitions in the transaction"),
    **_columns("strings", members="member ids"),
    **_columns(
        "int64",
        partition="partition",
        position=("byte in the file where the batch, entry or field begins", "byte"),
        line="line in the text of kafka-dump-log",
        end="the byte after the damage",
        size="size in bytes",
        length="length of the field in bytes",
        base_offset="base offset",
        last_offset="offset of the last record; in a snapshot, of the producer's last batch",
        last_offset_delta="last offset - base offset",
        first_offset="first offset",
        last_stable_offset="last stable offset after the transaction",
        first_missing_offset="first offset lost to the damage",
        last_missing_offset="last offset lost to the damage; null where no later batch bounds it",
        snapshot_offset="offset of the snapshot, from its file name",
        offset_delta="last offset - first offset of the producer's last batch",
        current_txn_start_offset="first offset of the open transaction",
        record_count=("records in the batch", "records"),
        leader_epoch="leader epoch",
        magic="message format version",
        crc="stored CRC",
        base_timestamp="base timestamp, ms",
        max_timestamp=("max timestamp, ms", "time (UTC)"),
        timestamp=("timestamp of the record or entry, ms", "time (UTC)"),
        coordinator_epoch="coordinator epoch",
        producer_id=("producer id", "producer"),
        producer_epoch=("producer epoch", "epoch"),
        base_sequence="first sequence",
        last_sequence="last sequence; follows last_offset_delta, which compaction keeps",
        sequence="sequence of the record",
        delete_horizon_ms="time from which the cleaner may drop tombstones, ms",
        offset="offset of the record or entry",
        relative_offset="offset - the segment's base offset",
        log_position="byte in the .log",
        version="version of the record or file format",
        value_version="version of the marker's value",
        type_id="number of the control record's type",
        value_number="value of a header field (`value` in jsonl)",
        transaction_timeout_ms=("transaction timeout, ms", "timeout ms"),
        last_update_timestamp=("last change of the transaction, ms", "updated (UTC)"),
        start_timestamp=("start of the transaction, ms", "started (UTC)"),
        previous_producer_id="producer id before",
        next_producer_id="producer id after the transaction; in metadata, the first id after the block",
        next_producer_epoch="producer epoch after the transaction",
        client_transaction_version="transaction version of the client",
        committed_partition="partition of a committed offset",
        committed_offset="committed offset",
        committed_leader_epoch=("leader epoch of a committed offset", "leader epoch"),
        commit_timestamp=("time of the commit, ms", "at (UTC)"),
        generation="generation of a group",
        api_key="number of the metadata record's type",
        feature_level="level of a feature",
        broker_id="broker the block of producer ids was granted to",
        broker_epoch="epoch of that broker",
        node_id="node id",
        entries="batches or entries in the file",
    ),
}
"""Columns of inspect rows. Null: the field itself is -1, or the format has no such field."""

_PARTITION = ("topic", "partition", "replica", "segment")
_RECORD = (
    *_PARTITION, "position", "offset", "timestamp", "timestamp_type", "producer_id", "producer_epoch", "leader_epoch",
)  # fmt: skip
_SIDE_FILE = (*_PARTITION, "file", "position", "line")
INSPECT_TABLES: Mapping[str, tuple[str, ...]] = {
    "batch": (
        *_PARTITION, "position", "size", "base_offset", "last_offset", "last_offset_delta", "record_count", "leader_epoch",
        "magic", "crc", "crc_valid", "codec", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional",
        "is_control", "control_type", "coordinator_epoch", "producer_id", "producer_epoch", "base_sequence",
        "last_sequence", "delete_horizon_ms",
    ),
    "record": (*_RECORD, "sequence", "is_transactional", "key", "value", "headers", "size", "crc_valid", "line", "control"),
    "marker": (*_RECORD, "control_type", "coordinator_epoch", "version", "value_version", "line"),
    "control": (*_RECORD, "control_type", "type_id", "key", "value", "headers", "size"),
    "txn_state": (
        *_RECORD, "size", "transactional_id", "tombstone", "version", "transaction_timeout_ms", "status", "partitions",
        "last_update_timestamp", "start_timestamp", "previous_producer_id", "next_producer_id",
        "client_transaction_version", "next_producer_epoch", "error",
    ),
    "offset_commit": (
        *_RECORD, "size", "group", "committed_topic", "committed_partition", "tombstone", "committed_offset",
        "committed_leader_epoch", "metadata", "commit_timestamp",
    ),
    "group_metadata": (
        *_RECORD, "size", "group", "tombstone", "generation", "protocol_type", "protocol", "leader", "members",
    ),
    "metadata": (
        *_RECORD, "size", "api_key", "name", "version", "feature", "feature_level", "broker_id", "broker_epoch",
        "next_producer_id",
    ),
    "index": (*_SIDE_FILE, "offset", "relative_offset", "log_position"),
    "timeindex": (*_SIDE_FILE, "timestamp", "offset", "relative_offset"),
    "txnindex": (*_SIDE_FILE, "producer_id", "first_offset", "last_offset", "last_stable_offset"),
    "snapshot": (
        *_SIDE_FILE, "snapshot_offset", "producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta",
        "timestamp", "coordinator_epoch", "current_txn_start_offset",
    ),
    "checkpoint": (*_SIDE_FILE, "offset"),
    "leader_epoch": (*_SIDE_FILE, "leader_epoch", "offset"),
    "meta_properties": (*_SIDE_FILE, "version", "node_id", "cluster_id", "directory_id"),
    "partition_metadata": (*_SIDE_FILE, "version", "topic_id"),
    "clean_shutdown": (*_SIDE_FILE, "broker_epoch"),
    "quorum_state": _SIDE_FILE,
    "field": (*_PARTITION, "position", "length", "field", "hex", "value_number", "meaning", "here"),
    "file": (
        "file", "kind", "leftover", "topic", "partition", "replica", "size", "status", "detail", "first_offset",
        "last_offset", "entries",
    ),
    "damage": (
        *_SIDE_FILE, "end", "size", "kind", "detail", "resynchronised", "base_offset", "first_missing_offset",
        "last_missing_offset", "broker",
    ),
}  # fmt: skip
"""Kinds of inspect rows and their columns in order. A row may have more fields: Parquet has them as JSON in `more`."""

_OUTCOME = "committed, aborted or open; null outside transactions"
_REMEMBERS = "whether a consumer drops it that remembers"
DUPLICATE_COLUMNS: Mapping[str, Column] = {
    **_columns(
        "string",
        topic="topic",
        replica="name of the log directory",
        segment="file name of the .log; null of a log that brokers send",
        transaction_outcome=_OUTCOME,
        original_transaction_outcome=f"the original's: {_OUTCOME}",
        relation="how its producer stands to the original's: same-sequence, no-producer-id, other-producer-id, other-epoch, "
        "other-sequence; sequence-reused where the records are others",
        key_hash="SHA-256, in hex, of the key that all its records have; null without one",
    ),
    **_columns(
        "bool",
        repeats="it says what the original says, in keys, values and headers; else only its sequence is the original's",
        dropped_by_key=f"{_REMEMBERS} keys; null where `repeats` is false",
        dropped_by_sequence=f"{_REMEMBERS} producer id, epoch and sequence",
        read_committed="whether a consumer with isolation.level=read_committed is given both",
    ),
    **_columns(
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
}
"""Columns of the rows of `kaudit dedup`."""
DUPLICATE_TABLES: Mapping[str, tuple[str, ...]] = {
    "duplicate": (
        *_PARTITION, "position", "offset", "last_offset", "record_count", "timestamp", "producer_id", "producer_epoch",
        "sequence", "transaction_outcome", "original_offset", "original_last_offset", "original_timestamp",
        "original_producer_id", "original_producer_epoch", "original_sequence", "original_transaction_outcome",
        "relation", "repeats", "copy", "dropped_by_key", "dropped_by_sequence", "read_committed", "key_hash",
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
    **_columns(
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
        relation="the replica's relation to the reference, null for the reference itself",
        reference="the replica whose log the others would follow",
        leader_epochs="JSON: the leader epochs and their start offsets",
        codec="none, gzip, snappy, lz4 or zstd",
        algorithm="how the digest was made, and by which version of it",
        digest="digest of the batches that were judged, null without one",
        ranges="JSON: digests of ranges of their offsets",
    ),
    **_columns(
        "bool",
        compacted="the partition is compacted",
        damaged="some bytes were no valid batch: they are in no digest",
        is_transactional="transactional flag",
        is_control="control flag",
        is_log_append_time="timestamps are the broker's",
    ),
    **_columns("int8", magic="message format version"),
    **_columns("int16", producer_epoch="producer epoch"),
    **_columns(
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
    **_columns(
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
        start_offset="first offset of the replica's log, or of what was judged of it",
        end_offset="offset after the replica's last record",
        only_first_offset="first offset that only this replica holds",
        only_last_offset="last offset that only this replica holds",
        crc="stored CRC",
    ),
    **_columns(
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
    "batches": (
        *_REPLICA, "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch", "crc", "codec",
        "is_transactional", "is_control", "is_log_append_time", "max_timestamp", "producer_id", "producer_epoch",
        "first_sequence", "last_sequence", "records",
    ),
}  # fmt: skip
"""Parquet tables and their columns in order."""

DATAFRAME_COLUMNS: Mapping[str, Column] = {
    **SCAN_COLUMNS,
    **_columns(
        "string",
        row="run, marker or chunk",
        timestamp_type="CreateTime or LogAppendTime; null in magic 0",
        error="why the records of this batch cannot be decoded: all fields of records are null",
    ),
    **_columns(
        "bool",
        exact="the columns hold every field of the header; runs() reads a segment again if one of its batches lacks any",
    ),
    **_columns("int8", control_type="type of the first control record, as Kafka numbers them: 0 ABORT, 1 COMMIT"),
    **_columns("int16", attributes="attributes of the header"),
    **_columns("int32", segment_number="place of the segment in its partition, from 0"),
    **_columns(
        "int64",
        first_position="byte in the file where the chunk begins",
        clock_limit="timestamps after this (ms) are no clock's, by the files' modification times",
        sequence="sequence of the record",
        size="bytes of the record, uncompressed",
        offset="offset of the record; of a finding, of the offending batch or the first missing offset",
    ),
    **_columns("timestamp", base_timestamp="base timestamp of the header", timestamp="timestamp of the record"),
    **_columns(
        "binary",
        chunk="of a chunk: what findings(), timelines() and producers() need of it, readable by the same kaudit only",
        key="record key",
        value="record value",
    ),
    **_columns("record_headers", headers="record headers: key as text, value as bytes"),
}
"""Columns of the DataFrames of `kaudit.spark`: those of the Parquet tables, and what only DataFrames have."""
DATAFRAME_TABLES: Mapping[str, tuple[str, ...]] = {
    "batches": (
        *SCAN_TABLES["batches"], "attributes", "base_timestamp", "control_type", "coordinator_epoch", "path",
        "segment_number", "log_start_offset", "clock_limit", "exact",
    ),
    "runs": (
        *_REPLICA, "segment", "row", "producer_id", "producer_epoch", "first_offset", "last_offset", "first_sequence",
        "last_sequence", "batches", "records", "bytes", "min_timestamp", "max_timestamp", "is_transactional",
        "first_leader_epoch", "last_leader_epoch", "coordinator_epoch", "marker", "position", "segment_number",
        "first_position", "chunk",
    ),
    "records": (
        *_REPLICA, "segment", "position", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "size",
        "producer_id", "producer_epoch", "sequence", "leader_epoch", "is_transactional", "error",
    ),
    "findings": SCAN_TABLES["findings"],
    "timelines": SCAN_TABLES["timelines"],
    "producers": SCAN_TABLES["producers"],
}  # fmt: skip
"""DataFrames of `kaudit.spark` and their columns in order."""
NEVER_NULL: Mapping[str, frozenset[str]] = {
    "batches": frozenset((
        *_REPLICA, "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch", "crc", "codec",
        "is_transactional", "is_control", "is_log_append_time", "attributes", "path", "segment_number", "clock_limit",
        "exact",
    )),
    "runs": frozenset((*_REPLICA, "segment", "row", "segment_number", "first_position")),
    "records": frozenset((*_REPLICA, "segment", "position")),
    "findings": frozenset(("fingerprint", "code", "name", "severity", "confidence", "status", "message")),
    "timelines": frozenset((*_REPLICA, "producer_id", "entry", "kind")),
    "producers": frozenset((*_REPLICA, "producer_id")),
}  # fmt: skip
"""Columns of the DataFrames that are never null."""


def schema_of(table: str) -> dict[str, str]:
    """Types of a Parquet table's columns, in order."""
    return {name: SCAN_COLUMNS[name].type for name in SCAN_TABLES[table]}
