"""Random histories of a topic and its mirror: what was written to the source, and what a mirror made of it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mirrors.log import CODECS, Log, Record

BEGIN = 1_760_000_000_000
PREFIX = "primary."
_NEW_TIMESTAMPS = 86_400_000


@dataclass
class Settings:
    """What a history has, drawn from its seed."""

    seed: int
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(f"mirror {self.seed}")

        def sometimes(share: float) -> bool:
            return rng.random() < share

        self.partitions = rng.choice((1, 1, 2, 3))
        self.target_partitions = rng.choice((1, 2, 4)) if sometimes(0.25) else self.partitions
        self.by_content = self.target_partitions != self.partitions or sometimes(0.1)
        self.records = rng.randint(8, 60)
        self.keys = rng.choice((1, 3, 8, 40))
        self.transactions = sometimes(0.4)
        self.open_transaction = self.transactions and sometimes(0.15)
        # what a start offset has cut off cannot be told from losses where partitions or order changed, both begin later, or are compacted
        self.source_start = not self.by_content and sometimes(0.25)
        self.target_start = not self.by_content and not self.source_start and sometimes(0.33)
        cut_off = self.source_start or self.target_start
        self.source_compacted = not self.transactions and not cut_off and sometimes(0.15)
        self.target_compacted = not cut_off and sometimes(0.2)
        self.committed = not self.transactions or sometimes(0.8)
        """What the mirror reads, and the ledger is asked to."""
        self.target_transactions = not self.target_compacted and sometimes(0.2)
        self.append_time = sometimes(0.15)
        """LogAppendTime on the target: its timestamps say nothing."""
        self.rewinds = rng.choice((0, 0, 1, 2))
        self.repeats = rng.choice((0, 0, 2))
        # what is lost and comes again later looks like a record that the source never had, once the source has removed it
        self.losses = 0 if self.source_start and (self.rewinds or self.repeats) else rng.choice((0, 0, 1, 3))
        self.new_timestamps = not self.target_compacted and sometimes(0.2)
        """Of repeats: a producer that sends again, not a mirror."""
        moved = cut_off or self.source_compacted or self.target_compacted
        self.swaps = 0 if moved else rng.choice((0, 0, 0, 2))
        hidden = self.source_start and not self.committed
        self.foreign = 0 if hidden or self.source_compacted or self.target_compacted else rng.choice((0, 0, 0, 3))
        self.lag = rng.choice((0, 0, rng.randint(1, 6)))
        self.renamed = rng.choice(("orders", PREFIX + "orders", "archive_of-orders.v2"))
        self.with_timestamp = not self.append_time and sometimes(0.7)
        """Whether timestamps are part of the identity."""


class History:
    """A source topic, its mirror, and how the mirror came to be. Partitions are those of the list's indexes."""

    def __init__(self, seed: int) -> None:
        self.settings = Settings(seed)
        self._rng = self.settings.rng
        self._time = BEGIN
        self._numbers = iter(range(1 << 30))
        self._sequences: dict[int, int] = {}
        self.source = [self._source_log(partition) for partition in range(self.settings.partitions)]
        streams = [[placed.record for placed in log.visible(committed=self.settings.committed)] for log in self.source]
        self.target = self._target_logs([list(self._mirrored(*stream)) for stream in enumerate(streams)])
        self.written = tuple(
            [log.visible(committed=self.settings.committed) for log in logs] for logs in (self.source, self.target)
        )
        """Visible records by partition of source and target, before retention and compaction."""
        if self.settings.source_compacted:
            for log in self.source:
                log.compact(self._rng.randint(0, log.end))
        if self.settings.target_compacted:
            for log in self.target:
                log.compact(self._rng.randint(log.start, log.end))
        for logs, moved in ((self.source, self.settings.source_start), (self.target, self.settings.target_start)):
            for log in logs if moved else ():
                self._retain(log)

    def write(self, directory: Path) -> tuple[str, str]:
        """Write both as brokers' log directories; returns their paths."""
        sides = directory / "source", directory / "target"
        for side, name, logs in zip(sides, ("orders", self.settings.renamed), (self.source, self.target), strict=True):
            starts = {}
            for partition, log in enumerate(logs):
                bases = [batch.base_offset for batch in log.batches if self._rng.random() < 0.1]
                log.write(side / f"{name}-{partition}", bases)
                starts[f"{name} {partition}"] = log.start
            lines = [f"{where} {start}" for where, start in starts.items() if start]
            (side / "log-start-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
            cleaned = [
                f"{name} {partition} {log.cleaned}" for partition, log in enumerate(logs) if log.cleaned is not None
            ]
            (side / "cleaner-offset-checkpoint").write_text("\n".join(["0", str(len(cleaned)), *cleaned, ""]))
        return str(sides[0]), str(sides[1])

    # -- the source ------------------------------------------------------------------------------------------------
    def _record(self, partition: int) -> Record:
        rng, number = self._rng, next(self._numbers)
        self._time += rng.choice((0, 0, 1, 7))
        keyless = not self.settings.source_compacted and not self.settings.target_compacted and rng.random() < 0.15
        return Record(
            number,
            None if keyless else b"key-%d-%d" % (partition, rng.randrange(self.settings.keys)),
            None if rng.random() < 0.03 and not keyless else b'{"number":%d}' % number,
            (
                *(("trace", rng.choice((None, b"", b"%d" % number))) for _ in range(rng.choice((0, 0, 1, 2)))),
                ("id", b"%d" % number),
            ),
            self._time - rng.choice((0, 0, 0, 50)),
        )

    def _source_log(self, partition: int) -> Log:
        log, rng = Log(), self._rng
        open_now: list[int] = []
        while log.end < self.settings.records:
            records = [self._record(partition) for _ in range(rng.choice((1, 1, 2, 5, 9)))]
            codec = rng.choice(tuple(CODECS))
            if self.settings.transactions and rng.random() < 0.5:
                producer = rng.choice((7000, 7001))
                if producer not in open_now:
                    open_now.append(producer)
                log.append(records, codec, self._sequenced(producer, len(records)), transactional=True)
            elif rng.random() < 0.5:
                log.append(records, codec, self._sequenced(9000, len(records)))
            else:
                log.append(records, codec)
            if open_now and rng.random() < 0.5:
                log.mark(open_now.pop(0), self._time, commits=rng.random() < 0.6)
        for producer in open_now[1:] if self.settings.open_transaction else open_now:
            log.mark(producer, self._time, commits=True)
        return log

    def _sequenced(self, producer: int, count: int) -> tuple[int, int, int]:
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + count
        return producer, 0, sequence

    # -- the mirror ------------------------------------------------------------------------------------------------
    def _mirrored(self, partition: int, stream: Sequence[Record]) -> Iterator[Record]:
        """A partition's records as the mirror writes them: lost, repeated, moved, in the end not all of them."""
        rng, settings = self._rng, self.settings
        sent = list(stream[: max(1, len(stream) - settings.lag)])
        for _ in range(settings.swaps if len(sent) > 4 else 0):
            begin, middle, end = sorted(rng.sample(range(len(sent) + 1), 3))
            sent[begin:end] = sent[middle:end] + sent[begin:middle]
        for _ in range(settings.rewinds if sent else 0):
            end = rng.randint(1, len(sent))
            sent[end:end] = [self._again(each) for each in sent[max(0, end - rng.randint(1, 20)) : end]]
        for _ in range(settings.repeats if sent else 0):
            at = rng.randrange(len(sent))
            sent.insert(rng.randint(at + 1, len(sent)), self._again(sent[at]))
        for _ in range(settings.losses):
            at = rng.randint(0, len(sent))
            del sent[at : at + rng.choice((1, 1, 4))]
        for _ in range(settings.foreign):
            sent.insert(rng.randint(0, len(sent)), self._record(partition))
        yield from sent

    def _again(self, record: Record) -> Record:
        return record._replace(timestamp=record.timestamp + _NEW_TIMESTAMPS) if self.settings.new_timestamps else record

    def _target_logs(self, streams: list[list[Record]]) -> list[Log]:
        rng, settings = self._rng, self.settings
        shares: list[list[Record]] = [[] for _ in range(settings.target_partitions)]
        if settings.by_content:
            shift = rng.randrange(settings.target_partitions)
            pending = [stream[::-1] for stream in streams]
            while any(pending):
                stream = rng.choice([each for each in pending if each])
                for record in [stream.pop() for _ in range(min(len(stream), rng.randint(1, 8)))]:
                    # a key goes to one partition, as a partitioner decides
                    chosen = rng.randrange(len(shares)) if record.key is None else sum(record.key) + shift
                    shares[chosen % len(shares)].append(record)
        else:
            shares = streams
        return [self._target_log(share) for share in shares]

    def _target_log(self, records: Sequence[Record]) -> Log:
        log, rng, settings = Log(), self._rng, self.settings
        log.end = log.start = log.begin = rng.choice((0, 0, 5000)) if settings.target_start else 0
        at = 0
        largest = rng.choice((1, 4, 500))
        time = self._time + 1000
        while at < len(records):
            chunk = records[at : at + rng.randint(1, largest)]
            at += len(chunk)
            codec = rng.choice(tuple(CODECS))
            stamp = time if settings.append_time else None
            time += 3
            if settings.target_transactions:
                if rng.random() < 0.2:  # of a worker that was killed: sent again by the next one
                    log.append(chunk, codec, self._sequenced(8000, len(chunk)), transactional=True, append_time=stamp)
                    log.mark(8000, time, commits=False)
                log.append(chunk, codec, self._sequenced(8000, len(chunk)), transactional=True, append_time=stamp)
                log.mark(8000, time, commits=True)
            else:
                log.append(chunk, codec, append_time=stamp)
        return log

    def _retain(self, log: Log) -> None:
        """Let the log begin later, at a batch or within one."""
        if log.end - log.start > 3:
            log.start += self._rng.randint(0, (log.end - log.start) // 2)
