"""What the offsets that a copy lacks hold in another copy: how many records, and whether compaction may have taken them."""

from bisect import bisect_right
from collections.abc import Mapping
from contextlib import closing

from msgspec.structs import replace

from kaudit.audits.replicas.log_tail import batches_from, producers_records
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.model.replicas import ReplicaGap
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.file_kinds import CLEANER_CHECKPOINT
from kaudit.source.layout import PartitionDirectory

_MOST_UNPACKED = 100
"""Batches of a gap whose records are unpacked to look for one without a key."""
_LARGEST_UNPACKED = 16 << 20


def with_records(gap: ReplicaGap, copies: Mapping[str, PartitionDirectory], open_source: OpenSource) -> ReplicaGap:
    """Count the records that the first holder of a gap has there; compaction is ruled out where that is possible.

    It is where a record has no key, which compacted topics do not take (LogValidator.validateKey), and where each broker
    that lacks the offsets keeps a checkpoint of the logs it has cleaned: none lists this partition.
    """
    holder = copies[gap.held_by[0]]
    records, unpacked, keyless = 0, 0, False
    try:
        for batches in batches_from(holder, open_source, gap.first_offset):
            within = batches[batches["base_offset"] <= gap.last_offset]
            records += int(producers_records(within).sum())
            if not keyless and unpacked < _MOST_UNPACKED:
                keyless = _has_keyless(within[:_MOST_UNPACKED], holder, open_source)
                unpacked += len(within)
            if len(within) < len(batches):
                break
    except OSError:
        return gap  # gone since it was compared
    may_clean = not all(
        any(file.name == CLEANER_CHECKPOINT for file in copies[name].checkpoints) for name in gap.missing_on
    )
    return replace(gap, records=records, may_be_compaction=may_clean and not keyless)


def _has_keyless(batches: Batches, copy: PartitionDirectory, open_source: OpenSource) -> bool:
    """Return whether any record of these batches has no key; batches that cannot be unpacked are passed over."""
    bases = [segment.base_offset for segment in copy.segments]
    data = batches[(batches["attributes"] & CONTROL_FLAG == 0) & (batches["magic"] == CURRENT_MAGIC)]
    columns = (data[name].tolist() for name in ("base_offset", "position", "size"))
    for base_offset, position, size in zip(*columns, strict=True):
        if size > _LARGEST_UNPACKED:
            continue
        content = bytearray(size)
        segment = copy.segments[max(bisect_right(bases, base_offset) - 1, 0)]
        with closing(open_source(segment)) as source:
            source.read_into(position, memoryview(content))
        try:
            if any(record.key is None for record in read_records(content, _LARGEST_UNPACKED)):
                return True
        except WireError:
            continue
    return False
