"""What is known to be missed: tests/differential/known.toml, read and compared with outcomes."""

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.differential.cases import Outcome

MISSED, LOWERED, CONFUSED, ALARM = "missed", "lowered", "confused", "alarm"


class Known(NamedTuple):
    """One entry: what happens, to which damages, in which places, with which dressings (none given: any), and why.

    `example` is a case of it by seed, damage, place and dressing. An entry whose example is found has to go.
    """

    name: str
    what: tuple[str, ...]
    reason: str
    example: tuple[int, str, str, str]
    damages: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    dressings: tuple[str, ...] = ()

    def covers(self, each: Outcome) -> bool:
        return what_is_wrong(each) in self.what and all(
            not listed or value in listed
            for listed, value in (
                (self.damages, each.damage),
                (self.places, each.place),
                (self.dressings, each.dressing),
            )
        )


def what_is_wrong(each: Outcome) -> str | None:
    """Return what kaudit does wrong in one log, None if nothing."""
    if each.is_healthy:
        return ALARM if each.codes else None
    return MISSED if each.missed else LOWERED if each.lowered else CONFUSED if each.confused else None


def _entries() -> tuple[Known, ...]:
    text: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "known.toml").read_text(encoding="utf-8"))
    return tuple(
        Known(
            name,
            tuple(entry["what"]),
            entry["reason"],
            tuple(entry["example"]),
            *(tuple(entry.get(key, ())) for key in ("damages", "places", "dressings")),
        )
        for name, entry in text.items()
    )


KNOWN = _entries()


def entry_of(each: Outcome) -> Known | None:
    """Return the first entry that covers an outcome."""
    return next((entry for entry in KNOWN if entry.covers(each)), None)


def explained(each: Outcome) -> bool:
    """Whether nothing is wrong, or an entry says why."""
    return what_is_wrong(each) is None or entry_of(each) is not None


def listing(outcomes: Iterable[Outcome]) -> str:
    """Return the entries with the number of logs each covers."""
    counts = Counter(entry for each in outcomes if (entry := entry_of(each)) is not None)
    return "\n".join(f"{counts[entry]:7} {entry.name} ({', '.join(entry.what)}): {entry.reason}" for entry in KNOWN)
