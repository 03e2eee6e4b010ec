"""The participants of a run, and its rows folded: what every drawing begins with."""

from collections.abc import Iterable

from kaudit.simulate.trace import TraceEvent

_OTHERS = ("controller", "znode")


def participants(rows: Iterable[TraceEvent], producers: Iterable[str], brokers: Iterable[str]) -> list[str]:
    """Return who takes part: producers, brokers, then who else; only those that appear."""
    seen: set[str] = set()
    for row in rows:
        seen.update((row.source, row.target))
    return [name for name in (*producers, *brokers, *_OTHERS) if name in seen]
