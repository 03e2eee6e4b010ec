"""`--identity`: which parts of a record make it the one it is."""

import enum
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from kaudit.errors import UsageError, suggestion

_COMMA = re.compile(r"(?<!\\),")
_DOT = re.compile(r"(?<!\\)\.")
_ESCAPED = re.compile(r"\\([.,\\])")


class Of(enum.Enum):
    """What a part is taken from."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    TIMESTAMP = "timestamp"
    HEADER = "header"
    KEY_PATH = "key path"
    VALUE_PATH = "value path"
    DEBEZIUM = "debezium position"
    """Where a change stands in its database's log: `source` in a change event, without its clocks."""
    SNAPSHOT_ROW = "row of a snapshot"
    """`after` of a change event that a snapshot wrote (`op` is r): every snapshot gives it another place."""


class Part(Struct, frozen=True):
    """One part of a record: all of it, the header called `name`, or what lies at `path` of a key or value."""

    of: Of
    name: str = ""
    path: tuple[str, ...] = ()


class Identity(Struct, frozen=True):
    """The parts that make a record the one it is: of several choices the first that a record has all parts of.

    A record that has no choice whole is compared by WHOLE, as are those whose parts cannot be read.
    """

    text: str
    """As it is written on the command line."""
    choices: tuple[tuple[Part, ...], ...]

    @property
    def parts(self) -> Iterable[Part]:
        """All parts of all choices."""
        return (part for choice in self.choices for part in choice)

    @property
    def has_timestamp(self) -> bool:
        """Whether a record with another timestamp is another record."""
        return any(part.of is Of.TIMESTAMP for part in self.parts)

    @property
    def is_timed(self) -> bool:
        """Whether equal records have equal timestamps: by each choice."""
        return all(Part(Of.TIMESTAMP) in choice for choice in self.choices)

    @property
    def is_whole(self) -> bool:
        """Whether every part is one that all records have: key, value, headers, timestamp."""
        return all(part.of in _EVERY for part in self.parts)

    def without(self, of: Of) -> "Identity":
        """Return the identity by all other parts, of one without presets and paths."""
        choices = tuple(tuple(part for part in choice if part.of is not of) for choice in self.choices)
        return Identity(",".join(name for name in self.text.split(",") if name != of.value), choices)


_EVERY = (Of.KEY, Of.VALUE, Of.HEADERS, Of.TIMESTAMP)
_PREFIXES = {"header": Of.HEADER, "key": Of.KEY_PATH, "value": Of.VALUE_PATH}
_EXAMPLE = "write key, value, headers, timestamp, header:NAME, key:PATH or value:PATH, joined by commas"


def _path(of: Of, text: str) -> Part:
    return Part(of, path=tuple(_plain(name) for name in _DOT.split(text)))


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


WHOLE = Identity("key,value,headers,timestamp", (tuple(map(Part, _EVERY)),))
"""The default, and what is compared where an identity cannot be read."""
_KEY = Part(Of.KEY)


def _changes(*envelope: str) -> Iterable[tuple[Part, ...]]:
    """Several changes of one statement may have one place in the log (PostgreSQL's COPY), and tables may have no key: rows count, too."""
    values = {name: Part(Of.VALUE_PATH, path=(*envelope, name)) for name in ("op", "before", "after")}
    source = Part(Of.DEBEZIUM, path=(*envelope, "source"))
    yield _KEY, Part(Of.SNAPSHOT_ROW, path=envelope)
    yield _KEY, *values.values(), source
    yield _KEY, values["op"], values["after"], source
    yield _KEY, values["op"], source


PRESETS: dict[str, tuple[tuple[Part, ...], ...]] = {
    "debezium": (*_changes("payload"), *_changes()),
    "outbox": ((Part(Of.HEADER, "id"),),),
    "cloudevents": (
        (Part(Of.HEADER, "ce_id"), Part(Of.HEADER, "ce_source")),
        (_path(Of.VALUE_PATH, "id"), _path(Of.VALUE_PATH, "source"), _path(Of.VALUE_PATH, "specversion")),
    ),
}
"""What connectors and specifications make unique: Debezium's change events and its outbox event router, CloudEvents' Kafka binding."""


@lru_cache(maxsize=64)
def parse_identity(text: str) -> Identity:
    """Parse `--identity`. Raises UsageError for a part that there is not."""
    if text in PRESETS:
        return Identity(text, PRESETS[text])
    parts = [_part(name) for name in _COMMA.split(text)]
    if len(set(parts)) < len(parts):
        raise UsageError(f"--identity {text}: a part is named twice")
    return Identity(text, (tuple(sorted(parts, key=_order)),))


def _order(part: Part) -> int:
    """Parts that lie next to each other in a record come first, as they lie."""
    return list(Of).index(part.of)


def _part(text: str) -> Part:
    kind, colon, rest = text.partition(":")
    if colon and kind in _PREFIXES and rest:
        of = _PREFIXES[kind]
        part = Part(of, _plain(rest)) if of is Of.HEADER else _path(of, rest)
        if all(part.path) if part.path else part.name:
            return part
    whole = {of.value: of for of in _EVERY}
    if text not in whole:
        known: Sequence[str] = (*whole, *PRESETS)
        raise UsageError(f"--identity {text}: no such part{suggestion(text, known) or '; ' + _EXAMPLE}")
    return Part(whole[text])
