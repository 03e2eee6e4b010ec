"""Broker versions of a scan: the one the user gives, else those that the logs and the files beside them allow.

Feature levels in the __cluster_metadata log (KRaft) show what the brokers that wrote it could do.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from kaudit.broker.releases.profile import Profile, UnknownVersionError, VersionRange, all_releases, profile_for
from kaudit.broker.releases.version import Version
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.deferred import Deferred
from kaudit.errors import UsageError
from kaudit.formats.errors import MissingContentError, WireError
from kaudit.formats.log.records import read_records
from kaudit.model.result import BrokerVersions
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.batch_content import batches_with, data_of
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import CLUSTER_METADATA, Layout, PartitionDirectory, metadata_snapshots
from kaudit.source.text import SegmentText

if TYPE_CHECKING:
    from kaudit.formats.internal_topics import metadata_records
else:
    metadata_records = Deferred("kaudit.formats.internal_topics.metadata_records")

AUTO = "auto"
ReadLevels = Callable[[Sequence[PartitionDirectory]], Mapping[str, int]]
"""Returns the levels of features that replicas of __cluster_metadata name."""


def given_version(requested: str) -> tuple[VersionRange, BrokerVersions]:
    """Return the range of the one version the user gave.

    Raises:
        UsageError: no profile has it.

    """
    try:
        version = profile_for(requested).version
    except UnknownVersionError as error:
        raise UsageError(str(error)) from error
    name = str(version)
    return VersionRange(version, version), BrokerVersions(requested, name, name, name, ("given with --broker-version",))


def newest_profile(stated: BrokerVersions) -> Profile:
    """Return the rules of the newest release that the brokers may have."""
    return profile_for(stated.at_most or all_releases()[-1])


def _of_brokers(names: Sequence[str]) -> tuple[VersionRange, BrokerVersions]:
    """Return the releases that live brokers have: of each, such as `3.9`, the first and the last of its line."""
    lines = [Version.parse(name).numbers for name in names]
    oldest, newest, releases = min(lines), max(lines), all_releases()
    of_oldest = [own for own in releases if own.numbers[: len(oldest)] == oldest]
    at_least = (of_oldest or [own for own in releases if own.numbers <= oldest][-1:] or releases)[0]
    at_most = ([own for own in releases if own.numbers[: len(newest)] <= newest] or releases[:1])[-1]
    because = f"the brokers take requests as those of {' and '.join(names)} do"
    found = VersionRange(at_least, max(at_least, at_most))
    return found, BrokerVersions(AUTO, None, str(found.at_least), str(found.at_most), (because,))


def inferred_versions(
    layout: Layout, parts: Sequence[PartitionAudit], read_levels: ReadLevels, *, flexible_transaction_value: bool
) -> tuple[VersionRange, BrokerVersions]:
    """Return the versions that can have written what is there.

    `flexible_transaction_value`: a record of __transaction_state has a value of version 1 or later (KIP-890).
    """
    if layout.evidence.broker_versions:
        return _of_brokers(layout.evidence.broker_versions)
    meta = layout.evidence.meta_properties
    logs = [entry for entry in layout.everything if entry.topic == CLUSTER_METADATA]
    features = {**layout.evidence.features, **(read_levels(logs) if logs else {})}
    found, because = infer_range(
        VersionEvidence(
            has_delete_horizon=any(part.counts.delete_horizons for part in parts),
            has_tv2_commit=any(part.has_tv2 for part in parts),
            has_flexible_transaction_value=flexible_transaction_value,
            has_magic_2=any(part.counts.batches > part.counts.legacy_batches for part in parts),
            meta_properties_versions=tuple(entry["version"] for entry in meta),
            has_directory_id=any("directory.id" in entry for entry in meta),
            has_bootstrap_checkpoint=layout.evidence.has_bootstrap_checkpoint,
            has_topic_id=any(part.directory.topic_id for part in parts),
            metadata_version=features.get(METADATA_VERSION, 0),
            transaction_version=features.get(TRANSACTION_VERSION, 0),
        )
    )
    return found, BrokerVersions(AUTO, None, str(found.at_least), str(found.at_most), because)


METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
_MAX_BYTES = 64 << 20
"""Read of one log: features are written when a cluster is made or upgraded, and absence proves nothing."""
_MAX_BATCH = 16 << 20


def feature_levels(directories: Sequence[PartitionDirectory], open_source: OpenSource) -> dict[str, int]:
    """Return the highest level each feature was ever given; damage is passed over here, and so are unreadable files: whoever opens them notes that."""
    found: dict[str, int] = {}
    for directory in directories:
        if directory.topic != CLUSTER_METADATA:
            continue
        left = _MAX_BYTES
        for segment in (*metadata_snapshots(directory), *directory.segments):
            if left <= 0:
                break
            stop = min(segment.size, left)
            left -= stop
            with suppress(OSError), closing(open_source(segment)) as source:
                if isinstance(source, SegmentText):
                    _take_dump_text(source, found)
                    continue
                for piece in stream_batches(source, ByteRange(0, stop, segment.size), expected_offset=None):
                    batches = data_of(piece.batches, _MAX_BATCH)
                    for _, data in batches_with(
                        metadata_records.FEATURE_LEVEL_API_KEY, metadata_records.RECORD_VERSION, batches, source
                    ):
                        _take(data, found)
    return found


def _take_dump_text(source: SegmentText, found: dict[str, int]) -> None:
    from kaudit.reading.dump_text_content import printed_metadata  # noqa: PLC0415 - few logs are texts

    try:
        for _, _, record in printed_metadata(source):
            if record is not None:
                _note(record.content, found)
    except (MissingContentError, WireError):
        return  # reported where the blocks are read


def _note(content: object, found: dict[str, int]) -> None:
    if isinstance(content, metadata_records.FeatureLevel):
        found[content.name] = max(content.level, found.get(content.name, 0))


def _take(data: memoryview, found: dict[str, int]) -> None:
    try:
        for record in read_records(data):
            _note(metadata_records.parse_metadata_record(record.value).content, found)
    except WireError:
        return  # a record of a release we do not know: KA005 reports malformed ones
