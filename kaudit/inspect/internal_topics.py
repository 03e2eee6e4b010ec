"""Records of internal topics, decoded: transaction states, offset commits, groups, metadata."""

from collections.abc import Callable

from kaudit.formats.dump_text.record_content import parse_printed_metadata, parse_printed_transaction
from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.consumer_offsets import GroupMetadata, OffsetCommit, parse_group_record
from kaudit.formats.internal_topics.metadata_records import (
    FeatureLevel,
    MetadataRecord,
    ProducerIds,
    parse_metadata_record,
)
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.inspect.rows import Row, fields_of, null
from kaudit.model.coordinator import TransactionRecord, TransactionStatus

_Meaning = tuple[str, dict[str, object]]
_STATE = (
    "version", "producer_id", "producer_epoch", "previous_producer_id", "next_producer_id", "client_transaction_version",
    "next_producer_epoch",
)  # fmt: skip
_RECORD_ONLY = ("key", "value", "headers", "sequence", "is_transactional")


def content_row(row: Row, key: bytes | None, value: bytes | None) -> Row:
    """Return the record's row as what it means in its topic; the row itself in any other topic.

    A record that does not decode keeps its row, with the reason under `error`.
    """
    decode = _DECODERS.get(str(row["topic"]))
    if decode is None:
        return row
    try:
        return _as_meaning(row, decode(key, value))
    except WireError as error:
        return row | {"error": str(error)}


def dump_content_row(row: Row, key: bytes | None, payload: bytes | None) -> Row:
    """Return as `content_row` does the row of a record whose key and value kafka-dump-log printed.

    `payload` is None for a null value. A record the tool printed without its decoder keeps its row.
    """
    decode = _PRINTED_DECODERS.get(str(row["topic"]))
    if decode is None:
        return row
    try:
        return _as_meaning(row, decode(key, payload))
    except WireError:
        return row


def _as_meaning(row: Row, meaning: _Meaning | None) -> Row:
    if meaning is None:
        return row
    kind, fields = meaning
    kept = {name: item for name, item in row.items() if name not in _RECORD_ONLY}
    # a field of the record's batch gives way to one of the content with the same name
    return kept | {"row": kind} | fields


def _transaction(key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _transaction_row(parse_transaction_record(key, value))


def _printed_transaction(key: bytes | None, payload: bytes | None) -> _Meaning | None:
    kind, fields = _transaction_row(parse_printed_transaction(key, payload))
    if payload is not None and not payload.startswith(b"{"):
        fields["version"] = None  # only the tool of 4.x prints it
    return kind, fields


def _transaction_row(record: TransactionRecord) -> _Meaning:
    state = record.value
    fields: dict[str, object] = {"transactional_id": record.transactional_id, "tombstone": state is None}
    if state is not None:
        known = state.status is not TransactionStatus.UNKNOWN
        fields |= fields_of(state, _STATE, or_null=("last_update_timestamp", "start_timestamp"))
        fields |= {
            "transaction_timeout_ms": state.timeout_ms,
            "status": state.status_name if known else f"status-{state.status_id}",
            "partitions": None
            if state.partitions is None
            else [{"topic": entry.topic, "partitions": list(entry.partitions)} for entry in state.partitions],
        }
    return "txn_state", fields


def _group(key: bytes | None, value: bytes | None) -> _Meaning | None:
    record = parse_group_record(key, value)
    if isinstance(record, OffsetCommit):
        commit = record.value
        fields: dict[str, object] = {
            "group": record.group,
            "committed_topic": record.topic,
            "committed_partition": record.partition,
            "tombstone": commit is None,
        }
        if commit is not None:
            fields |= {
                "committed_offset": commit.offset,
                "committed_leader_epoch": null(commit.leader_epoch),
                **fields_of(commit, ["metadata"], or_null=["commit_timestamp"]),
            }
        return "offset_commit", fields
    if isinstance(record, GroupMetadata):
        group = record.value
        fields = {"group": record.group, "tombstone": group is None}
        if group is not None:
            fields |= fields_of(group, ("generation", "protocol_type", "protocol", "leader"))
            fields["members"] = [member.member_id for member in group.members]
        return "group_metadata", fields
    return None


def _metadata(_key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _metadata_row(parse_metadata_record(value))


def _printed_metadata(_key: bytes | None, payload: bytes | None) -> _Meaning | None:
    return None if payload is None else _metadata_row(parse_printed_metadata(payload))


def _metadata_row(record: MetadataRecord) -> _Meaning:
    fields = fields_of(record, ("api_key", "name", "version"))
    if isinstance(record.content, ProducerIds):
        fields |= fields_of(record.content, ("broker_id", "broker_epoch", "next_producer_id"))
    elif isinstance(record.content, FeatureLevel):
        fields |= {"feature": record.content.name, "feature_level": record.content.level}
    return "metadata", fields


_DECODERS: dict[str, Callable[[bytes | None, bytes | None], _Meaning | None]] = {
    "__transaction_state": _transaction,
    "__consumer_offsets": _group,
    "__cluster_metadata": _metadata,
}
_PRINTED_DECODERS: dict[str, Callable[[bytes | None, bytes | None], _Meaning | None]] = {
    "__transaction_state": _printed_transaction,
    "__cluster_metadata": _printed_metadata,
}

CONTENT_TOPICS = frozenset(_DECODERS)
"""Topics whose records are shown by what they mean."""
