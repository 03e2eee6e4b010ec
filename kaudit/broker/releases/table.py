"""Tables of switches: a struct whose fields are behaviours, each with the releases that changed it.

The tables of brokers are `switches.py` and `request_versions.py`, that of the simulated clients kaudit/simulate/producer/client_switches.py.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version

_TICKETS = ("KAFKA-", "KIP-")
Value = bool | int | str | KafkaError | tuple[int, int] | None


class Change(Struct, frozen=True):
    """The `value` a switch has from `releases` on; `source` is the ticket, KIP or class that it is taken from.

    `releases` lists every release that first had it, line by line: "2.1.1, 2.2.0" means from 2.1.1 on in the 2.1 line
    and from 2.2.0 on.
    """

    releases: str
    value: Value
    source: str
    recorded: str = ""
    """The oldest release whose recorded answers show the change; empty where none do, so that only the source speaks for it."""

    @property
    def evidence(self) -> str:
        """Where the change is known from: its source, and the release that was recorded, if any was."""
        if self.recorded:
            return f"{self.source}; recorded on {self.recorded}"
        return (
            f"{self.source}; {'from a ticket' if self.source.startswith(_TICKETS) else 'from the source'}, not recorded"
        )

    @property
    def since(self) -> tuple[Version, ...]:
        """`releases` as versions."""
        return _versions(self.releases)


@cache
def _versions(releases: str) -> tuple[Version, ...]:
    return tuple(Version.parse(release) for release in releases.split(","))


class Informative(Struct, frozen=True):
    """Marks a switch that no code of kaudit reads; `because` says why."""

    because: str


class Switch(Struct, frozen=True):
    """One row of the table; `default` is the value in 0.11.0.0, `informative` why no code reads it, None if some does."""

    name: str
    default: Value
    meaning: str
    changes: tuple[Change, ...]
    informative: str | None

    def value_in(self, release: Version) -> Value:
        """Return the value in a release."""
        change = self.last_change(release)
        return self.default if change is None else change.value

    def last_change(self, release: Version) -> Change | None:
        """Return the newest change a release has, None where it still does as 0.11.0.0 did."""
        had = [change for change in self.changes if release.includes_fix(*change.since)]
        return had[-1] if had else None


@cache
def rows_of(table: type[Struct]) -> Mapping[str, Switch]:
    """Return the switches of a table by name, in the order of its fields."""
    annotations = get_type_hints(table, include_extras=True)
    return MappingProxyType(
        {field.name: _row(field.name, field.default, annotations[field.name].__metadata__) for field in fields(table)}
    )


def _row(name: str, default: Value, metadata: tuple[str | Change | Informative, ...]) -> Switch:
    (meaning,) = (entry for entry in metadata if isinstance(entry, str))
    changes = tuple(entry for entry in metadata if isinstance(entry, Change))
    informative = next((entry.because for entry in metadata if isinstance(entry, Informative)), None)
    return Switch(name, default, meaning, changes, informative)
