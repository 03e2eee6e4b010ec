"""Feature levels in the __cluster_metadata log (KRaft): what the brokers that wrote it could do."""

from collections.abc import Sequence
from contextlib import closing

from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.metadata_records import FeatureLevel, parse_metadata_record
from kaudit.formats.log.records import read_records
from kaudit.reading.batch_content import data_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory
from kaudit.source.snapshots import CLUSTER_METADATA, metadata_snapshots
from kaudit.source.text import SegmentText

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
_MAX_BYTES = 64 << 20
"""Read of one log: features are written when a cluster is made or upgraded, and absence proves nothing."""
_MAX_BATCH = 16 << 20


def feature_levels(directories: Sequence[PartitionDirectory], open_source: OpenSource) -> dict[str, int]:
    """Return the highest level each feature was ever given; damage and unreadable files are passed over here."""
    found: dict[str, int] = {}
    for directory in directories:
        if directory.topic != CLUSTER_METADATA:
            continue
        left = _MAX_BYTES
        for segment in (*metadata_snapshots(directory), *directory.segments):
            if left <= 0:
                break
            try:
                source = open_source(segment)
            except OSError:
                continue  # reported when the segment itself was read
            stop = min(segment.size, left)
            left -= stop
            with closing(source):
                if isinstance(source, SegmentText):
                    _take_dump_text(source, found)
                    continue
                for piece in stream_batches(source, ByteRange(0, stop, segment.size), expected_offset=None):
                    for data in data_batches(piece.batches, source, _MAX_BATCH):
                        _take(data, found)
    return found


def _take_dump_text(source: SegmentText, found: dict[str, int]) -> None:
    # imported here: few logs are texts
    from kaudit.formats.dump_text.record_content import parse_printed_metadata  # noqa: PLC0415
    from kaudit.reading.dump_text_content import MissingContentError, dump_text_records, is_data  # noqa: PLC0415

    try:
        for row in filter(is_data, dump_text_records(source)):
            if row.payload is not None:
                _note(parse_printed_metadata(row.payload).content, found)
    except (MissingContentError, WireError):
        return  # reported where the blocks are read


def _note(content: object, found: dict[str, int]) -> None:
    if isinstance(content, FeatureLevel):
        found[content.name] = max(content.level, found.get(content.name, 0))


def _take(data: memoryview, found: dict[str, int]) -> None:
    try:
        for record in read_records(data):
            _note(parse_metadata_record(record.value).content, found)
    except WireError:
        return  # a record of a release we do not know: KA005 reports malformed ones
