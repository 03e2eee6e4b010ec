"""Records of the __cluster_metadata log (KRaft), as far as producers and versions need them.

Source of the format: Kafka's MetadataRecordSerde / AbstractApiMessageSerde (frame) and the schemas of
ProducerIdsRecord and FeatureLevelRecord, both flexible from version 0.
"""

from typing import Final

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer, Reader
from kaudit.formats.errors import Reason, WireError

PRODUCER_IDS_API_KEY: Final = 15
FEATURE_LEVEL_API_KEY: Final = 12
RECORD_NAMES: Final = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    FEATURE_LEVEL_API_KEY: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    PRODUCER_IDS_API_KEY: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
    29: "UnregisterControllerRecord",
}
UNKNOWN_NAME: Final = "unknown"

_FRAME_VERSIONS: Final = (0, 1)
RECORD_VERSION: Final = 0


class ProducerIds(Struct, frozen=True):
    """ProducerIdsRecord: the broker was granted the block that ends before `next_producer_id` (so the last 1000)."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


class FeatureLevel(Struct, frozen=True):
    """FeatureLevelRecord: `level` (0..32767, 0: removed) of a feature such as metadata.version."""

    name: str
    level: int


class MetadataRecord(Struct, frozen=True):
    """One record: frame, api key with its name (UNKNOWN_NAME for keys we do not know), and version.

    `content` is decoded for ProducerIdsRecord and FeatureLevelRecord of version 0, else None; `size` counts the bytes
    after the frame.
    """

    frame_version: int
    api_key: int
    version: int
    name: str
    content: ProducerIds | FeatureLevel | None
    size: int


def parse_metadata_record(value: Buffer | None) -> MetadataRecord:
    """Decode the value of one non-control record; raises WireError for a null value and for broken bytes."""
    if value is None:
        raise WireError(0, Reason.TRUNCATED, "a metadata record without a value")
    reader = Reader(value)
    frame_version = reader.unsigned_varint("frame version")
    if frame_version not in _FRAME_VERSIONS:
        raise WireError(0, Reason.VERSION, f"frame version {frame_version}, known are {_FRAME_VERSIONS}")
    api_key = reader.unsigned_varint("api key")
    version = reader.unsigned_varint("record version")
    size = reader.remaining
    content: ProducerIds | FeatureLevel | None = None
    if version == RECORD_VERSION and api_key in (PRODUCER_IDS_API_KEY, FEATURE_LEVEL_API_KEY):
        if api_key == PRODUCER_IDS_API_KEY:
            content = ProducerIds(
                reader.int32("broker id"), reader.int64("broker epoch"), reader.int64("next producer id")
            )
        else:
            content = FeatureLevel(reader.compact_string("feature"), reader.int16("feature level"))
        reader.tagged_fields()
        reader.expect_end()
    return MetadataRecord(frame_version, api_key, version, RECORD_NAMES.get(api_key, UNKNOWN_NAME), content, size)
