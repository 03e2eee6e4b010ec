"""Search for the smallest schedule of a scenario with a given outcome."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from kaudit.simulate.output.truth import OUTCOMES, Truth
from kaudit.simulate.search.candidates import Candidates
from kaudit.simulate.search.schedule import Document, Schedule
from kaudit.simulate.search.shrinking import Shrinking

DEFAULT_TRIES = 1000
SMALL = 12
"""A schedule with at most this many events is small enough; after a larger one the search goes on."""
_SHRINKING_TRIES = 1000
"""Schedules tried at most to make one smaller."""
SearchProgress: TypeAlias = Callable[[int, Schedule | None], object]
"""Called with how many schedules were tried so far, and the smallest one with the outcome."""


class Found(Struct):
    """What a search found: `schedule` is the smallest that did it, None where none of the `tried` schedules did.

    `shrunk_from`: events it had before it was made smaller. `shrinking_tried`: schedules tried to make it so.
    """

    outcome: str
    seed: int
    tried: int = 0
    shrinking_tried: int = 0
    schedule: Schedule | None = None
    shrunk_from: int = 0
    interrupted: bool = False


class _EndedError(Exception):
    """Shrinking ended before the schedule was smallest: it was stopped or had its tries."""


class Search:
    """A search for a schedule with an outcome, one of OUTCOMES."""

    def __init__(self, outcome: str, seed: int, progress: SearchProgress, stopped: Callable[[], bool]) -> None:
        """`stopped` is asked before each schedule, and ends the search."""
        self._found = Found(outcome, seed)
        self._progress = progress
        self._stopped = stopped

    def run(self, document: Document, name: str, tries: int) -> Found:
        """Try `tries` schedules of the scenario `name`, until one that does it could be made small; return the smallest.

        The same arguments give the same schedule. Raises ScenarioError.
        """
        found = self._found
        for schedule in Candidates(document, name, found.seed):
            if found.tried >= tries or self._stopped():
                break
            found.tried += 1
            self._report()
            if does(schedule.play(), found.outcome):
                smallest = self._shrink(schedule)
                if found.schedule is None or smallest.events < found.schedule.events:
                    found.schedule, found.shrunk_from = smallest, schedule.events
                if found.schedule.events <= SMALL:
                    break
        found.interrupted = self._stopped()
        return found

    def _shrink(self, first: Schedule) -> Schedule:
        last = self._found.shrinking_tried + _SHRINKING_TRIES

        def still_does(schedule: Schedule) -> bool:
            if self._found.shrinking_tried >= last or self._stopped():
                raise _EndedError
            self._found.shrinking_tried += 1
            self._report()
            return does(schedule.play(), self._found.outcome)

        shrinking = Shrinking(first, still_does)
        with suppress(_EndedError):
            shrinking.run()
        return shrinking.best

    def _report(self) -> None:
        found = self._found
        self._progress(found.tried + found.shrinking_tried, found.schedule)


def does(truth: Truth, outcome: str) -> bool:
    """Whether a run has an outcome."""
    return truth.summary()[OUTCOMES[outcome]] > 0
