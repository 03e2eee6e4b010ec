"""Records of internal topics, decoded: transaction states, offset commits, groups, share groups, remote segments, metadata."""

import json
import re
from collections.abc import Callable, Mapping

from kaudit.formats.dump_text.record_content import (
    parse_printed_metadata,
    parse_printed_state,
    parse_printed_transaction,
)
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.metadata_records import (
    FeatureLevel,
    MetadataRecord,
    ProducerIds,
    parse_metadata_record,
)
from kaudit.formats.internal_topics.record_schemas import (
    CONTROL_TYPES,
    InternalRecord,
    parse_control_record,
    parse_framed_record,
    parse_keyed_record,
    printed_control_record,
    printed_record,
)
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.inspect.rows import BytesFormatter, Row, fields_of, null
from kaudit.model.coordinator import TransactionRecord, TransactionStatus
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE

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


def control_content(type_id: int, value: bytes | None) -> Row:
    """Return what a control record of KRaft says under `content`, or `error`; nothing for a type that no release has."""
    return _content_of(type_id, lambda: parse_control_record(type_id, value))


def printed_control_content(type_id: int, fields: str) -> Row:
    """Return the same of a control record whose fields kafka-dump-log printed."""
    return _content_of(type_id, lambda: printed_control_record(type_id, _json(fields.encode())))


def _content_of(type_id: int, decode: Callable[[], InternalRecord]) -> Row:
    if type_id not in CONTROL_TYPES:
        return {}
    try:
        return {"content": _shown(decode().value)}
    except WireError as error:
        return {"error": str(error)}


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


def _of_groups(record: InternalRecord) -> _Meaning:
    """An offset commit or a classic group in columns of its own; a record of any other group as its fields."""
    key, value = record.key or {}, record.value
    if record.name in ("OffsetCommit", "LegacyOffsetCommit"):
        fields: dict[str, object] = {
            "group": key["group"],
            "committed_topic": key["topic"],
            "committed_partition": key["partition"],
            "tombstone": value is None,
        }
        if value is not None:
            fields |= {
                "committed_offset": value["offset"],
                "committed_leader_epoch": _null(value.get("leaderEpoch")),
                "metadata": value["metadata"],
                "commit_timestamp": _null(value["commitTimestamp"]),
            }
            if value.get("topicId") is not None:
                fields["committed_topic_id"] = value["topicId"]
        return "offset_commit", fields
    if record.name == "GroupMetadata":
        fields = {"group": key["group"], "tombstone": value is None}
        if value is not None:
            members = value["members"]
            names = {
                "generation": "generation",
                "protocol_type": "protocolType",
                "protocol": "protocol",
                "leader": "leader",
            }
            fields |= {name: value[of] for name, of in names.items()}
            fields["members"] = [member["memberId"] for member in members] if isinstance(members, list) else []
            fields["content"] = _shown(value)
        return "group_metadata", fields
    return _fields_row(record)


def _fields_row(record: InternalRecord) -> _Meaning:
    """A record as its type, and the fields of its key and value."""
    fields: dict[str, object] = {"name": record.name, "version": record.version, "tombstone": record.value is None}
    if record.key is not None:
        fields |= {"group": record.key.get("groupId"), "identity": _shown(record.key)}
    return "internal_record", fields | {"content": _shown(record.value)}


def _null(value: object) -> int | None:
    return null(value) if isinstance(value, int) else None


def _shown(value: object) -> object:
    """Return a field's value with bytes as `kaudit inspect` shows them, and secrets hidden."""
    if isinstance(value, bytes):
        return BytesFormatter().show(value)
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {name: _HIDDEN if _is_secret(name, value) else _shown(item) for name, item in value.items()}
    return value


_HIDDEN = "(hidden)"
_SECRET_FIELDS = frozenset({"salt", "storedKey", "serverKey"})
_SECRET_SETTING = re.compile(r"password|jaas|secret|keystore\.key|credential", re.IGNORECASE)


def _is_secret(name: str, fields: Mapping[str, object]) -> bool:
    """Whether a field is the key of a SCRAM credential, or the value of a setting with a password."""
    of_setting = name == "value" and "resourceName" in fields and _SECRET_SETTING.search(str(fields.get("name")))
    return name in _SECRET_FIELDS or bool(of_setting)


def _groups(key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _of_groups(parse_keyed_record(GROUPS, key, value))


def _share_state(key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _fields_row(parse_keyed_record(SHARE_STATE, key, value))


def _remote_log(_key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _fields_row(parse_framed_record(REMOTE_LOG, value))


def _metadata(_key: bytes | None, value: bytes | None) -> _Meaning | None:
    return _with_content(_metadata_row(parse_metadata_record(value)), lambda: parse_framed_record(CLUSTER, value))


def _with_content(meaning: _Meaning, decode: Callable[[], InternalRecord]) -> _Meaning:
    """A metadata record with all of its fields, or the reason why they cannot be read: of some the type is enough."""
    kind, fields = meaning
    try:
        return kind, fields | {"content": _shown(decode().value)}
    except WireError as error:
        return kind, fields | {"error": str(error)}


def _json(text: bytes | None) -> object:
    try:
        found: object = json.loads(text or b"")
    except (ValueError, RecursionError):
        raise WireError(0, Reason.VALUE, "no JSON of kafka-dump-log") from None
    return found


def _printed_groups(key: bytes | None, payload: bytes | None) -> _Meaning | None:
    return _of_groups(parse_printed_state(GROUPS, key, payload))


def _printed_share_state(key: bytes | None, payload: bytes | None) -> _Meaning | None:
    return _fields_row(parse_printed_state(SHARE_STATE, key, payload))


def _printed_metadata(_key: bytes | None, payload: bytes | None) -> _Meaning | None:
    if payload is None:
        return None
    return _with_content(
        _metadata_row(parse_printed_metadata(payload)), lambda: printed_record(CLUSTER, None, _json(payload))
    )


def _metadata_row(record: MetadataRecord) -> _Meaning:
    fields = fields_of(record, ("api_key", "name", "version"))
    if isinstance(record.content, ProducerIds):
        fields |= fields_of(record.content, ("broker_id", "broker_epoch", "next_producer_id"))
    elif isinstance(record.content, FeatureLevel):
        fields |= {"feature": record.content.name, "feature_level": record.content.level}
    return "metadata", fields


_DECODERS: dict[str, Callable[[bytes | None, bytes | None], _Meaning | None]] = {
    "__transaction_state": _transaction,
    GROUPS: _groups,
    SHARE_STATE: _share_state,
    REMOTE_LOG: _remote_log,
    CLUSTER: _metadata,
}
_PRINTED_DECODERS: dict[str, Callable[[bytes | None, bytes | None], _Meaning | None]] = {
    "__transaction_state": _printed_transaction,
    GROUPS: _printed_groups,
    SHARE_STATE: _printed_share_state,
    CLUSTER: _printed_metadata,
}

CONTENT_TOPICS = frozenset(_DECODERS)
"""Topics whose records are shown by what they mean."""
