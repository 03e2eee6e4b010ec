"""Keys, values and headers of records, and the fields of internal topics, as hashes: equal ones stay equal, others stay different."""

import base64
from collections import Counter
from collections.abc import Mapping
from typing import Final

from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.record_schemas import CONTROL_TYPES
from kaudit.formats.internal_topics.rewriting import rewritten_control, rewritten_record
from kaudit.formats.log.control import parse_control
from kaudit.formats.log.records import Header, RecordChange
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE, TRANSACTIONS
from kaudit.results.redaction import Redactor

DECODED_TOPICS: Final = frozenset({GROUPS, TRANSACTIONS, SHARE_STATE, REMOTE_LOG, CLUSTER})
_TEXT_BYTES: Final = 43
"""The letters of a hash; longer contents repeat them, as compressible as what applications write."""
_SHORT_BYTES: Final = 10
"""Hashes of so few bytes could be equal by chance: contents as short are permuted, so that none is."""
_ROUNDS: Final = 8
_CACHED: Final = 100_000
_FIELDS: Final[Mapping[str, str]] = {
    "group": "group_id",
    "groupId": "group_id",
    "transactionalId": "transactional_id",
    "clientId": "client_id",
    "clientHost": "host",
    "host": "host",
    **dict.fromkeys(
        ("topic", "topicName", "subscribedTopicNames", "topics", "sourceTopics", "repartitionSinkTopics"), "topic"
    ),
}
"""Fields of internal topics that hold names, and the field of kaudit's results that has the same."""
_NAMES_OF_TOPICS: Final = frozenset(
    {
        ("TopicRecord", "name"),
        ("ConfigRecord", "resourceName"),
        ("RemoteLogSegmentMetadata", "name"),
        ("RemoteLogSegmentMetadataUpdate", "name"),
        ("RemotePartitionDeleteMetadata", "name"),
        ("StreamsGroupTopology", "name"),
    }
)
_KAFKAS: Final = frozenset({("FeatureLevelRecord", "name"), ("ConfigRecord", "name"), ("ClientQuotaRecord", "key")})
"""Fields whose texts are Kafka's own."""
_KAFKAS_WORDS: Final = frozenset(
    {
        *("consumer", "connect", "sr", "share", "streams", "classic"),
        *("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "stream", "compatible", "sessioned", "eager"),
        *("metadata.version", "kraft.version", "transaction.version", "group.version", "share.version", "streams.version"),
        "eligible.leader.replicas.version",
        *("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "CONTROLLER"),
        *("compact", "delete", "compact,delete", "delete,compact", "CreateTime", "LogAppendTime", "true", "false"),
        *("producer", "uncompressed", "none", "gzip", "snappy", "lz4", "zstd"),
    }
)  # fmt: skip
"""Names of protocols, assignors, features and listeners, and values of configurations."""


class RedactedContents:
    """What becomes of contents and fields. `undecoded` counts records of internal topics, by topic, that were hashed as a whole.

    `names`: the names in internal topics, by the field of results that has them.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.undecoded: Counter[str] = Counter()
        self.names: dict[str, set[str]] = {}
        self._redactor = redactor
        self._digest = redactor.digest
        self._permuted: dict[bytes, bytes] = {}
        self._single = sorted(range(256), key=lambda byte: self._digest(b"byte" + bytes([byte])))

    # -- records -------------------------------------------------------------------------------------------------------
    def change_of(self, topic: str) -> RecordChange:
        """Return what becomes of a topic's records."""
        if topic not in DECODED_TOPICS:
            return lambda key, value, headers: (self._maybe(key), self._maybe(value), self._headers(headers))

        def internal(
            key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
        ) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
            try:
                changed = rewritten_record(topic, key, value, self)
            except WireError:
                self.undecoded[topic] += 1
                changed = self._maybe(key), self._maybe(value)
            return *changed, self._headers(headers)

        return internal

    def control(
        self, key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
    ) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
        """Return what becomes of a control record: markers stay, KRaft's have names. Raises WireError for one that is not known."""
        marker = parse_control(key, value)
        if marker.type_id in CONTROL_TYPES:
            value = rewritten_control(marker.type_id, value, self)
        elif not marker.type.ends_transaction:
            value = self._maybe(value)
        return key, value, self._headers(headers)

    def _maybe(self, data: bytes | None) -> bytes | None:
        return None if data is None else self.content(data)

    def _headers(self, headers: tuple[Header, ...]) -> tuple[Header, ...]:
        return tuple(Header(self._text_of(each.key), self._maybe(each.value)) for each in headers)

    # -- fields --------------------------------------------------------------------------------------------------------
    def content(self, value: bytes) -> bytes:
        """Return as many bytes in the place of bytes."""
        return self._text_of(value) if len(value) > _SHORT_BYTES else self._permutation(value)

    def text(self, record: str, field: str, value: str) -> str:
        """Return a name in the place of a text of an internal topic."""
        if not value or (record, field) in _KAFKAS or value in _KAFKAS_WORDS or value.isdecimal():
            return value
        kind = "topic" if (record, field) in _NAMES_OF_TOPICS else _FIELDS.get(field)
        if kind is None:
            return self._redactor.name(field, value)
        self.names.setdefault(kind, set()).add(value)
        return self._redactor.topic(value) if kind == "topic" else self._redactor.name(kind, value)

    def _text_of(self, value: bytes) -> bytes:
        letters = base64.urlsafe_b64encode(self._digest(value))[:_TEXT_BYTES]
        return (letters * (len(value) // _TEXT_BYTES + 1))[: len(value)]

    def _permutation(self, value: bytes) -> bytes:
        """Return what stands for a few bytes, and for none of the others as long: a Feistel network of keyed hashes."""
        if len(value) < 2:
            return bytes(self._single[byte] for byte in value)
        found = self._permuted.get(value)
        if found is None:
            half = len(value) // 2
            left, right = value[:half], value[half:]
            for step in range(0, _ROUNDS, 2):
                left = _xor(left, self._digest(bytes([step, len(value)]) + right))
                right = _xor(right, self._digest(bytes([step + 1, len(value)]) + left))
            if len(self._permuted) >= _CACHED:
                self._permuted.clear()
            found = self._permuted[value] = left + right
        return found


def _xor(data: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, mask, strict=False))
