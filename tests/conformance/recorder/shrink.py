"""Fewer steps that show the same."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(steps: Sequence[T], shows: Callable[[list[list[T]]], list[bool]], rounds: int = 12) -> list[T]:
    """Leave out steps as long as what remains shows the difference.

    `shows` is asked about many candidates at once, since a live broker plays them side by side, at most `rounds` times.
    Halves are left out first, single steps last; of candidates that show it, all those that do not overlap are tried
    together in the next round.
    """
    kept = list(steps)
    size = max(len(kept) // 2, 1)
    for _ in range(rounds):
        cuts = [range(start, min(start + size, len(kept))) for start in range(0, len(kept), size)]
        verdicts = shows([_without(kept, [cut]) for cut in cuts])
        needless = [cut for cut, still in zip(cuts, verdicts, strict=True) if still]
        if needless:
            together = [_without(kept, needless[:count]) for count in range(len(needless), 0, -1)]
            verdicts = [*shows(together[:-1]), True]
            kept = together[verdicts.index(True)]
        elif size == 1:
            break
        size = max(min(size // 2, len(kept) // 2), 1)
        if not kept:
            break
    return kept


def _without(steps: Sequence[T], cuts: Sequence[range]) -> list[T]:
    return [step for index, step in enumerate(steps) if not any(index in cut for cut in cuts)]
