"""The ledger of one pair of topics, made of both sides' records in the order of their places."""

from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, numbers_of, offsets_of
from kaudit.diff.records.bucket import Counted
from kaudit.diff.records.matching import Bounds, Rows
from kaudit.diff.records.side import NO_GROUPS, Run, Runs, descents
from kaudit.model.ledger import (
    MOST_RANGES,
    MappedRange,
    MovedRecord,
    PartitionPair,
    RecordRange,
    RepeatedRange,
    SideCounts,
    TopicLedger,
)

_PAIR_SHIFT = np.uint64(20)
MAPPED = np.dtype([(name, "<i8") for name in MappedRange._fields])


class Side(Struct, frozen=True):
    """One side of all topics, by number of partition, shape (n,): partition and offset of the first place, int64.

    `bounds` are those of the records that both sides have; before the places of `begins` the other side has removed records;
    `cleaned`: the log cleaner has been there.
    """

    partitions: NDArray[np.int64]
    bases: NDArray[np.int64]
    bounds: Bounds
    begins: NDArray[np.uint64]
    cleaned: NDArray[np.bool_]

    def offsets(self, places: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the offsets of these places."""
        return offsets_of(places) + self.bases[numbers_of(places)]

    def before(self, places: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which places lie before the first record of the other side, where that has removed records."""
        found: NDArray[np.bool_] = places < self.begins[numbers_of(places)]
        return found

    def place(self, place: np.uint64) -> tuple[int, int]:
        """Return partition and offset."""
        one = np.array([place], dtype=np.uint64)
        return int(self.partitions[numbers_of(one)[0]]), int(self.offsets(one)[0])


class TopicPair(Struct, frozen=True):
    """Two topics that are compared, by what identity, and what was read of them."""

    source: str
    target: str
    identity: str
    read_committed: bool
    source_counts: SideCounts
    target_counts: SideCounts


class LedgerBuilder:
    """Takes the records of a pair of topics, all of the source, then all of the target; each part in the order of its places."""

    def __init__(self, source: Side, target: Side, map_file: Path) -> None:
        self._source, self._target = source, target
        self._matched = self._expired = self._older = self._cleaned = 0
        self._missing, self._pending = Runs(MOST_RANGES), Runs(MOST_RANGES)
        self._only, self._ahead = Runs(MOST_RANGES), Runs(0)
        self._repeated = Runs(MOST_RANGES, ("other", "earlier"))
        self._map_file = map_file
        self._open: Rows = np.empty(0, dtype=MAPPED)
        self._pairs: dict[tuple[int, int], Rows] = {}
        self._begins: dict[tuple[int, int], tuple[int, int]] = {}
        self._lasts = NO_GROUPS
        self.disordered: set[int] = set()
        """Pairs of partitions, source and target, in which the order differs."""
        self.moved: list[MovedRecord] = []
        self.moved_records = 0
        self._counted: list[Counted] = []

    def add_source(self, rows: Rows, removed: Rows) -> None:
        """Take rows of PLACED, and those among them that the target's log cleaner may have removed."""
        both = rows["other"] != NOWHERE
        self._matched += int(np.count_nonzero(both))
        before = self._source.before(rows["place"])
        after = self._source.bounds.after(rows["place"])
        cleaned = ~both & ~before & np.isin(rows["place"], removed["place"])
        self._expired += int(np.count_nonzero(~both & before))
        self._cleaned += int(np.count_nonzero(cleaned))
        self._pending.feed(rows, ~both & after)
        self._missing.feed(rows, ~both & ~before & ~after & ~cleaned)
        found = rows[both]
        if len(found):
            self._map(found)
            groups = pair_groups(found)
            _, lower, self._lasts = descents(found, groups, self._lasts)
            self.disordered |= set(lower["group"].tolist())

    def add_target(self, rows: Rows, removed: Rows) -> None:
        """Take rows of COPIED, and those among them that the source's log cleaner may have removed."""
        new, again = rows["other"] == NOWHERE, rows["earlier"] != NOWHERE
        before = self._target.before(rows["place"])
        # records that the source has removed are there again
        before[new & again] |= self._target.before(rows["earlier"][new & again])
        after = self._target.bounds.after(rows["place"])
        self._older += int(np.count_nonzero((new | again) & before))
        self._repeated.feed(rows, ~new & again & ~before)
        self._ahead.feed(rows, new & after & ~before)
        cleaned = new & ~before & np.isin(rows["place"], removed["place"])
        self._cleaned += int(np.count_nonzero(cleaned))
        self._only.feed(rows, new & ~before & ~after & ~cleaned)

    def add_counted(self, counted: Counted) -> None:
        """Take equal records that were only counted."""
        self._counted.append(counted)

    def add_moved(self, later: Rows, earlier: Rows) -> None:
        """Take records that their key's record before them in the source follows in the target, and these."""
        self.moved_records += len(later)
        for row, before in zip(later, earlier, strict=True):
            if len(self.moved) >= MOST_RANGES:
                break
            here, there, after = (
                self._source.place(row["place"]),
                self._target.place(row["other"]),
                self._source.place(before["place"])[1],
            )
            self.moved.append(MovedRecord(*here, *there, after, self._target.place(before["other"])[1]))

    def _map(self, rows: Rows) -> None:
        source, target = self._source, self._target
        offsets, theirs = source.offsets(rows["place"]), target.offsets(rows["other"])
        numbers, others = numbers_of(rows["place"]), numbers_of(rows["other"])
        new = np.append(True, (np.diff(numbers) != 0) | (np.diff(others) != 0) | (np.diff(theirs - offsets) != 0))
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(rows)) - 1
        found = np.empty(len(first), dtype=MAPPED)
        found["source_partition"], found["target_partition"] = (
            source.partitions[numbers[first]],
            target.partitions[others[first]],
        )
        found["source_first_offset"], found["source_last_offset"] = offsets[first], offsets[last]
        found["target_first_offset"], found["target_last_offset"] = theirs[first], theirs[last]
        found["records"] = last - first + 1
        for pair in np.unique(found[["source_partition", "target_partition"]]).tolist():
            own_pair = (found["source_partition"] == pair[0]) & (found["target_partition"] == pair[1])
            own = found[own_pair]
            if pair not in self._begins:
                at = first[np.flatnonzero(own_pair)[0]]
                self._begins[pair] = int(source.bases[numbers[at]]), int(target.bases[others[at]])
            self._pairs[pair] = _joined(np.concatenate([self._pairs.get(pair, found[:0]), own]))
        if len(self._open) and _continues(self._open[0], found[0]):
            found[0]["source_first_offset"], found[0]["target_first_offset"] = (
                self._open[0]["source_first_offset"],
                self._open[0]["target_first_offset"],
            )
            found[0]["records"] += self._open[0]["records"]
            self._open = found[:0]
        with self._map_file.open("ab") as file:
            file.write(self._open.tobytes() + found[:-1].tobytes())
        self._open = found[-1:]

    def ledger(self, topics: TopicPair) -> TopicLedger:
        """Return the ledger; after all has been taken."""
        with self._map_file.open("ab") as file:
            file.write(self._open.tobytes())
        counted = [(min(each.source, each.target), each.source, each.target) for each in self._counted]
        return TopicLedger(
            source=topics.source,
            target=topics.target,
            identity=topics.identity,
            read_committed=topics.read_committed,
            source_counts=topics.source_counts,
            target_counts=topics.target_counts,
            matched=self._matched + sum(both for both, _, _ in counted),
            missing=self._missing.records + sum(source - both for both, source, _ in counted),
            repeated=self._repeated.records + sum(target - both for both, source, target in counted if source),
            only_in_target=self._only.records + sum(target for _, source, target in counted if not source),
            out_of_order=self.moved_records,
            pending=self._pending.records,
            ahead=self._ahead.records,
            expired=self._expired,
            older=self._older,
            cleaned=self._cleaned,
            counted_only=sum(source + target for _, source, target in counted),
            partitions=[_partition_pair(rows[0], self._begins[pair]) for pair, rows in sorted(self._pairs.items())],
            missing_ranges=[_range(run, self._source) for run in self._missing.finish()],
            repeated_ranges=[self._repeat(run) for run in self._repeated.finish()],
            only_in_target_ranges=[_range(run, self._target) for run in self._only.finish()],
            pending_ranges=[_range(run, self._source) for run in self._pending.finish()],
            moved=self.moved,
            more_ranges=sum(kind.more for kind in (self._missing, self._repeated, self._only, self._pending))
            + self.moved_records
            - len(self.moved),
            map_file=str(self._map_file),
        )

    def _repeat(self, run: Run) -> RepeatedRange:
        own = _range(run, self._target)
        source_partition, _ = self._source.place(run.rows["other"][0])
        earlier_partition, _ = self._target.place(run.rows["earlier"][0])
        offsets, earlier = self._source.offsets(run.rows["other"]), self._target.offsets(run.rows["earlier"])
        return RepeatedRange(
            own.partition,
            own.first,
            own.last,
            own.records,
            source_partition,
            int(offsets.min()),
            int(offsets.max()),
            earlier_partition,
            int(earlier.min()),
            int(earlier.max()),
        )


def pair_groups(rows: Rows) -> NDArray[np.uint64]:
    """Return a number for the partitions, source and target, that each row of PLACED is in."""
    numbers, others = (numbers_of(rows[name]).astype(np.uint64) for name in ("place", "other"))
    return (numbers << _PAIR_SHIFT) | others


def _continues(before: Any, after: Any) -> bool:  # noqa: ANN401 - rows of MAPPED
    return all(before[name] == after[name] for name in ("source_partition", "target_partition")) and bool(
        before["target_first_offset"] - before["source_first_offset"]
        == after["target_first_offset"] - after["source_first_offset"]
    )


def _joined(rows: Rows) -> Rows:
    """Return one row that spans all of these."""
    one = rows[:1].copy()
    for side in ("source", "target"):
        one[f"{side}_first_offset"], one[f"{side}_last_offset"] = (
            rows[f"{side}_first_offset"].min(),
            rows[f"{side}_last_offset"].max(),
        )
    one["records"] = rows["records"].sum()
    return one


def _partition_pair(row: Any, begins: tuple[int, int]) -> PartitionPair:  # noqa: ANN401 - a row of MAPPED
    values = {name: int(row[name]) for name in MappedRange._fields}
    return PartitionPair(**values, source_begins=begins[0], target_begins=begins[1])


def _range(run: Run, side: Side) -> RecordRange:
    partition, first = side.place(run.rows["place"][0])
    return RecordRange(partition, first, side.place(run.rows["place"][-1])[1], run.records)
