"""How fast the ids are used up."""

from collections.abc import Iterable

from msgspec import Struct

from kaudit.broker.producer_ids.allocation_rules import Step, StepKind
from kaudit.broker.producer_ids.blocks import BLOCK_SIZE, MAX_PRODUCER_ID

_MS_PER_DAY = 86_400_000


class Burn(Struct, frozen=True):
    """`blocks` granted between two times (ms since 1970), and what that means for the ids left after the last."""

    blocks: int
    since_ms: int
    until_ms: int
    ids_left: int

    @property
    def blocks_per_day(self) -> float:
        """Blocks granted in 24 hours at the observed rate, > 0."""
        return self.blocks * _MS_PER_DAY / (self.until_ms - self.since_ms)

    @property
    def days_left(self) -> float:
        """Days until the ids are exhausted at the observed rate."""
        return self.ids_left / BLOCK_SIZE / self.blocks_per_day


class BurnMeter:
    """Counts regular grants over time: a jump uses up ids, yet says nothing about the next day."""

    def __init__(self) -> None:
        self._blocks = 0
        self._since_ms: int | None = None
        self._until_ms: int | None = None
        self._last_end: int | None = None

    def note(self, step: Step) -> None:
        """Count one step of a replayed history; those without a time or a block count nothing."""
        if step.entry.at_ms is None or step.entry.end is None:
            return
        if self._since_ms is None:
            self._since_ms = step.entry.at_ms
        elif step.kind is StepKind.NEXT:
            self._blocks += 1
        self._until_ms = step.entry.at_ms
        self._last_end = step.entry.end

    def read(self) -> Burn | None:
        """Return the rate so far, None before a second block at a later time."""
        since, until, end = self._since_ms, self._until_ms, self._last_end
        if since is None or until is None or end is None or until <= since or not self._blocks:
            return None
        return Burn(self._blocks, since, until, max(MAX_PRODUCER_ID - end, 0))


def measure_burn(steps: Iterable[Step]) -> Burn | None:
    """Return the rate of grants over a whole history, None when it shows no two blocks with times."""
    meter = BurnMeter()
    for step in steps:
        meter.note(step)
    return meter.read()
