"""Records of the __cluster_metadata log (KRaft), as far as producers and versions need them.

Source of the format: Kafka's MetadataRecordSerde / AbstractApiMessageSerde (frame) and the schemas of
ProducerIdsRecord and FeatureLevelRecord, both flexible from version 0.
"""

from typing import Final

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer, Reader
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.record_schemas import schemas
from kaudit.model.internal_topics import CLUSTER

PRODUCER_IDS_API_KEY: Final = 15
FEATURE_LEVEL_API_KEY: Final = 12
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
    """One record: api key and version.

    `content` is decoded for ProducerIdsRecord and FeatureLevelRecord of version 0, else None.
    """

    api_key: int
    version: int
    content: ProducerIds | FeatureLevel | None

    @property
    def name(self) -> str:
        """The name of its schema, UNKNOWN_NAME for keys we do not know."""
        schema = schemas().get((CLUSTER, self.api_key))
        return UNKNOWN_NAME if schema is None else schema.name


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
    return MetadataRecord(api_key, version, content)
