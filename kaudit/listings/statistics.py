"""Figures over all producer ids: how many per hour and alive, histograms of what they wrote, consumption of blocks."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.producer_ids.block_sources import ClusterBlocks
from kaudit.broker.producer_ids.allocation_faults import measure_burn
from kaudit.broker.producer_ids.block_history import MAX_PRODUCER_ID
from kaudit.listings.partition_join import Joined
from kaudit.model.producer_ids import EntryKind
from kaudit.model.transactional_ids import name_pattern

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
COUNTS = (0, 1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000)
LIFETIMES_MS = (0, _SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS, 7 * _DAY_MS)
IDLE_TIMES_MS = (0, _MINUTE_MS, _HOUR_MS, _DAY_MS, 7 * _DAY_MS)
"""Up to the default producer.id.expiration.ms, a day, and what it was before 3.4, seven."""
_STEPS_MS = (
    *(_SECOND_MS, 10 * _SECOND_MS, _MINUTE_MS, 10 * _MINUTE_MS, _HOUR_MS, 6 * _HOUR_MS),
    *(_DAY_MS, 7 * _DAY_MS, 30 * _DAY_MS, 365 * _DAY_MS),
)
_MOST_STEPS = 16


def counts_between(values: NDArray[np.integer], bounds: Sequence[int]) -> NDArray[np.int64]:
    """Count `values` between each two of the ascending `bounds`; values below all of them are not counted."""
    buckets = np.searchsorted(np.array(bounds), values, side="right") - 1
    return np.bincount(buckets[buckets >= 0], minlength=len(bounds))


def histogram(counts: NDArray[np.int64], bounds: Sequence[int]) -> list[Mapping[str, int | None]]:
    """Return counts between `bounds` with the ends of each, `from` and `to`, both inclusive, the last without an end.

    Begins with the first bucket that is not empty and ends with the last one.
    """
    held = np.flatnonzero(counts).tolist()
    ends = [*(bound - 1 for bound in bounds[1:]), None]
    if not held:
        return []
    return [{"from": bounds[at], "to": ends[at], "ids": int(counts[at])} for at in range(held[0], held[-1] + 1)]


class TimeSteps(Struct, frozen=True):
    """At most 16 equal steps of a natural length, ms: the first is number `first` since the epoch."""

    step: int
    first: int
    count: int

    @classmethod
    def between(cls, first: int, last: int) -> "TimeSteps":
        """Return the steps that cover these times, ms."""
        fitting = (step for step in _STEPS_MS if last // step - first // step < _MOST_STEPS)
        step = next(fitting, (last - first) // (_MOST_STEPS - 1) + 1)
        return cls(step, first // step, last // step - first // step + 1)

    def counts(self, timestamps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count timestamps in each step."""
        return np.bincount(timestamps // self.step - self.first, minlength=self.count)

    def rows(self, counts: NDArray[np.int64]) -> list[Mapping[str, int]]:
        """Return the counts with the beginnings of their steps, empty steps included."""
        return [
            {"start_timestamp": (self.first + at) * self.step, "ids": count} for at, count in enumerate(counts.tolist())
        ]


ALIVE_DAYS = (1, 7)
"""The default expiry of producer ids: a day from 3.4 on, seven days before."""
_HISTOGRAMS = (("batches", COUNTS), ("epochs", COUNTS), ("lifetime_ms", LIFETIMES_MS), ("idle_ms", IDLE_TIMES_MS))


class Tally(Struct, frozen=True):
    """How often each value occurs: the values ascending, with their counts."""

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> "Tally":
        """Count values."""
        return cls(*np.unique(values, return_counts=True))

    @classmethod
    def together(cls, tallies: "Sequence[Tally]") -> "Tally":
        """Add tallies up."""
        values, number = np.unique(np.concatenate([one.values for one in tallies]), return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, number.ravel(), np.concatenate([one.counts for one in tallies]))
        return cls(values, counts)

    @property
    def median(self) -> float:
        """The middle value, of an even number of them the mean of both."""
        reached, total = np.cumsum(self.counts), int(self.counts.sum())
        middle = self.values[np.searchsorted(reached, [(total - 1) // 2, total // 2], side="right")]
        return float(middle.mean())


class IdFigures(Struct, frozen=True):
    """The figures of some of the producer ids. Figures of disjoint shares add up: `together` returns those of all.

    `first` and `last` are the oldest and the newest time, ms, `newest` that of the last id to appear, None where no time is
    known. `sums`: ids found and chosen, transactional ids, batches, records, ids with a time, and those alive for each of
    ALIVE_DAYS. `histograms` in the order of _HISTOGRAMS. `batches` has a value for each number of batches an id wrote: at most
    the square root of twice their sum; `hours` one for each hour in which an id was seen first.
    """

    sums: NDArray[np.int64]
    histograms: Sequence[NDArray[np.int64]]
    first: int | None
    last: int | None
    newest: int | None
    batches: Tally
    hours: Tally

    @classmethod
    def of(cls, joined: Joined, chosen: NDArray[np.int64], now_ms: int) -> "IdFigures":
        """Count the chosen ids; `now_ms` is the directory's clock."""
        first, last = joined.first_timestamp[chosen], joined.last_timestamp[chosen]
        batches, known = joined.batches[chosen], first >= 0
        alive = [int((now_ms - last < days * _DAY_MS).sum()) for days in ALIVE_DAYS]
        transactional, records = joined.is_transactional[chosen].sum(), joined.records[chosen].sum()
        sums = [len(joined.ids), len(chosen), transactional, batches.sum(), records, known.sum(), *alive]
        values: tuple[NDArray[np.integer], ...] = (
            batches,
            joined.epochs[chosen],
            (last - first)[known],
            np.maximum(now_ms - last, 0)[last >= 0],
        )
        return cls(
            np.array(sums, dtype=np.int64),
            [counts_between(own, bounds) for own, (_, bounds) in zip(values, _HISTOGRAMS, strict=True)],
            int(first[known].min()) if known.any() else None,
            int(last.max()) if known.any() else None,
            int(first[known].max()) if known.any() else None,
            Tally.of(batches),
            Tally.of(first[known] // _HOUR_MS),
        )

    @classmethod
    def together(cls, shares: "Sequence[IdFigures]") -> "IdFigures":
        """Add up the figures of disjoint shares of the ids; there is one at least."""
        return cls(
            np.sum([share.sums for share in shares], axis=0),
            [np.sum(counts, axis=0) for counts in zip(*(share.histograms for share in shares), strict=True)],
            min((share.first for share in shares if share.first is not None), default=None),
            max((share.last for share in shares if share.last is not None), default=None),
            max((share.newest for share in shares if share.newest is not None), default=None),
            Tally.together([share.batches for share in shares]),
            Tally.together([share.hours for share in shares]),
        )

    @property
    def found(self) -> int:
        """How many ids the logs hold."""
        return int(self.sums[0])

    @property
    def chosen(self) -> int:
        """How many of them were chosen."""
        return int(self.sums[1])

    @property
    def steps(self) -> TimeSteps | None:
        """The steps of time in which first appearances are counted, None where no time is known."""
        if self.first is None or self.newest is None:
            return None
        return TimeSteps.between(self.first, self.newest)

    def summary(self, steps: TimeSteps | None, first_seen: NDArray[np.int64]) -> dict[str, object]:
        """Return the figures for people and programs; `first_seen` are the first appearances counted in `steps`."""
        found, chosen, transactional, batches, records, known, *alive = self.sums.tolist()
        summary: dict[str, object] = {
            "found": found,
            "chosen": chosen,
            "transactional": transactional,
            "batches": batches,
            "records": records,
            "first_timestamp": self.first,
            "last_timestamp": self.last,
            "per_hour": None,
            "busiest_hour": None,
            "batches_per_id": None,
            "alive": {f"{days}d": count for days, count in zip(ALIVE_DAYS, alive, strict=True)},
            "histograms": {
                **{
                    name: histogram(own, bounds)
                    for own, (name, bounds) in zip(self.histograms, _HISTOGRAMS, strict=True)
                },
                "first_seen": [] if steps is None else steps.rows(first_seen),
            },
        }
        if self.first is not None and self.last is not None:
            span = max(self.last - self.first, _HOUR_MS)
            summary["per_hour"] = round(known * _HOUR_MS / span, 2)
            peak = int(np.argmax(self.hours.counts))
            hour = int(self.hours.values[peak]) * _HOUR_MS
            summary["busiest_hour"] = {"start_timestamp": hour, "ids": int(self.hours.counts[peak])}
        if chosen:
            summary["batches_per_id"] = {
                "least": int(self.batches.values[0]),
                "median": self.batches.median,
                "mean": round(batches / chosen, 2),
                "most": int(self.batches.values[-1]),
            }
        return summary


def block_summary(blocks: ClusterBlocks) -> dict[str, object]:
    """Return the figures of one cluster's blocks: granted, how fast, and how long the ids last."""
    granted = [entry for entry in blocks.history.entries if entry.kind is EntryKind.GRANTED]
    burn = measure_burn(blocks.steps)
    bounds = blocks.coverage.bounds
    left = max(MAX_PRODUCER_ID - bounds[1], 0) if bounds is not None else None
    return {
        "source": blocks.origin,
        "granted": len(granted),
        "complete": blocks.complete,
        "end_timestamp": blocks.history.observed_until_ms,
        "end_place": blocks.history.end_place or None,
        "next": {"start": blocks.following[0], "end": blocks.following[1]} if blocks.following else None,
        "ids_left": burn.ids_left if burn is not None else left,
        "per_day": round(burn.blocks_per_day, 3) if burn is not None else None,
        "days_left": burn.days_left if burn is not None else None,
        "first_timestamp": burn.since_ms if burn is not None else None,
        "last_timestamp": burn.until_ms if burn is not None else None,
    }


BRIEF_MS = 60_000
"""Longest life of a producer that was opened for one piece of work."""
_ONCE, _BRIEF, _LASTING = 0, 1, 2
_LIVES = ("one batch and gone", "gone within a minute", "lasting")
_TOP = 10
_TOPICS_NAMED = 5


def pattern_of(joined: Joined, number: int, transactional_id: str | None) -> str:
    """Return the pattern of one id: its transactional id's, else how long it lived."""
    if transactional_id is not None:
        return name_pattern(transactional_id)
    return _LIVES[int(_lives(joined, np.array([number]))[0])]


class Creator(Struct, frozen=True):
    """Producer ids that one kind of client opened. `producer_id` is the least of them; its topics are taken for all.

    `key` identifies the kind: the pattern of transactional ids, or the life span and the number of the set of topics.
    """

    key: tuple[str, int]
    is_named: bool
    producers: int
    batches: int
    producer_id: int
    topics: Sequence[str]
    topic_count: int

    def with_more(self, other: "Creator") -> "Creator":
        """Return the sum of both, which are of one kind."""
        least = min(self, other, key=lambda creator: creator.producer_id)
        return replace(least, producers=self.producers + other.producers, batches=self.batches + other.batches)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "pattern": self.key[0],
            "transactional_id": self.is_named,
            "topics": list(self.topics),
            "topic_count": self.topic_count,
            "producers": self.producers,
            "batches_per_producer": round(self.batches / self.producers, 2),
        }


def creators(joined: Joined, chosen: NDArray[np.int64], names: Mapping[int, str]) -> list[Creator]:
    """Group the chosen ids by the pattern of their transactional id, or by topics and life span."""
    if not len(chosen):
        return []
    chosen = np.sort(chosen)
    named, patterns = _patterns(joined.ids[chosen], names)
    lives, topic_sets = (np.where(named, 0, column) for column in (_lives(joined, chosen), joined.topics[chosen]))
    order = np.lexsort((named, lives, topic_sets))  # stable: the first of a kind has its least id
    kinds = [column[order] for column in (topic_sets, lives, named)]
    changes = np.logical_or.reduce([column[1:] != column[:-1] for column in kinds])
    starts = np.flatnonzero(np.append(True, changes))
    counts, batches = np.diff(starts, append=len(order)), np.add.reduceat(joined.batches[chosen][order], starts)
    found: list[Creator] = []
    for kind, (topic_set, life, number) in enumerate(zip(*(column[starts].tolist() for column in kinds), strict=True)):
        least = int(chosen[order[starts[kind]]])
        topics = joined.topics_of(least)
        found.append(
            Creator(
                (patterns[number - 1] if number else _LIVES[life], topic_set),
                bool(number),
                int(counts[kind]),
                int(batches[kind]),
                int(joined.ids[least]),
                topics[:_TOPICS_NAMED],
                len(topics),
            )
        )
    return found


def _patterns(ids: NDArray[np.int64], names: Mapping[int, str]) -> tuple[NDArray[np.int32], Sequence[str]]:
    """Return the patterns of names, and of each id (ascending) which one its name has: 1 for the first, 0 without a name."""
    named = np.zeros(len(ids), dtype=np.int32)
    patterns: dict[str, int] = {}
    for producer_id, name in names.items():
        at = int(np.searchsorted(ids, producer_id))
        if at < len(ids) and int(ids[at]) == producer_id:
            named[at] = patterns.setdefault(name_pattern(name), len(patterns) + 1)
    return named, list(patterns)


def top_creators(found: Iterable[Creator]) -> list[Creator]:
    """Return the ten kinds that opened the most ids; entries of one kind are added up."""
    kinds: dict[tuple[bool, tuple[str, int]], Creator] = {}
    for creator in found:
        key = creator.is_named, creator.key
        kinds[key] = kinds[key].with_more(creator) if key in kinds else creator
    return sorted(kinds.values(), key=lambda creator: (-creator.producers, creator.producer_id))[:_TOP]


def _lives(joined: Joined, chosen: NDArray[np.int64]) -> NDArray[np.int8]:
    span = joined.last_timestamp[chosen] - joined.first_timestamp[chosen]
    lives = np.where(span <= BRIEF_MS, _BRIEF, _LASTING)
    return np.where(joined.batches[chosen] <= 1, _ONCE, lives).astype(np.int8)
