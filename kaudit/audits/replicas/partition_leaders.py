"""What the controller wrote into __cluster_metadata: who led a partition under which leader epoch, which topics were deleted or have remote storage."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from kaudit.audits.log_events.broker_records import newest_batches
from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.record_schemas import InternalRecord, parse_framed_record
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import CLUSTER_METADATA, PartitionDirectory, metadata_snapshots

_MAX_BYTES: Final = 64 << 20
"""Read of each replica of __cluster_metadata, the newest."""
_OF_PARTITIONS: Final = (b"\x03", b"\x05")
"""The types of PartitionRecord and PartitionChangeRecord."""
_REMOVED_TOPIC: Final = (b"\x09",)
_TOPICS: Final = (b"\x02",)
_TOPICS_AND_CONFIGS: Final = (b"\x02", b"\x04")
_ENABLE: Final = (2, "remote.storage.enable")
"""As resourceType (ConfigResource.Type.TOPIC) and name of a ConfigRecord."""
_NO_CHANGE: Final = -2


def leaders_by_epoch(
    metadata: Sequence[PartitionDirectory], topic_id: str | None, partition: int, open_source: OpenSource
) -> Mapping[int, int]:
    """Return the id of the broker that led under each leader epoch, NO_LEADER where none did; nothing of what is not known.

    A change of the leader begins a leader epoch, any other change does not (PartitionRegistration.merge). `metadata` are replicas of
    __cluster_metadata.
    """
    leaders: dict[int, int] = {}
    for directory in metadata if topic_id is not None else ():
        epoch: int | None = None
        for record in _changes(directory, _OF_PARTITIONS, open_source):
            content = record.value or {}
            leader = content["leader"]
            if (content["topicId"], content["partitionId"]) != (topic_id, partition) or not isinstance(leader, int):
                continue
            if isinstance(begun := content.get("leaderEpoch"), int):
                epoch = begun
            elif epoch is None or leader == _NO_CHANGE:
                continue
            else:
                epoch += 1
            leaders[epoch] = leader
    return leaders


def removed_topics(metadata: Iterable[PartitionDirectory], open_source: OpenSource) -> Mapping[str, str]:
    """Return where in `metadata`, replicas of __cluster_metadata, the deletion of topics is written, by topic id."""
    removed: dict[str, str] = {}
    for directory in metadata:
        for record in _changes(directory, _REMOVED_TOPIC, open_source):
            removed.setdefault(str((record.value or {})["topicId"]), f"RemoveTopicRecord in {directory.relative}")
    return removed


def created_topics(metadata: Sequence[PartitionDirectory], open_source: OpenSource) -> Collection[str] | None:
    """Return the ids of all topics that ever were by `metadata`, replicas of __cluster_metadata; None where none has its first record.

    Nor where they are of two clusters, or too large to be read.
    """
    clusters = {directory.identity.cluster_id for directory in metadata if directory.identity is not None}
    whole = [directory for directory in metadata if directory.segments and not directory.segments[0].base_offset]
    if not whole or len(clusters) > 1 or sum(file.size for each in whole for file in each.segments) > _MAX_BYTES:
        return None
    records = (record for directory in metadata for record in _changes(directory, _TOPICS, open_source))
    return {str((record.value or {})["topicId"]) for record in records}


def remote_storage(metadata: Iterable[PartitionDirectory], open_source: OpenSource) -> Mapping[str, bool]:
    """Return by topic id whether `remote.storage.enable` of a topic is true, as replicas of __cluster_metadata have it; the furthest counts.

    Without a ConfigRecord it is false (LogConfig), and a topic that is made anew begins without.
    """
    enabled: dict[str, bool] = {}
    for directory in sorted(metadata, key=lambda each: [(file.base_offset, file.size) for file in each.segments[-1:]]):
        ids: dict[object, str] = {}
        for record in _changes(directory, _TOPICS_AND_CONFIGS, open_source):
            content = record.value or {}
            if record.name == "TopicRecord":
                ids[content["name"]] = str(content["topicId"])
                enabled[ids[content["name"]]] = False
            elif (content["resourceType"], content["name"]) == _ENABLE and content["resourceName"] in ids:
                enabled[ids[content["resourceName"]]] = content["value"] == "true"
    return enabled


def _changes(
    directory: PartitionDirectory, types: Container[bytes], open_source: OpenSource
) -> Iterator[InternalRecord]:
    """Yield the records of some types: those of the oldest snapshot where the log does not begin at 0, then what the log has after it."""
    begins = directory.segments[0].base_offset if directory.segments else 0
    snapshots = metadata_snapshots(directory)[:1] if begins else []
    for file in snapshots:
        yield from _records(replace(directory, segments=[replace(file, base_offset=0)]), 0, types, open_source)
    yield from _records(directory, max((file.base_offset for file in snapshots), default=0), types, open_source)


def _records(
    directory: PartitionDirectory, first: int, types: Container[bytes], open_source: OpenSource
) -> Iterator[InternalRecord]:
    for batch in newest_batches(directory, open_source, _MAX_BYTES):
        if batch.attributes & CONTROL_FLAG or batch.base_offset < first:
            continue
        with suppress(WireError):  # the audit reports damage of the log
            for record in read_records(batch.data):
                if record.value is not None and record.value[1:2] in types:
                    yield parse_framed_record(CLUSTER_METADATA, record.value)
