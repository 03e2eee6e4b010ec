"""Reading a planned range where its bytes are: a file, a broker, or rows that an earlier audit saved.

What cannot be read is an outcome too: a Failure says why.
"""

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.deferred import Deferred
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, cut, settle
from kaudit.reading.chunk_reader import CHUNK_BYTES, read_chunk
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.saved_partition import DamagedStateError
from kaudit.reading.small_segments import apart, read_together
from kaudit.reading.unread_segments import Failure, failure, require_whole
from kaudit.source.bytes import CutOffError
from kaudit.source.kafka.fetched_segment import RemovedByRetentionError
from kaudit.source.layout import FetchedRange
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from kaudit.source.archives import parts
else:
    parts = Deferred("kaudit.source.archives.parts")


def read_range(spec: ChunkSpec, most_batches: int = sys.maxsize, open_source: OpenSource = open_segment) -> Outcome:
    """Read, verify and compress one range of a segment where its bytes are, its ends settled on batch boundaries.

    The rows' `stop` is short of the range's if there are more batches than that: the rest is a range of its own.
    """
    try:
        with closing(open_source(spec.file)) as source:
            rows = read_chunk(settle(spec, source), source, most_batches)
            require_whole(spec.file, source)
            return rows
    except RemovedByRetentionError as error:
        return _from_log_start(spec, error.log_start, most_batches, open_source)
    except CutOffError as error:
        return _before_cut(spec, error, most_batches, open_source)
    except OSError as error:
        return _failed(spec, error)


def read_planned(
    spec: ChunkSpec, most_batches: int = sys.maxsize, open_source: OpenSource = open_segment
) -> list[Outcome]:
    """Read a range as `read_range` does, or small segments: together if they allow it, else each by itself.

    One that is saved comes from the state, in as many ranges as it was saved; from the log where that is damaged.
    """
    if spec.saved is not None:
        from kaudit.reading.state_files import load_rows  # noqa: PLC0415 - few audits have a state

        try:
            return [*load_rows(spec)]
        except (OSError, DamagedStateError):
            spec = replace(spec, saved=None, limit=None if spec.joined else spec.stop)
            return [
                outcome for part in cut(spec, CHUNK_BYTES) for outcome in read_planned(part, open_source=open_source)
            ]
    if not spec.joined:
        return [read_range(spec, most_batches, open_source)]
    together = read_together(spec, open_source)
    if together is not None:
        return [together]
    return [read_range(part, most_batches, open_source) for part in apart(spec)]


def _from_log_start(spec: ChunkSpec, log_start: int, most_batches: int, open_source: OpenSource) -> Outcome:
    """Read what retention, which overtook the reader, has left of a range."""
    place = spec.file.fetched
    assert place is not None
    start = min(place.position(log_start), spec.stop)
    reason = f"removed by retention before kaudit read them: the log begins at offset {log_start} by now"
    removed = Failure(spec.file.path, reason, offsets=_offsets(replace(spec, stop=start), place))
    if start == spec.stop:
        return removed
    left = replace(place, readable_from=max(place.readable_from, log_start))
    outcome = read_range(replace(spec, start=start, file=replace(spec.file, fetched=left)), most_batches, open_source)
    if isinstance(outcome, ChunkRows):
        outcome.not_read = removed
    return outcome


def _before_cut(spec: ChunkSpec, error: CutOffError, most_batches: int, open_source: OpenSource) -> Outcome:
    """Read the whole batches that an archive has of a range before it ends."""
    failed = failure(spec.file.path, error)
    if error.readable <= spec.start:
        return failed
    with closing(open_source(spec.file)) as source:
        there = settle(replace(spec, stop=min(spec.stop, error.readable), end=error.readable), source)
        end = parts.end_of_whole_batches(source, there.start, error.readable)
        rows = read_chunk(replace(there, stop=min(max(there.stop, there.start), end), end=end), source, most_batches)
    rows.not_read = failed
    return rows


def _failed(spec: ChunkSpec, error: OSError) -> Failure:
    failed, place = failure(spec.file.path, error), spec.file.fetched
    if place is None:
        return failed
    reason = f"{error.filename}: {failed.reason}" if error.filename else failed.reason
    return replace(failed, reason=reason, offsets=_offsets(spec, place))


def _offsets(spec: ChunkSpec, place: FetchedRange) -> tuple[int, int]:
    return max(place.offset(spec.start), place.readable_from), min(place.offset(spec.stop), place.end_offset) - 1
