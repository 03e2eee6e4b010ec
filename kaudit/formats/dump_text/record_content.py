"""Records of internal topics as kafka-dump-log prints them with its decoders.

Source of the formats: TransactionLog.formatRecordKeyAndValue (0.11 to 3.x), TransactionLogMessageParser (4.x, JSON),
GroupMetadataManager.formatRecordKeyAndValue (to 3.7), OffsetsMessageParser (JSON) and ClusterMetadataLogMessageParser (JSON) of
DumpLogSegments. JSON of a record is that of its generated JsonConverter.
"""

import json
import re
from typing import Any, Final

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.metadata_records import (
    FEATURE_LEVEL_API_KEY,
    PRODUCER_IDS_API_KEY,
    FeatureLevel,
    MetadataRecord,
    ProducerIds,
)
from kaudit.formats.internal_topics.record_schemas import Fields, InternalRecord, number_of, printed_record
from kaudit.model.coordinator import TopicPartitions, TransactionRecord, TransactionStatus, TransactionValue
from kaudit.model.internal_topics import CLUSTER

NOT_PRINTED: Final = -1
"""A time the text does not give."""

_KEY: Final = re.compile(r"(?:transaction_metadata::)?transactionalId=(.*)", re.DOTALL)
_VALUE: Final = re.compile(
    r"producerId:(-?[0-9]{1,19}),producerEpoch:(-?[0-9]{1,5}),state=(\w+),partitions=\w*[\[(](.*)[\])],"
    r"txnLastUpdateTimestamp=(-?[0-9]{1,19}),txnTimeoutMs=(-?[0-9]{1,10})"
)
_COMMIT_KEY: Final = re.compile(r"offset_commit::group=(.*),partition=([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})", re.DOTALL)
_COMMIT_VALUE: Final = re.compile(r"offset=(-?[0-9]{1,19})(?:,.*)?", re.DOTALL)
_GROUP_KEY: Final = re.compile(r"group_metadata::group=(.*)", re.DOTALL)
_MEMBER: Final = re.compile(r"[{,]([^=,{}]+)=\[([^\]]*)\]")
_DELETED: Final = b"<DELETE>"
_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
_STATUS: Final = {status.label: status for status in TransactionStatus if status is not TransactionStatus.UNKNOWN}
_TEXT_VERSION: Final = 0
_MAX_INT: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def parse_printed_transaction(key: bytes | None, payload: bytes | None) -> TransactionRecord:
    """Read a record of __transaction_state printed by --transaction-log-decoder; `payload` None is a tombstone.

    The text of 0.11 to 3.x prints neither version (0 is taken) nor start time (NOT_PRINTED) nor the tagged fields.
    Raises WireError for text that is not the decoder's.
    """
    if key is None:
        raise WireError(0, Reason.TRUNCATED, "a record of __transaction_state without a key")
    text = _text(key)
    if text.startswith("{"):
        data = _member(_json(text), "data", dict)
        name = _member(data, "transactionalId", str)
        return TransactionRecord(name, None if payload is None else _json_value(_json(_text(payload))))
    found = _KEY.fullmatch(text)
    if found is None:
        raise _unreadable("key", text)
    return TransactionRecord(found[1], None if payload is None else _text_value(_text(payload)))


def parse_printed_state(topic: str, key: bytes | None, payload: bytes | None) -> InternalRecord:
    """Read a record of __consumer_offsets or __share_group_state, printed by the decoder of the topic; None or <DELETE>: a tombstone.

    The text before 3.8 prints of a commit neither version (0 is taken) nor leader epoch, of a group its members' ids and partitions
    alone. Raises WireError for text that is not the decoder's.
    """
    if key is None:
        raise WireError(0, Reason.TRUNCATED, f"a record of {topic} without a key")
    text, value = _text(key), None if payload in (None, _DELETED) else _text(payload or b"")
    if text.startswith("{"):
        return printed_record(topic, _json(text), None if value is None else _json(value))
    if found := _COMMIT_KEY.fullmatch(text):
        fields = {"group": found[1], "topic": found[2], "partition": _in_range("partition", int(found[3]), "int32")}
        return _text_record("OffsetCommit", 1, fields, None if value is None else _text_commit(value))
    if found := _GROUP_KEY.fullmatch(text):
        return _text_record(
            "GroupMetadata", 2, {"group": found[1]}, None if value is None else _text_group(_json(value))
        )
    raise _unreadable("key", text)


def _text_record(name: str, number: int, key: Fields, value: Fields | None) -> InternalRecord:
    return InternalRecord(name, number, None if value is None else _TEXT_VERSION, key, value)


def _text_commit(text: str) -> Fields:
    found = _COMMIT_VALUE.fullmatch(text)
    if found is None:
        raise _unreadable("value", text)
    return {"offset": _in_range("offset", int(found[1]), "int64")}


def _text_group(group: dict[str, Any]) -> Fields:
    members = [
        {"memberId": member, "clientId": "", "clientHost": "", "assignment": {"assignedPartitions": _assigned(places)}}
        for member, places in _MEMBER.findall(_member(group, "assignment", str))
    ]
    return {"generation": _integer(group, "generationId", "int32"), "members": members}


def _assigned(text: str) -> list[Fields]:
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in _partitions(text) or ()]


def parse_printed_metadata(payload: bytes) -> MetadataRecord:
    """Read a record of __cluster_metadata printed by --cluster-metadata-decoder; raises WireError for other text."""
    record = _json(_text(payload))
    name = _member(record, "type", str)
    version = _integer(record, "version", "int16")
    data = _member(record, "data", dict)
    api_key = number_of(CLUSTER, name)
    content: ProducerIds | FeatureLevel | None = None
    if version == 0 and api_key == PRODUCER_IDS_API_KEY:
        content = ProducerIds(
            _integer(data, "brokerId", "int32"),
            _integer(data, "brokerEpoch", "int64"),
            _integer(data, "nextProducerId", "int64"),
        )
    elif version == 0 and api_key == FEATURE_LEVEL_API_KEY:
        content = FeatureLevel(_member(data, "name", str), _integer(data, "featureLevel", "int16"))
    return MetadataRecord(api_key, version, content)


def _text_value(text: str) -> TransactionValue:
    found = _VALUE.fullmatch(text)
    if found is None:
        raise _unreadable("value", text)
    producer_id, epoch, state, partitions, updated, timeout = found.groups()
    status = _STATUS.get(state)
    if status is None:
        raise _unreadable("state", state)
    return TransactionValue(
        _TEXT_VERSION,
        _in_range("producerId", int(producer_id), "int64"),
        _in_range("producerEpoch", int(epoch), "int16"),
        _in_range("txnTimeoutMs", int(timeout), "int32"),
        status,
        status.value,
        _partitions(partitions),
        _in_range("txnLastUpdateTimestamp", int(updated), "int64"),
        NOT_PRINTED,
    )


def _partitions(text: str) -> tuple[TopicPartitions, ...] | None:
    """`topic-0, topic-1`, in the order printed; None for none, as a value stores it."""
    if not text.strip():
        return None
    topics: dict[str, list[int]] = {}
    for entry in text.split(","):
        found = _PARTITION.fullmatch(entry.strip())
        if found is None:
            raise _unreadable("partition", entry)
        topics.setdefault(found[1], []).append(_in_range("partition", int(found[2]), "int32"))
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in topics.items())


def _json_value(value: dict[str, Any]) -> TransactionValue:
    version = _member(value, "version", str)
    data = _member(value, "data", dict)
    if not version.isdecimal():
        raise _unreadable("version", version)
    topics = data.get("transactionPartitions")
    status_id = _integer(data, "transactionStatus", "int8")
    return TransactionValue(
        int(version),
        _integer(data, "producerId", "int64"),
        _integer(data, "producerEpoch", "int16"),
        _integer(data, "transactionTimeoutMs", "int32"),
        next((status for status in _STATUS.values() if status == status_id), TransactionStatus.UNKNOWN),
        status_id,
        None if topics is None else tuple(map(_topic, _member(data, "transactionPartitions", list))),
        _integer(data, "transactionLastUpdateTimestampMs", "int64"),
        _integer(data, "transactionStartTimestampMs", "int64"),
        # JsonConverter leaves out tagged fields with their default value, as the bytes do
        _optional(data, "previousProducerId", "int64"),
        _optional(data, "nextProducerId", "int64"),
        _optional(data, "clientTransactionVersion", "int16"),
        _optional(data, "nextProducerEpoch", "int16"),
    )


def _topic(entry: object) -> TopicPartitions:
    if not isinstance(entry, dict):
        raise _unreadable("partitions", str(entry))
    numbers = _member(entry, "partitionIds", list)
    if not all(type(number) is int for number in numbers):
        raise _unreadable("partitions", str(numbers))
    partitions = tuple(_in_range("partition", number, "int32") for number in numbers)
    return TopicPartitions(_member(entry, "topic", str), partitions)


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(0, Reason.VALUE, f"no JSON of kafka-dump-log: {error}") from None
    if not isinstance(found, dict):
        raise _unreadable("record", text)
    return found


def _member(data: dict[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401 - of the kind asked for
    value = data.get(name)
    if type(value) is not kind:
        raise _unreadable(name, str(value))
    return value


def _integer(data: dict[str, Any], name: str, kind: str) -> int:
    return _in_range(name, _member(data, name, int), kind)


def _in_range(name: str, value: int, kind: str) -> int:
    if not -(1 << _MAX_INT[kind]) <= value < 1 << _MAX_INT[kind]:
        raise _unreadable(name, str(value)[:40])
    return value


def _optional(data: dict[str, Any], name: str, kind: str) -> int | None:
    return _integer(data, name, kind) if name in data else None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise WireError(error.start, Reason.VALUE, "no UTF-8 text of kafka-dump-log") from None


def _unreadable(what: str, text: str) -> WireError:
    return WireError(0, Reason.VALUE, f"no {what} as kafka-dump-log's decoders print it: {text[:80]}")
