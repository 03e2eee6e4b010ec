"""Slices of one thread of a trace, moved as little as possible so that they follow or contain one another.

A trace viewer draws the slices of a thread as nested calls and drops those that overlap only partly. Timestamps of batches are
the clients' and go back and forth.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field


class Slice(Struct):
    """Something that lasts from `start` to `end` (microseconds), with what happened during it in `inner`."""

    name: str
    category: str
    start: int
    end: int
    args: Mapping[str, object] = field(default_factory=dict)
    inner: list["Slice"] = field(default_factory=list)

    @property
    def least(self) -> int:
        """The microseconds it takes at least: one for each slice in it."""
        return max(len(self.inner), 1)


def arranged(slices: Sequence[Slice], first: int = 0, last: int | None = None) -> Iterator[Slice]:
    """Yield the slices by start, each followed by its inner ones, none overlapping another partly, all in `first`..`last` (microseconds).

    A slice ends where the next begins, at the latest, and lasts 1 microsecond at least: batches of one ms stand side by side. There
    must be room for that.
    """
    ordered = sorted(slices, key=lambda one: one.start)
    room = sum(one.least for one in ordered)
    at = first
    for one, following in pairwise([*ordered, None]):
        assert one is not None
        start = max(one.start, at) if last is None else min(max(one.start, at), last - room)
        limit = last if following is None else following.start
        end = max(one.end if limit is None else min(one.end, limit), start + one.least)
        room -= one.least
        at = end if last is None else min(end, last - room)
        yield Slice(one.name, one.category, start, at, one.args)
        yield from arranged(one.inner, start, at)
