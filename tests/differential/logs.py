"""Healthy logs: random histories of a partition that only take steps a broker takes, and the directory they leave."""

import random
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache

from tests.differential import side_files
from tests.differential.side_files import Indexes, indexes_of, producers_after
from tests.differential.wire import GZIP, LZ4, NONE, TRANSACTIONAL, ZSTD, Batch, Record, marker

_T0 = 1_700_000_000_000
_CODECS = (NONE, NONE, NONE, GZIP, LZ4, ZSTD)


class Embedded(Enum):
    """Where records hold whole batches that could be the log's: in nothing, values, keys or headers."""

    NOTHING = ""
    VALUE = "value"
    KEY = "key"
    HEADER = "header"


@dataclass
class Segment:
    """A segment of a partition: its batches and its indexes."""

    base: int
    batches: list[Batch] = field(default_factory=list)
    indexes: Indexes = field(init=False)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.indexes = Indexes(self.base)

    def append(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.indexes.append(len(batch.raw), batch.last, batch.max_timestamp)


@dataclass
class Session:
    """A client: transactional, idempotent or neither, and the offset its transaction began at."""

    producer_id: int
    transactional: bool
    epoch: int = 0
    coordinator_epoch: int = 0


class Writer:
    """A partition whose steps are drawn at random. `compacts`: cleanup.policy is compact, so every record has a key."""

    def __init__(self, seed: int, embedded: Embedded = Embedded.NOTHING) -> None:
        self.random = random.Random(f"history {seed}")
        self.payloads = random.Random(f"payloads {seed}")
        self.plants = random.Random(f"plants {seed}")
        self.embedded = embedded
        self.compacts = self.random.random() < 0.35
        self.keys = "some" if self.compacts else self.random.choice(("none", "some", "unique"))
        self.segments = [Segment(0)]
        self.history: list[Batch] = []
        """Every batch that was appended and not truncated, deleted and compacted ones too."""
        self.epochs = [(0, 0)]
        self.snapshots: dict[int, bytes] = {}
        self.log_start = 0
        self.dirty = 0
        self.cleaned = False
        self.now = _T0
        self.count = 0
        sessions = self.random.randrange(1, 5)
        first = self.random.choice((0, 1000, 42_000))
        self.sessions = [Session(first + number, self.random.random() < 0.5) for number in range(sessions)]
        if not self.compacts and self.random.random() < 0.4:
            self.sessions.append(Session(-1, False))
        self.per_segment = self.random.randrange(3, 7)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.history[-1].last + 1 if self.history else 0

    def produce(self) -> None:
        """One of the clients appends a batch, and may end its transaction."""
        session = self.random.choice(self.sessions)
        state = producers_after(self.history).get(session.producer_id)
        sequence = -1 if session.producer_id < 0 else 0 if state is None else state.last_sequence + 1
        size = self.random.choice((1, 1, 2, 3, 4))
        transactional = session.transactional and session.producer_id >= 0
        attributes = self.random.choice(_CODECS) | (TRANSACTIONAL if transactional else 0)
        started = self.now
        self.now += self.random.randrange(1, 4_000)
        records = tuple(self._record(delta, delta if delta < self.now - started else 0) for delta in range(size))
        self._append(
            Batch(
                self.end,
                self.end + size - 1,
                records,
                self.epochs[-1][0],
                attributes,
                started,
                started + max(record.timestamp_delta for record in records),
                session.producer_id,
                -1 if session.producer_id < 0 else session.epoch,
                sequence,
            )
        )
        if transactional and self.random.random() < 0.4:
            self._end_transaction(session)

    def _append(self, batch: Batch) -> None:
        if len(self.active.batches) >= self.per_segment:
            self.roll()
        self.history.append(batch)
        self.active.append(batch)

    def roll(self) -> None:
        """As UnifiedLog.roll: the segment is closed, a snapshot taken, a new one begins at the log's end."""
        if self.active.base == self.end:
            return
        self.active.indexes.close()
        self.snapshots[self.end] = side_files.snapshot(producers_after(self.history))
        self.segments.append(Segment(self.end))

    def _end_transaction(self, session: Session) -> None:
        states = producers_after(self.history)
        begun = states[session.producer_id].transaction
        if begun < 0:
            return
        self.now += self.random.randrange(1, 500)
        commits = self.compacts or self.random.random() < 0.7
        producer = session.producer_id, session.epoch
        at, epoch = self.end, self.epochs[-1][0]
        self._append(
            marker(
                at,
                leader_epoch=epoch,
                timestamp=self.now,
                producer=producer,
                commits=commits,
                coordinator_epoch=session.coordinator_epoch,
            )
        )
        if not commits:
            others = [
                state.transaction for key, state in states.items() if key != producer[0] and state.transaction >= 0
            ]
            self.active.aborted.append((session.producer_id, begun, at, min(others, default=at + 1)))

    def end_transactions(self) -> None:
        """Every open transaction ends."""
        for session in self.sessions:
            if session.transactional and session.producer_id in producers_after(self.history):
                self._end_transaction(session)

    def _record(self, offset_delta: int, timestamp_delta: int) -> Record:
        self.count += 1
        value = f"{self.payloads.getrandbits(64):016x}-{self.count}".encode() * self.payloads.choice((1, 1, 2, 6))
        drawn = self.payloads.randrange(12)
        key = (
            None if self.keys == "none" or (self.keys == "some" and not self.compacts and drawn < 2) else b"k%d" % drawn
        )
        if self.keys == "unique":
            key = b"k%d" % self.count
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if self.embedded is Embedded.VALUE:
            value += self._planted()
        elif self.embedded is Embedded.HEADER:
            headers = ((b"h", self._planted()),)
        elif self.embedded is Embedded.KEY and key is not None:
            key += planted(5, 3)
        return Record(offset_delta, timestamp_delta, key, value, headers)

    def _planted(self) -> bytes:
        """Batches of a log like this one: at the same offsets, or those that follow, or anywhere."""
        base = self.end + self.plants.choice((0, 1, 2, 5, -self.end))
        return planted(base, self.plants.randrange(1, 4))

    def elect(self) -> None:
        """A leader of a higher epoch takes over (LeaderEpochFileCache.assign)."""
        epoch = self.epochs[-1][0] + self.random.randrange(1, 3)
        self.epochs = [entry for entry in self.epochs if entry[1] < self.end] + [(epoch, self.end)]

    def truncate(self) -> None:
        """As UnifiedLog.truncateTo on a follower, which goes on in a later epoch: never below what was cleaned."""
        if len(self.active.batches) < 2 and len(self.segments) < 2:
            return
        last = self.active if len(self.active.batches) > 1 else self.segments[-2]
        if len(last.batches) < 2 or last.base < self.dirty:
            return
        to = self.random.choice(last.batches[1:]).base
        if to <= self.log_start:
            return
        if last is not self.active:
            self.segments.pop()
        self.history = [batch for batch in self.history if batch.base < to]
        last.batches = [batch for batch in last.batches if batch.base < to]
        last.indexes.truncate(last.batches)
        last.aborted = [row for row in last.aborted if row[2] < to]
        self.snapshots = {offset: data for offset, data in self.snapshots.items() if offset <= to}
        self.epochs = [entry for entry in self.epochs if entry[1] < to]
        self.elect()

    def delete_segments(self) -> None:
        """As UnifiedLog.deleteOldSegments: the first segments go, as retention says."""
        count = self.random.randrange(0, max(len(self.segments) - 3, 1))
        for segment in self.segments[:count]:
            self.snapshots.pop(segment.base, None)
        del self.segments[:count]
        self._start_at(max(self.log_start, self.segments[0].base))

    def delete_records(self) -> None:
        """As DeleteRecords: the log start rises within the first segment (UnifiedLog.maybeIncrementLogStartOffset)."""
        batches = self.segments[0].batches
        if len(self.segments) > 3 and len(batches) > 2:
            chosen = self.random.choice(batches[:2])
            self._start_at(max(self.log_start, self.random.randint(chosen.base, chosen.last)))

    def _start_at(self, offset: int) -> None:
        """LeaderEpochFileCache.truncateFromStart."""
        self.log_start = offset
        before = [entry for entry in self.epochs if entry[1] <= offset]
        if before and offset:
            self.epochs = [(before[-1][0], offset), *(entry for entry in self.epochs if entry[1] > offset)]

    def clean(self) -> None:
        """As LogCleaner.cleanLog: up to the active segment, or to the first segment with an open transaction."""
        states = producers_after(self.history)
        unstable = min((state.transaction for state in states.values() if state.transaction >= 0), default=self.end)
        closed = [segment for segment in self.segments[:-1] if self._end_of(segment) <= unstable]
        if not closed:
            return
        dirty = self._end_of(closed[-1])
        latest: dict[bytes | None, int] = {}
        for segment in closed:
            for batch in segment.batches:
                latest.update({} if batch.is_control else {r.key: batch.base + r.offset_delta for r in batch.records})
        kept_last = {state.last_offset for state in states.values()}
        cleaned: list[Segment] = []
        for segment in closed:
            batches = [kept for batch in segment.batches if (kept := _cleaned(batch, latest, kept_last)) is not None]
            if cleaned and len(cleaned[-1].batches) + len(batches) <= self.per_segment:
                self.snapshots.pop(segment.base, None)
                cleaned[-1].batches += batches
            else:
                cleaned.append(replace_batches(segment, batches))
        for segment in cleaned:
            segment.indexes = indexes_of(segment.base, segment.batches)
            segment.indexes.close()
        self.segments = [*cleaned, *self.segments[len(closed) :]]
        self.dirty, self.cleaned = dirty, True

    def _end_of(self, segment: Segment) -> int:
        return self.segments[self.segments.index(segment) + 1].base


def replace_batches(segment: Segment, batches: list[Batch]) -> Segment:
    """Return a segment of the same name with other batches."""
    return Segment(segment.base, batches)


def _cleaned(batch: Batch, latest: dict[bytes | None, int], last_offsets: set[int]) -> Batch | None:
    """What Cleaner.cleanInto keeps of a batch: markers, the latest record of a key, the last batch of a producer."""
    if batch.is_control:
        return batch
    records = tuple(record for record in batch.records if latest[record.key] == batch.base + record.offset_delta)
    if not records and (batch.last not in last_offsets or batch.producer_id < 0):
        return None
    return batch if len(records) == len(batch.records) else batch.keeping(records)


def planted(base: int, count: int) -> bytes:
    """Return batches of one record each from an offset on."""
    return b"".join(
        Batch(base + at, base + at, (Record(0, 0, None, b"planted"),), timestamp=_T0, max_timestamp=_T0).raw
        for at in range(count)
    )


@dataclass
class Image:
    """A log directory taken apart: segments as pieces of bytes, a batch each, and its other files by path."""

    bases: list[int]
    pieces: list[list[bytes]]
    others: dict[str, bytes]
    batches: list[list[Batch]]
    """What the pieces were when the log was healthy."""
    compacts: bool = False

    def copy(self) -> "Image":
        """Return an image whose pieces and files can be changed."""
        return replace(self, bases=[*self.bases], pieces=[[*some] for some in self.pieces], others={**self.others})

    def files(self) -> dict[str, bytes]:
        """Return the directory's files by path."""
        return {
            **self.others,
            **{f"t-0/{base:020d}.log": b"".join(some) for base, some in zip(self.bases, self.pieces, strict=True)},
        }


@lru_cache(maxsize=8)
def healthy(seed: int, embedded: Embedded = Embedded.NOTHING) -> Image:
    """Return the directory that a random history leaves. The same seed has the same history whatever is embedded."""
    writer = Writer(seed, embedded)
    draw = writer.random
    for _ in range(draw.randrange(14, 34)):
        writer.produce()
        step = draw.random()
        if step < 0.03:
            writer.elect()
        elif step < 0.05:
            writer.truncate()
        elif step < 0.1 and writer.compacts:
            writer.clean()
    writer.end_transactions()
    if draw.random() < 0.1:
        writer.roll()
    if writer.compacts:
        if draw.random() < 0.7:
            writer.clean()
    elif draw.random() < 0.4:
        writer.delete_segments()
    if draw.random() < 0.2:
        writer.delete_records()
    return _image(writer, stopped=draw.random() < 0.4)


def _image(writer: Writer, *, stopped: bool) -> Image:
    """The files of a directory; `stopped`: the broker was shut down cleanly."""
    others: dict[str, bytes] = {}
    if stopped:
        writer.active.indexes.close()
        writer.snapshots[writer.end] = side_files.snapshot(producers_after(writer.history))
        others[".kafka_cleanshutdown"] = b""
    for segment in writer.segments:
        name = f"t-0/{segment.base:020d}"
        active = segment is writer.active and not stopped
        others[f"{name}.index"] = segment.indexes.offsets.file(active=active)
        others[f"{name}.timeindex"] = segment.indexes.times.file(active=active)
        if segment.aborted:
            others[f"{name}.txnindex"] = b"".join(side_files.aborted(*row) for row in segment.aborted)
    first = writer.segments[0].base
    for offset, data in writer.snapshots.items():
        if offset >= first:
            others[f"t-0/{offset:020d}.snapshot"] = data
    others[side_files.LEADER_EPOCHS] = side_files.checkpoint(writer.epochs)
    others["t-0/partition.metadata"] = b"version: 0\ntopic_id: SyYlwHmWTXmXUv9CyVyFEw"
    others["meta.properties"] = b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    lagging = writer.active.batches[-1].base if writer.active.batches and writer.random.random() < 0.3 else writer.end
    others[side_files.HIGH_WATERMARK] = side_files.offset_checkpoint(writer.end if stopped else lagging)
    others[side_files.RECOVERY_POINT] = side_files.offset_checkpoint(writer.end if stopped else writer.active.base)
    others[side_files.LOG_START] = side_files.offset_checkpoint(writer.log_start if writer.log_start > first else None)
    others[side_files.CLEANER] = side_files.offset_checkpoint(writer.dirty if writer.cleaned else None)
    return Image(
        [segment.base for segment in writer.segments],
        [[batch.raw for batch in segment.batches] for segment in writer.segments],
        others,
        [segment.batches for segment in writer.segments],
        writer.compacts,
    )
