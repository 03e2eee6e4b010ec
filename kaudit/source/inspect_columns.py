"""Columns of the rows of `kaudit inspect`: of batches and records, and of each kind of file that is decoded.

One name has one type and one meaning. Row builders, Parquet schemas, headings on a terminal and docs/columns.md are derived from
here; the columns of a side file's rows from its kind (`file_kinds.py`).
"""

from collections.abc import Mapping

from kaudit.model.table_columns import Column, columns_of
from kaudit.source.file_kinds import FILE_KINDS

INSPECT_COLUMNS: Mapping[str, Column] = {
    **columns_of(
        "string",
        topic="topic, from the directory's name or --topic; of an event, as the log has it",
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
        name=("name of the record's type, as Kafka's schema has it", "record"),
        committed_topic_id="topic id of a committed offset (version 4)",
        feature="name of a feature",
        cluster_id="cluster id",
        directory_id="id of the log directory (KIP-858)",
        topic_id="topic id (KIP-516)",
        control="fields of a control record as JSON, from a text of kafka-dump-log",
        field="field of the batch header",
        hex="the field's bytes",
        meaning="what the value means in this batch",
        error="why a record of an internal topic could not be decoded; of an event, Kafka's name of the error",
        event="what happened (log-messages.md)",
        origin="server or client: whose log it is",
        client="the client that wrote the line",
        level="level of the log's entry",
        text="the entry's first 1,024 characters",
    ),
    **columns_of(
        "bool",
        crc_valid="whether the CRC matches; null where it was not computed",
        is_transactional="transactional flag",
        is_control="control flag",
        tombstone="the record's value is null",
        resynchronised="a valid batch follows the damage",
        here="the field holds the byte asked for",
    ),
    **columns_of("bytes", key="record key", value="record value"),
    **columns_of("headers", headers="record headers"),
    **columns_of("partitions", partitions="partitions in the transaction"),
    **columns_of(
        "json",
        identity="fields of the record's key by Kafka's names, numbers of states as their names",
        content="fields of the record's value by Kafka's names, numbers of states as their names; secrets are hidden",
    ),
    **columns_of("strings", members="member ids"),
    **columns_of(
        "int64",
        partition="partition",
        position=("byte in the file where the batch, entry or field begins", "byte"),
        line="line in a text of kafka-dump-log, or in a log",
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
        last_sequence="last sequence; follows last_offset_delta, which compaction keeps; of an event, the last that the broker has",
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


def _beyond(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in _SIDE_FILE)


INSPECT_TABLES: Mapping[str, tuple[str, ...]] = {
    "batch": (
        *_PARTITION, "position", "size", "base_offset", "last_offset", "last_offset_delta", "record_count", "leader_epoch",
        "magic", "crc", "crc_valid", "codec", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional",
        "is_control", "control_type", "coordinator_epoch", "producer_id", "producer_epoch", "base_sequence",
        "last_sequence", "delete_horizon_ms",
    ),
    "record": (
        *_RECORD, "sequence", "is_transactional", "key", "value", "headers", "size", "crc_valid", "line", "control", "error",
    ),
    "marker": (*_RECORD, "control_type", "coordinator_epoch", "version", "value_version", "line"),
    "control": (*_RECORD, "control_type", "type_id", "key", "value", "headers", "size", "content", "error"),
    "txn_state": (
        *_RECORD, "size", "transactional_id", "tombstone", "version", "transaction_timeout_ms", "status", "partitions",
        "last_update_timestamp", "start_timestamp", "previous_producer_id", "next_producer_id",
        "client_transaction_version", "next_producer_epoch", "error",
    ),
    "offset_commit": (
        *_RECORD, "size", "group", "committed_topic", "committed_partition", "tombstone", "committed_offset",
        "committed_leader_epoch", "metadata", "commit_timestamp", "committed_topic_id",
    ),
    "group_metadata": (
        *_RECORD, "size", "group", "tombstone", "generation", "protocol_type", "protocol", "leader", "members", "content",
    ),
    "internal_record": (*_RECORD, "size", "name", "version", "tombstone", "group", "identity", "content"),
    "metadata": (
        *_RECORD, "size", "api_key", "name", "version", "feature", "feature_level", "broker_id", "broker_epoch",
        "next_producer_id", "content", "error",
    ),
    **{kind.name: (*_SIDE_FILE, *_beyond(kind.columns)) for kind in FILE_KINDS if kind.parse is not None},
    "event": (
        *_PARTITION, "file", "line", "timestamp", "event", "origin", "client", "level", "producer_id", "producer_epoch",
        "base_sequence", "last_sequence", "offset", "leader_epoch", "transactional_id", "error", "text",
    ),
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
