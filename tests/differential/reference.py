"""What an audit of a directory must find, decided from its bytes before and after the damage; nothing of kaudit is used.

A loss that the bytes left behind do not prove is excused: a broker in good health leaves the same bytes. Every excuse names the
class of Kafka that does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.differential import side_files
from tests.differential.wire import Found, batch_at, keys

Files = Mapping[str, bytes]

RETENTION = (
    "UnifiedLog.deleteOldSegments removes the first segments, LogLoader then starts the log at the first that is left"
)
TRUNCATION = "LocalLog.truncateTo leaves a log that ends earlier, and no file here knows a later end"
STALE_INDEX = "AbstractIndex.truncateTo lowers the number of rows and leaves their bytes"
COMPACTION = "Cleaner.cleanInto removes records below the first dirty offset that a later one of the same key follows"
BELOW_START = "UnifiedLog.read serves nothing below the log start offset, LocalLog deletes it later"
PREALLOCATED = "FileRecords.open creates the active segment at full size with log.preallocate: zeros follow its batches"
EMPTY = "UnifiedLog.roll names a segment by the log's end: an empty one that is gone, or was empty before, held nothing"
EPOCHS = "LeaderEpochFileCache.assign takes the epochs of a follower's batches, and no checkpoint contradicts them"


class Proof(NamedTuple):
    """Something that no broker leaves: the offsets it is about (both ends belong to it), and bytes of a file if it has some.

    `beside`: the segment that follows missing offsets.
    """

    what: str
    first: int
    last: int
    file: str | None = None
    position: int = 0
    end: int = 0
    beside: str | None = None


@dataclass
class Judgement:
    """What must be found, and what is excused by a class of Kafka."""

    proofs: list[Proof] = field(default_factory=list)
    excuses: set[str] = field(default_factory=set)


class Bad(NamedTuple):
    """Bytes that are no batch."""

    position: int
    end: int
    zeros: bool


def batches_of(data: bytes) -> Iterator[tuple[int, Found]]:
    """Yield the valid batches of a segment from its start to the first byte that is none."""
    position = 0
    while (found := batch_at(data, position)) is not None:
        yield position, found
        position = found.end


def segments_of(files: Files) -> list[tuple[int, bytes]]:
    """Return the segments in order of their names: base offset and bytes."""
    return sorted((int(path[4:24]), data) for path, data in files.items() if path.endswith(".log"))


def end_of(files: Files) -> int:
    """Return the log end offset that the segments show."""
    ends = [0]
    for base, data in segments_of(files):
        ends += [base, *(found.last + 1 for _, found in batches_of(data) if found.last < 2**40)]
    return max(ends)


class Step(NamedTuple):
    """A batch or bad bytes of a segment."""

    segment: int
    file: str
    found: Found | Bad


def _walk(data: bytes, known: list[bytes]) -> Iterator[Found | Bad]:
    """Yield batches and bad bytes. After bad bytes the log goes on where a batch of the healthy log begins."""
    position = 0
    while position < len(data):
        found = batch_at(data, position)
        if found is not None:
            yield found
            position = found.end
            continue
        following = [at for raw in known if (at := data.find(raw, position)) >= 0]
        end = min(following, default=len(data))
        yield Bad(position, end, not any(data[position:end]))
        position = end


@dataclass
class Log:
    """A directory as the reference reads it: steps in order of segment names."""

    files: Files
    known: list[bytes]
    segments: list[tuple[int, bytes]] = field(init=False)
    steps: list[Step] = field(init=False)

    def __post_init__(self) -> None:
        self.segments = segments_of(self.files)
        self.steps = [
            Step(number, f"t-0/{base:020d}.log", found)
            for number, (base, data) in enumerate(self.segments)
            for found in _walk(data, self.known)
        ]

    @property
    def batches(self) -> list[tuple[Step, Found]]:
        return [(step, step.found) for step in self.steps if isinstance(step.found, Found)]

    @property
    def start(self) -> int:
        """The log start offset (LogLoader.load)."""
        first = self.segments[0][0] if self.segments else 0
        return max(first, side_files.stated(self.files, side_files.LOG_START) or 0)

    @property
    def end(self) -> int:
        """Where the batches in order, and the names of segments, end the log."""
        end = 0
        for number, (base, _) in enumerate(self.segments):
            end = max(end, base)
            following = self.segments[number + 1][0] if number + 1 < len(self.segments) else None
            for step, found in self.batches:
                if step.segment == number and found.base >= base and (following is None or found.last < following):
                    end = max(end, found.last + 1)
        return end


def judge(before: Files, after: Files) -> Judgement:
    """Return what must be found in `after`, of what changed since `before`."""
    known = [data[found.position : found.end] for _, data in segments_of(before) for _, found in batches_of(data)]
    old, new = Log(before, known), Log(after, known)
    result = Judgement()
    _bytes_and_order(new, result)
    _gaps(old, new, result)
    _epochs(new, result)
    _ends(old, new, result)
    return result


def _below(log: Log, offset: int) -> bool:
    return offset < log.start <= log.end


def _bytes_and_order(log: Log, result: Judgement) -> None:
    """Bytes that are no batch, and batches whose offsets do not rise within their segment."""
    following = 0
    for number, step in enumerate(log.steps):
        found = step.found
        base = log.segments[step.segment][0]
        following = max(following, base)
        if isinstance(found, Bad):
            after = [other.found.base for other in log.steps[number + 1 :] if isinstance(other.found, Found)]
            last = max(following, min((offset for offset in after if offset >= following), default=log.end) - 1)
            is_end = step.segment == len(log.segments) - 1 and found.end == len(log.segments[-1][1])
            if _below(log, last):
                result.excuses.add(BELOW_START)
            elif found.zeros and is_end:
                result.excuses.add(PREALLOCATED)
            else:
                result.proofs.append(Proof("bytes", following, last, step.file, found.position, found.end))
            continue
        next_base = log.segments[step.segment + 1][0] if step.segment + 1 < len(log.segments) else None
        if found.base < following or (next_base is not None and found.last >= next_base):
            data = log.segments[step.segment][1]
            if _below(log, found.last) and data[found.position : found.end] in log.known:
                result.excuses.add(BELOW_START)
                continue
            low, high = min(found.base, following), max(found.last, following)
            result.proofs.append(Proof("order", low, high, step.file, found.position, found.end))
        else:
            following = found.last + 1


def _missing(log: Log) -> list[tuple[int, int, int, int, bool, str]]:
    """Gaps between batches: first, last, the segment and byte before them, whether bad bytes lie there, the file after them."""
    gaps = []
    following = max(log.start, log.segments[0][0]) if log.segments else 0
    segment, at, bad = 0, 0, False
    for step in log.steps:
        if isinstance(step.found, Bad):
            bad = True
            continue
        if step.found.base > following:
            gaps.append((following, step.found.base - 1, segment, at, bad, step.file))
        following = max(following, step.found.last + 1)
        segment, at, bad = step.segment, step.found.end, False
    if log.segments and log.segments[-1][0] > following:
        last = log.segments[-1][0]
        gaps.append((following, last - 1, segment, at, bad, f"t-0/{last:020d}.log"))
    return gaps


def _gaps(old: Log, new: Log, result: Judgement) -> None:
    healthy = _missing(old)
    left = {found.base for _, found in new.batches}
    if any(found.last < new.start <= new.end and found.base not in left for _, found in old.batches):
        result.excuses.add(BELOW_START)
    for first, last, segment, at, bad, beside in _missing(new):
        rest = [(first, last)]
        for low, high, *_ in healthy:
            rest = [
                piece
                for a, b in rest
                for piece in ((a, min(b, low - 1)), (max(a, high + 1), b))
                if piece[0] <= piece[1]
            ]
        rest = [(a, b) for a, b in rest if not _below(new, b)]
        if not rest or bad:
            continue  # bad bytes are a proof of their own
        if _can_be_compaction(new, last, segment):
            result.excuses.add(COMPACTION)
        else:
            file = f"t-0/{new.segments[segment][0]:020d}.log"
            result.proofs.append(Proof("gap", rest[0][0], rest[-1][1], file, at, at, beside))


def _can_be_compaction(log: Log, last: int, segment: int) -> bool:
    """Whether a cleaner can have taken the offsets up to `last`, which follow a batch of this segment.

    It takes none of the active segment (LogCleanerManager.cleanableOffsets) and none at or above its checkpoint; below that a key
    is there once, and a record without one never (Cleaner.shouldRetainRecord). Where no checkpoint was copied a batch with fewer
    records than offsets is the trace of a cleaner.
    """
    if last >= log.segments[-1][0]:
        return False
    if any(name in log.files for name in side_files.CHECKPOINTS):
        dirty = side_files.stated(log.files, side_files.CLEANER)
        if dirty is None or dirty > log.end or dirty <= last:
            return False
        dirty = min(dirty, log.segments[-1][0])
    else:
        dirty = last + 1
        if all(found.records == found.last - found.base + 1 for _, found in log.batches):
            return False
    seen: set[bytes | None] = {None}
    for step, found in log.batches:
        if found.last < dirty and not found.attributes & 0x20:
            for key in keys(log.segments[step.segment][1], found):
                if key in seen:
                    return False
                seen.add(key)
    return True


def _epochs(log: Log, result: Judgement) -> None:
    """Batches that changed and whose leader epoch falls, or is above a later one, or contradicts leader-epoch-checkpoint."""
    stated = side_files.stated_epochs(log.files)
    batches = [entry for entry in log.batches if not _below(log, entry[1].last)]
    known = set(log.known)
    for index, (step, found) in enumerate(batches):
        data = log.segments[step.segment][1]
        if data[found.position : found.end] in known:
            continue
        before = max((other.leader_epoch for _, other in batches[:index]), default=-1)
        after = min((other.leader_epoch for _, other in batches[index + 1 :]), default=2**31)
        expected = [epoch for epoch, start in stated if start <= found.base]
        if not before <= found.leader_epoch <= after or (expected and expected[-1] != found.leader_epoch):
            result.proofs.append(Proof("epoch", found.base, found.last, step.file, found.position, found.end))
    if len(batches) < len(log.batches):
        result.excuses.add(BELOW_START)
    if not stated and batches:
        result.excuses.add(EPOCHS)


def _ends(old: Log, new: Log, result: Judgement) -> None:
    """The log's end against what side files know, and its start."""
    end = new.end
    start = side_files.stated(new.files, side_files.LOG_START) or 0
    if start > end:
        result.proofs.append(Proof("start", end, start))
    if new.segments and new.segments[0][0] > old.segments[0][0]:
        result.excuses.add(RETENTION)
    witnesses = [side_files.stated(new.files, name) or 0 for name in side_files.CHECKPOINTS]
    witnesses += [int(path[4:24]) for path in new.files if path.endswith(".snapshot")]
    witnesses += [epoch_start for _, epoch_start in side_files.stated_epochs(new.files)]
    if max(witnesses) > end:
        base, data = new.segments[-1] if new.segments else (0, b"")
        written = max((found.end for step, found in new.batches if step.segment == len(new.segments) - 1), default=0)
        result.proofs.append(Proof("end", end, max(witnesses) - 1, f"t-0/{base:020d}.log", written, len(data)))
    elif end < old.end:
        result.excuses.add(TRUNCATION)
    elif len(new.segments) < len(old.segments) and not old.segments[-1][1]:
        result.excuses.add(EMPTY)
