"""How far the clock of a server log is from that of the bytes: by events that both have to the millisecond.

A broker writes a line about what it appends, and the record has the broker's own time: the two tell what has to be added to
the log's times. Times that producers set say nothing here, because records wait in clients. A broker's clock is one, so its
log is a time zone away from its own records, in whole quarters of an hour; from another broker's records, also by the
difference of the two clocks. Single lines may be late, or about another cluster: what most of them allow counts.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum, auto
from itertools import groupby, pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

QUARTER_HOUR_MS = 15 * 60 * 1000
_EAST_MS, _WEST_MS = 14 * 3600 * 1000, 12 * 3600 * 1000
"""Local times are at most so far from UTC, in steps of a quarter of an hour."""
_MIN_AGREEING = 0.6
_NEARLY = 0.9
"""Share of the agreeing lines that must allow a value inside the interval."""
_EXACT_WIDTH_MS = 5000
"""A wider interval is said as an interval."""
_ZONE_TOLERANCE_MS = 1000
"""So far a zone may lie beside the interval: a line takes its time before it is written, a record before it is appended."""
_SKEW_MS = 5 * 60 * 1000
"""Clocks of two brokers that differ by more than this leave the zone open."""
_MIN_SKEWED, _MIN_SKEWED_SPAN_MS = 5, 10 * 60 * 1000
"""Fewer lines, or lines in so short a time, may agree on a wrong difference by chance: two clusters start alike."""
MAX_ZONE_CHANGE_MS = 2 * 3600 * 1000
_MIN_AROUND_CHANGE = 2
_MIN_NARROW = 3
"""Offsets recur in every cluster: fewer lines between batches less than a quarter of an hour apart do not give a zone."""
_BEFORE_ALL, _AFTER_ALL = -(2**63), 2**63


class AnchorSource(StrEnum):
    """What has the event that the line tells of."""

    GROUPS = auto()
    """Metadata of consumer groups in __consumer_offsets."""
    TRANSACTIONS = auto()
    """__transaction_state."""
    QUORUM = auto()
    """The first batch of a leader's epoch in __cluster_metadata."""
    METADATA = auto()
    """Records of __cluster_metadata, which the controller stamps."""
    BATCHES = auto()
    """Batches that a broker stamped, before and after the log's end that the line names."""
    BROKERS = auto()
    """Lines of brokers about the requests of a client, by the brokers' clocks."""


_OWN = frozenset({AnchorSource.GROUPS, AnchorSource.TRANSACTIONS, AnchorSource.QUORUM})
"""The broker that wrote the line stamped the record too."""
_TIERS = (
    _OWN,
    frozenset({AnchorSource.METADATA}),
    frozenset({AnchorSource.BATCHES}),
    frozenset({AnchorSource.BROKERS}),
)
"""The first of them whose lines give one value decides."""


class Anchor(NamedTuple):
    """A line's time, and the times in the bytes that it lies between, ms; None where there is none.

    `identified`: the record names the very process that wrote the line.
    """

    logged_ms: int
    after_ms: int | None
    before_ms: int | None
    source: AnchorSource = AnchorSource.BATCHES
    identified: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest that can be added to the line's time."""
        lower = _BEFORE_ALL if self.after_ms is None else self.after_ms - self.logged_ms
        return lower, _AFTER_ALL if self.before_ms is None else max(lower, self.before_ms - self.logged_ms)

    def allows(self, offset: int) -> bool:
        """Whether the line can be so far from the bytes."""
        lower, upper = self.bounds
        return lower - _ZONE_TOLERANCE_MS <= offset <= upper + _ZONE_TOLERANCE_MS


class ClockOffset(Struct, frozen=True):
    """The offset that turns the times of a log into times of the bytes: between `lower_ms` and `upper_ms`, most likely `likely_ms`.

    Of the lines in `anchors`, by source, `agreeing` allow it. `exact`: events that both have give one value; else it is an
    interval. `zone_minutes` is how far east of UTC the log's local time is, None where the log states its zone, where
    several zones lie in the interval, or where too few lines say so: `zones` are all of them. `spread_ms` is the distance of the greatest difference
    between a line and its record from the least, of the lines that agree, None where only batches around lines are known.
    `behind_controller_ms` is how far this broker's clock is behind the controller's, negative if ahead, None where only one of
    the two is compared. `until_ms` is the last time of the bytes that it holds for, None for ever: the next offset of the log follows.
    """

    lower_ms: int
    upper_ms: int
    likely_ms: int
    anchors: dict[AnchorSource, int]
    agreeing: dict[AnchorSource, int]
    zone_minutes: int | None = None
    zones: tuple[int, ...] = ()
    exact: bool = True
    spread_ms: int | None = None
    behind_controller_ms: int | None = None
    until_ms: int | None = None

    @property
    def skew_ms(self) -> int:
        """`likely_ms` without the zone."""
        return self.likely_ms + (self.zone_minutes or 0) * 60_000

    @property
    def is_known(self) -> bool:
        """Whether times can be converted: not if several zones are possible."""
        return self.exact or self.zone_minutes is not None


class Unaligned(Struct, frozen=True):
    """A log whose clock is not known: `anchors` lines tell of events that the bytes have too, and contradict one another if any."""

    anchors: int = 0


def estimate_clock(anchors: Iterable[Anchor], *, zone_known: bool) -> list[ClockOffset] | Unaligned:
    """Return the offsets of a log's clock in the order of time: several where its zone changed, as for daylight saving time."""
    given = [anchor for anchor in anchors if anchor[1:3] != (None, None)]
    for tier in _TIERS:
        own = [anchor for anchor in given if anchor.source in tier]
        if not zone_known and (pieces := _zone_changes(own)):
            return pieces
        found = _one_value(own, zone_known=zone_known)
        if found is not None and found.exact:
            return [_counted(found, given)]
    whole = _one_value(given, zone_known=zone_known)
    return Unaligned(len(given)) if whole is None else [_counted(replace(whole, exact=False), given)]


def _one_value(anchors: Sequence[Anchor], *, zone_known: bool) -> ClockOffset | None:
    """Return the interval that most lines allow; None where too few do, or where no zone explains it."""
    found = _most_allowed([anchor.bounds for anchor in anchors])
    if found is None:
        return None
    (lower, upper), most, agreeing = found
    if agreeing < _MIN_AGREEING * len(anchors):
        return None
    if zone_known:
        bounded = lower > _BEFORE_ALL and upper < _AFTER_ALL
        return _offset(anchors, (lower, upper), min(max(0, most[0]), most[1]), ()) if bounded else None
    return _in_zone(anchors, (max(lower, -_EAST_MS - _SKEW_MS), min(upper, _WEST_MS + _SKEW_MS)), most)


def _in_zone(anchors: Sequence[Anchor], interval: tuple[int, int], most: tuple[int, int]) -> ClockOffset | None:
    """Return an interval with the zones in it; None where there is none, and no second clock explains that either."""
    lower, upper = interval
    zones = _zones(lower - _ZONE_TOLERANCE_MS, upper + _ZONE_TOLERANCE_MS)
    if len(zones) == 1:
        likely = -60_000 * zones[0]
        narrow = most if upper - lower <= _EXACT_WIDTH_MS else interval
        return _offset(anchors, (min(narrow[0], likely), max(narrow[1], likely)), likely, zones)
    if zones:
        return _offset(anchors, interval, -60_000 * min(zones, key=abs), zones)
    zones = _zones(lower - _SKEW_MS, upper + _SKEW_MS)
    return _offset(anchors, interval, most[0], zones) if len(zones) == 1 and _is_solid(anchors, most) else None


def _offset(anchors: Sequence[Anchor], interval: tuple[int, int], likely: int, zones: tuple[int, ...]) -> ClockOffset:
    lower, upper = interval
    certain = len(zones) == 1 and _is_certain(anchors, likely)
    exact = upper - lower <= _EXACT_WIDTH_MS and (certain or not zones)
    differences = [
        anchor.after_ms - anchor.logged_ms
        for anchor in anchors
        if anchor.after_ms is not None and anchor.source is not AnchorSource.BATCHES and anchor.allows(likely)
    ]
    spread = max(differences) - min(differences) if differences else None
    return ClockOffset(
        lower, upper, likely, {}, {}, zones[0] if certain else None, zones, exact=exact, spread_ms=spread
    )


def _is_certain(anchors: Sequence[Anchor], likely: int) -> bool:
    """Whether the lines that allow an offset are enough to tell a zone: records that they name, or several narrow bounds."""
    agreeing = [anchor for anchor in anchors if anchor.allows(likely)]
    bounds = [anchor.bounds for anchor in agreeing if anchor.source is AnchorSource.BATCHES]
    narrow = sum(upper - lower < QUARTER_HOUR_MS for lower, upper in bounds)
    return len(bounds) < len(agreeing) or narrow >= _MIN_NARROW


def _is_solid(anchors: Sequence[Anchor], most: tuple[int, int]) -> bool:
    """Whether the lines that agree on an offset beside every zone are enough to believe in two clocks that differ."""
    agreeing = [anchor for anchor in anchors if anchor.allows(most[0])]
    if any(anchor.identified for anchor in agreeing):
        return True
    times = [anchor.logged_ms for anchor in agreeing]
    return len(times) >= _MIN_SKEWED and max(times) - min(times) >= _MIN_SKEWED_SPAN_MS


def _counted(offset: ClockOffset, anchors: Sequence[Anchor]) -> ClockOffset:
    """Add how many lines were compared and how many agree; in an interval, those that allow some of it."""
    behind = _behind_controller(offset, anchors)
    all_of: dict[AnchorSource, int] = {}
    agreeing: dict[AnchorSource, int] = {}
    for anchor in anchors:
        lower, upper = anchor.bounds
        if offset.is_known:
            skew = behind if behind is not None and anchor.source is AnchorSource.METADATA else 0
            agrees = anchor.allows(offset.likely_ms + skew)
        else:
            agrees = lower <= offset.upper_ms and upper >= offset.lower_ms
        all_of[anchor.source] = all_of.get(anchor.source, 0) + 1
        agreeing[anchor.source] = agreeing.get(anchor.source, 0) + agrees
    return replace(offset, anchors=all_of, agreeing=agreeing, behind_controller_ms=behind)


def _behind_controller(offset: ClockOffset, anchors: Sequence[Anchor]) -> int | None:
    """Return how far the controller's records are from the broker's own, where the two are told apart."""
    records = [anchor for anchor in anchors if anchor.source is AnchorSource.METADATA]
    own = sum(anchor.source in _OWN and anchor.allows(offset.likely_ms) for anchor in anchors)
    found = _one_value(records, zone_known=True)
    if not own or found is None or not offset.exact:
        return None
    if found.lower_ms - _ZONE_TOLERANCE_MS <= offset.likely_ms <= found.upper_ms + _ZONE_TOLERANCE_MS:
        return 0
    difference = found.lower_ms - offset.likely_ms
    return difference if abs(difference) <= _SKEW_MS and _is_solid(records, (found.lower_ms, found.upper_ms)) else None


def _zone_changes(anchors: Sequence[Anchor]) -> list[ClockOffset]:
    """Return an offset for each time between two changes of the zone; empty where the lines show no such change."""
    timed = sorted(
        (anchor for anchor in anchors if anchor.after_ms is not None), key=lambda anchor: anchor.after_ms or 0
    )
    zoned = [(anchor, zones[0]) for anchor in timed if len(zones := _zones(*_widened(anchor.bounds))) == 1]
    runs = [[anchor for anchor, _ in run] for _, run in groupby(zoned, key=lambda each: each[1])]
    runs = [run for run in runs if len(run) >= _MIN_AROUND_CHANGE]
    if len(runs) < 2 or sum(map(len, runs)) < _NEARLY * len(zoned):
        return []
    found = [_one_value(run, zone_known=False) for run in runs]
    offsets = [_counted(offset, run) for offset, run in zip(found, runs, strict=True) if offset is not None]
    if len(offsets) < len(runs):
        return []
    if any(abs(after.likely_ms - before.likely_ms) > MAX_ZONE_CHANGE_MS for before, after in pairwise(offsets)):
        return []
    changes = [_change(before[-1], after[0]) for before, after in pairwise(runs)]
    return [replace(offset, until_ms=change - 1) for offset, change in zip(offsets, changes, strict=False)] + offsets[
        -1:
    ]


def _change(before: Anchor, after: Anchor) -> int:
    """Return when the zone changed: at a full hour of UTC, else a half one, if one lies between the two lines."""
    assert before.after_ms is not None
    assert after.after_ms is not None
    for step in (3_600_000, 1_800_000):
        latest = after.after_ms // step * step
        if latest > before.after_ms:
            return latest
    return after.after_ms


def _widened(bounds: tuple[int, int]) -> tuple[int, int]:
    return bounds[0] - _ZONE_TOLERANCE_MS, bounds[1] + _ZONE_TOLERANCE_MS


def _zones(lower: int, upper: int) -> tuple[int, ...]:
    """Return the zones, in minutes east of UTC, whose offset lies in an interval, the most western first."""
    first = max(-(-lower // QUARTER_HOUR_MS), -_EAST_MS // QUARTER_HOUR_MS)
    last = min(upper // QUARTER_HOUR_MS, _WEST_MS // QUARTER_HOUR_MS)
    return tuple(-15 * quarters for quarters in range(last, first - 1, -1))


def _most_allowed(bounds: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int], int] | None:
    """Return the range that nearly as many intervals allow as any other, the range that most of them allow, and how many do.

    Of several ranges the one that is highest: a line may come late, but no line comes before what it tells of.
    """
    edges = sorted([(lower, 0) for lower, _ in bounds] + [(upper, 1) for _, upper in bounds])
    depths: list[tuple[int, int, int]] = []
    depth = 0
    for (at, ends), (following, _) in pairwise(edges):
        depth += -1 if ends else 1
        depths.append((at, following, depth))
    most = max((depth for _, _, depth in depths), default=0)
    if not most:
        return None
    enough = max(most * _NEARLY, 1)
    best = next(index for index in range(len(depths) - 1, -1, -1) if depths[index][2] == most)
    first = last = best
    while first and depths[first - 1][2] >= enough:
        first -= 1
    while last + 1 < len(depths) and depths[last + 1][2] >= enough:
        last += 1
    return (depths[first][0], depths[last][1]), depths[best][:2], most
