"""KA503, KA504: offset and time indexes that do not lead to the segment's batches."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kaudit.checks.sidefiles import SideFileFact
from kaudit.formats.errors import Damage
from kaudit.formats.sidefiles.indexes import OffsetIndex, TimeIndex
from kaudit.model.finding import Explanation, Severity

OFFSET_ROW_BYTES = 8
TIME_ROW_BYTES = 12

_REBUILDS = (
    "rebuilds it from the segment when the sanity check at start fails (always after an unclean stop above the recovery "
    "point); else a fetch may start at a wrong byte"
)
_TIME_REBUILDS = (
    "rebuilds it from the segment when the sanity check at start fails (always after an unclean stop above the recovery "
    "point); else lookups by time and retention by time go wrong"
)
_CAUSES = (
    Explanation("the file was damaged on disk, or copied while the broker was writing it"),
    Explanation("the index belongs to another state of the segment: one was restored without the other"),
)


class IndexedSegment(Struct, frozen=True):
    """What an index is held against. `end_offset` is exclusive, None where damage in the log hides it.

    `size` bytes of the `.log`, None if the positions cannot be judged.
    """

    index: int
    base_offset: int
    end_offset: int | None
    size: int | None


class Probe(Struct, frozen=True):
    """What lies at the position of one row: the base offset of the batch that starts there, None if none does."""

    row: int
    base_offset: int | None


def check_offset_index(
    file: str, index: OffsetIndex, segment: IndexedSegment, probes: Sequence[Probe]
) -> SideFileFact | None:
    """Return the first thing wrong with an offset index, with the number of rows it is wrong for."""
    if index.damage:
        return _torn("KA503", file, segment, index.damage[0], _REBUILDS)
    relative, positions = index.relative_offsets, index.positions
    if not len(relative):
        return None
    wrong = _first(np.flatnonzero(relative < 0))
    if wrong is not None:
        return _fact(
            "KA503", file, segment, wrong, OFFSET_ROW_BYTES, f"offset {relative[wrong]} relative to the base", _REBUILDS
        )
    wrong = _first(np.flatnonzero(np.diff(relative) <= 0) + 1)
    if wrong is not None:
        detail = f"offset {segment.base_offset + int(relative[wrong])} follows {segment.base_offset + int(relative[wrong - 1])}"
        return _fact("KA503", file, segment, wrong, OFFSET_ROW_BYTES, detail, _REBUILDS)
    wrong = _first(np.flatnonzero((np.diff(positions) < 0) | (positions[1:] < 0)) + 1)
    if wrong is not None:
        detail = f"position {positions[wrong]} follows {positions[wrong - 1]}"
        return _fact("KA503", file, segment, wrong, OFFSET_ROW_BYTES, detail, _REBUILDS)
    if segment.size is not None:
        wrong = _first(np.flatnonzero(positions >= segment.size))
        if wrong is not None:
            detail = f"position {positions[wrong]} lies beyond the {segment.size} bytes of the segment"
            return _fact("KA503", file, segment, wrong, OFFSET_ROW_BYTES, detail, _REBUILDS)
    if segment.end_offset is not None:
        wrong = _first(np.flatnonzero(relative + segment.base_offset >= segment.end_offset))
        if wrong is not None:
            detail = (
                f"offset {segment.base_offset + int(relative[wrong])}, the segment ends before {segment.end_offset}"
            )
            return _fact("KA503", file, segment, wrong, OFFSET_ROW_BYTES, detail, _REBUILDS)
    for probe in probes:
        offset = segment.base_offset + int(relative[probe.row])
        if probe.base_offset is None:
            detail = f"no batch starts at position {positions[probe.row]}"
        elif probe.base_offset > offset:
            detail = f"offset {offset} at position {positions[probe.row]}, where the batch of offset {probe.base_offset} starts"
        else:
            continue
        return _fact("KA503", file, segment, probe.row, OFFSET_ROW_BYTES, detail, _REBUILDS)
    return None


def check_time_index(file: str, index: TimeIndex, segment: IndexedSegment) -> SideFileFact | None:
    """Return the first thing wrong with a time index."""
    if index.damage:
        return _torn("KA504", file, segment, index.damage[0], _TIME_REBUILDS)
    times, relative = index.timestamps, index.relative_offsets
    if not len(times):
        return None
    wrong = _first(np.flatnonzero(relative < 0))
    if wrong is not None:
        return _fact(
            "KA504",
            file,
            segment,
            wrong,
            TIME_ROW_BYTES,
            f"offset {relative[wrong]} relative to the base",
            _TIME_REBUILDS,
        )
    wrong = _first(np.flatnonzero(times[1:] <= times[:-1]) + 1)
    if wrong is not None:
        detail = f"timestamp {times[wrong]} follows {times[wrong - 1]}"
        return _fact("KA504", file, segment, wrong, TIME_ROW_BYTES, detail, _TIME_REBUILDS)
    wrong = _first(np.flatnonzero(np.diff(relative) < 0) + 1)
    if wrong is not None:
        detail = f"offset {segment.base_offset + int(relative[wrong])} follows {segment.base_offset + int(relative[wrong - 1])}"
        return _fact("KA504", file, segment, wrong, TIME_ROW_BYTES, detail, _TIME_REBUILDS)
    if segment.end_offset is not None:
        wrong = _first(np.flatnonzero(relative + segment.base_offset >= segment.end_offset))
        if wrong is not None:
            detail = (
                f"offset {segment.base_offset + int(relative[wrong])}, the segment ends before {segment.end_offset}"
            )
            return _fact("KA504", file, segment, wrong, TIME_ROW_BYTES, detail, _TIME_REBUILDS)
    return None


def missing_indexes(code: str, files: Sequence[tuple[str, int]]) -> SideFileFact:
    """Return the note of index files that are not there: (name, segment index) of each, at least one."""
    (first, segment), count = files[0], len(files)
    more = f" and {count - 1} more" if count > 1 else ""
    return SideFileFact(
        code,
        first,
        f"there is no {first}{more}",
        "every segment has an offset and a time index",
        "logs an error at start, recovers the segment and builds its indexes anew",
        severity=Severity.NOTE,
        segment=segment,
        evidence={"class": "missing", "count": count, "files": [name for name, _ in files[:20]]},
        explanations=(
            Explanation("the copy was made without it", innocent=True),
            Explanation("it was removed to have the broker build it anew", innocent=True),
        ),
    )


def _torn(code: str, file: str, segment: IndexedSegment, damage: Damage, broker: str) -> SideFileFact:
    return SideFileFact(
        code,
        file,
        f"the index ends inside a row: {damage.detail}",
        "an index consists of whole rows (AbstractIndex.sanityCheck)",
        broker,
        segment=segment.index,
        position=damage.position,
        evidence={"detail": damage.detail},
        explanations=_CAUSES,
    )


def _fact(
    code: str, file: str, segment: IndexedSegment, row: int, row_bytes: int, detail: str, broker: str
) -> SideFileFact:
    return SideFileFact(
        code,
        file,
        f"row {row} of the index is wrong: {detail}",
        "rows rise, and each leads to a batch of its segment"
        if code == "KA503"
        else "timestamps rise strictly, offsets do not fall, and both belong to the segment",
        broker,
        segment=segment.index,
        position=row * row_bytes,
        evidence={"detail": detail, "row": row},
        explanations=_CAUSES,
    )


def _first(rows: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> int | None:
    return int(rows[0]) if len(rows) else None
