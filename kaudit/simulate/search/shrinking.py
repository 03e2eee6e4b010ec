"""Make a schedule smaller while it still has the outcome it was found for.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (ddmin).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from kaudit.simulate.search.schedule import Document, Schedule, schedule_of, with_tables

_Item = TypeVar("_Item")
Try = Callable[[Schedule], bool]
"""Whether a schedule still has the outcome. It may raise to end the search."""


class Shrinking:
    """The smallest schedule so far; `best` holds also while and after `run` is ended by an exception."""

    def __init__(self, found: Schedule, still_does: Try) -> None:
        """`found` must have the outcome; `still_does` decides about others."""
        self.best = found
        self._still_does = still_does
        self._name = found.scenario.name

    def run(self) -> Schedule:
        """Shrink until nothing can be left out and no value made simpler."""
        before = None
        while before != self.best.document:
            before = self.best.document
            self._leave_out_producers()
            self._leave_out_topics()
            self._leave_out_faults()
            self._send_fewer_records()
            self._leave_out_faults()
            self._simplify()
        self._without("duration_ms")
        return self.best

    def _without(self, key: str) -> None:
        self._accept({name: value for name, value in self.best.document.items() if name != key})

    def _accept(self, document: Document) -> bool:
        if document == self.best.document:
            return False
        schedule = schedule_of(document, self._name)
        if schedule is None or not self._still_does(schedule):
            return False
        self.best = schedule
        return True

    # -- events ----------------------------------------------------------------------------------------------------------
    def _leave_out_producers(self) -> None:
        names = [producer.name for producer in self.best.scenario.producers]
        for name in names:
            document = self.best.document
            producers = [table for table in document["producers"] if table["name"] != name]
            # A fault that names no producer is the first one's.
            faults = [table for table in _faults(document) if table.get("producer", names[0]) != name]
            others = [table for table in _faults(document) if "producer" not in table and not _of_producer(table)]
            kept = [table for table in _faults(document) if table in faults or table in others]
            if producers:
                self._accept(with_tables(document, producers=producers, faults=kept))

    def _leave_out_topics(self) -> None:
        for topic in self.best.scenario.topics:
            document = self.best.document
            topics = [table for table in document["topics"] if table["name"] != topic.name]
            if topics and all(producer.topic != topic.name for producer in self.best.scenario.producers):
                self._accept(with_tables(document, topics=topics))

    def _leave_out_faults(self) -> None:
        def without(faults: Sequence[dict[str, Any]]) -> bool:
            return self._accept(with_tables(self.best.document, faults=list(faults)))

        if not without([]):
            ddmin(_faults(self.best.document), without)

    def _send_fewer_records(self) -> None:
        """Send fewer records: only the first, only the last, or fewer in the same time."""
        for index in range(len(self.best.scenario.producers)):
            for fewer in (self._only_first, self._only_last, self._more_rarely):
                fewer(index)

    def _only_first(self, index: int) -> None:
        for records in _fewer(self.best.scenario.producers[index].records):
            if self._change("producers", index, {"records": records}):
                return

    def _only_last(self, index: int) -> None:
        producer = self.best.scenario.producers[index]
        for records in _fewer(producer.records):
            skipped = (producer.records - records) // producer.burst * producer.every_ms
            if self._change("producers", index, {"records": records, "start_ms": producer.start_ms + skipped}):
                return

    def _more_rarely(self, index: int) -> None:
        producer = self.best.scenario.producers[index]
        for records in _fewer(producer.records):
            every = producer.every_ms * producer.records // records
            if self._change("producers", index, {"records": records, "every_ms": every}):
                return

    # -- values ----------------------------------------------------------------------------------------------------------
    def _simplify(self) -> None:
        """Take each value away, or make it a smaller or rounder one."""
        self._accept({**self.best.document, "seed": 0})
        self._without("network")
        for array in ("faults", "producers"):
            for index, table in enumerate(self.best.document.get(array, [])):
                for key in tuple(table):
                    self._simplify_value(array, index, key)

    def _simplify_value(self, array: str, index: int, key: str) -> None:
        table = self.best.document[array][index]
        value = table[key]
        if key in _IDENTITY or (array == "producers" and key not in _TIMING):
            return
        less = {name: item for name, item in table.items() if name != key}
        if self._replace_table(array, index, less) or type(value) is not int:
            return
        for simpler in _simpler(value):
            if self._change(array, index, {key: simpler}):
                return

    def _change(self, array: str, index: int, values: dict[str, Any]) -> bool:
        return self._replace_table(array, index, self.best.document[array][index] | values)

    def _replace_table(self, array: str, index: int, table: dict[str, Any]) -> bool:
        tables = list(self.best.document[array])
        tables[index] = table
        return self._accept(with_tables(self.best.document, **{array: tables}))


_IDENTITY = ("kind", "producer", "broker", "leader_of", "partition", "records")
"""Keys that say what an event is about; their values are not simplified."""
_TIMING = ("start_ms", "every_ms", "burst", "sessions", "initializations")
"""Keys of a producer whose values are simplified; its configuration stays the scenario's."""


def _of_producer(table: dict[str, Any]) -> bool:
    return "request" in table or table["kind"].endswith("-producer")


def _faults(document: Document) -> list[dict[str, Any]]:
    faults: list[dict[str, Any]] = document.get("faults", [])
    return faults


def _fewer(records: int) -> Iterator[int]:
    """Yield numbers below `records`, the smallest first."""
    number = 1
    while number < records:
        yield number
        number += max(1, number // 3)


def _simpler(value: int) -> Iterator[int]:
    """Yield numbers nearer to 0: 0, 1, half of it, then with its last digits cut, the roundest first."""
    digits = len(str(abs(value)))
    sign = -1 if value < 0 else 1
    rounded = (sign * (abs(value) // 10**size * 10**size) for size in range(digits - 1, 0, -1))
    for number in dict.fromkeys((0, sign, int(value / 2), *rounded)):
        if abs(number) < abs(value):
            yield number


def ddmin(items: Sequence[_Item], still_does: Callable[[Sequence[_Item]], bool]) -> Sequence[_Item]:
    """Return a part of `items` for which `still_does` holds, and of which no single item can be left out.

    `still_does` is called with parts in the same order; it must hold for all of `items`.
    """
    parts = 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            rest = [*items[:start], *items[start + size :]]
            if still_does(rest):
                items = rest
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(items), parts * 2)
    return items
