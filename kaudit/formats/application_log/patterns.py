"""Patterns of messages, from the TOML files beside this module: the words of a release, with names where values stand."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from kaudit.formats.application_log.errors import described_error, error_name, is_of_writes
from kaudit.formats.toml import packaged_toml
from kaudit.model.application_logs import Client, LogEvent, LogEventKind, Origin

PROGRAMS: Final[Mapping[Origin, tuple[str, ...]]] = {
    "server": ("server",),
    "client": ("java", "librdkafka", "franz-go", "kafkajs", "sarama", "kafka-python", "aiokafka"),
}
"""The programs whose messages a log may hold, by its origin; each is a file in `patterns/`."""

_FIELD: Final = re.compile(r"\{(\w*)\}")
_MEMBERS: Final = re.compile(r"; (?=\w+: \{)")
_NEXT_MEMBER: Final = re.compile(r", (?=\w+: \{)")
_END_OF_MEMBER: Final = r"(?=, [\w.]+: |$)"
_MEANT: Final = {"error_text": "error"}
_INTEGER: Final = r"-?\d{1,20}+"  # file names have twenty digits
_INT64_LIMIT: Final = 1 << 63
_TOPIC: Final = r"(?:[\w.-]{1,249}|<[\w.-]{1,80}>)"  # or a placeholder, as reports that were shared have them
_VALUES: Final = {
    "error": r"[\w.$]{1,200}",
    "transaction_state": r"\w{1,40}",
    "isr": r"\d[\d, ]{0,400}\d|\d?",
    "topic": _TOPIC,
    "incarnation": r"[\w-]{22}",
}
_QUOTED: Final = "Exception: "
_MAX_TRIES: Final = 3
"""Occurrences of a pattern's first words in one line that are tried: repeated words must not take quadratic time."""
INTEGER_FIELDS: Final = frozenset(
    name for name, kind in LogEvent.__annotations__.items() if kind == int | None
)  # fmt: skip


class Pattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One wording of a message.

    `text` is the message with {field} where a value stands ({topic_partition} is both, {error_text} an error in
    a client's words, {directory} a path before a file's name, {number} any integer, {} any text). `since` and `until`
    are the first and the last release line that has it, None where it is as old as producer ids and where it is still
    there. `source` names the class or the file of its source. `example` is a line. `values` are
    fields the message implies. A `text` that ends in `; name: value, name: value` is that of a structured entry: its
    members may stand in any order, with others between them. With `of_writes` the message is one only where its error is
    one that writes meet, since its words alone say little.
    """

    id: str
    event: LogEventKind
    text: str
    source: str
    example: str
    level: str | None = None
    since: str | None = None
    until: str | None = None
    of_writes: bool = False
    values: dict[str, str | int] = {}
    program: str = ""

    @cached_property
    def _parts(self) -> list[str]:
        """The message, and `name: value` of each member."""
        message, *members = _MEMBERS.split(self.text, maxsplit=1)
        return [message, *(part for rest in members for part in _NEXT_MEMBER.split(rest))]

    @cached_property
    def literals(self) -> list[str]:
        """The texts between the fields, in order."""
        return [text for part in self._parts for text in _FIELD.split(part)[::2] if text]

    @cached_property
    def begin(self) -> str:
        """The words that the message begins with, empty where it begins with a field."""
        return self._parts[0].partition("{")[0]

    @property
    def fields(self) -> set[str]:
        """The fields of LogEvent that the message states or implies."""
        named = {_MEANT.get(name, name) for name in _FIELD.findall(self.text)} - {"", "directory", "number"}
        return (
            named - {"topic_partition"}
            | ({"topic", "partition"} if "topic_partition" in named else set())
            | set(self.values)
        )

    @cached_property
    def longest(self) -> str:
        """The longest text between two fields: a line without it does not match."""
        return max(self.literals, key=len)

    @cached_property
    def _integers(self) -> list[str]:
        return [name for name in self._expression.groupindex if name in INTEGER_FIELDS]

    @cached_property
    def weight(self) -> int:
        """Number of fixed characters in the message."""
        return sum(map(len, self.literals))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        message, *members = self._parts
        if not members:
            return re.compile(_compiled(message), re.DOTALL)
        looks = "".join(
            rf"(?=(?>.*?[;,] (?={member.partition(' ')[0]} )){_compiled(member, _END_OF_MEMBER)})" for member in members
        )
        return re.compile(f"{_compiled(message)}(?=;){looks}", re.DOTALL)

    def find(self, line: str) -> re.Match[str] | None:
        """Find the message in a line; linear in the line's length."""
        if not self.begin:
            return self._expression.search(line)
        at = line.find(self.begin)
        for _ in range(_MAX_TRIES):
            if at < 0:
                return None
            if found := self._expression.match(line, at):
                return found
            at = line.find(self.begin, at + 1)
        return None

    def values_of(self, found: re.Match[str]) -> dict[str, Any] | None:
        """Return what the message states, None if a number is too large for a field, or the error is none of writes."""
        values: dict[str, Any] = self.values | found.groupdict()
        described = values.pop("error_text", None)
        if "error" in values:
            values["error"] = error_name(values["error"])
        elif described is not None:
            values["error"] = described_error(described)
        if self.of_writes and not is_of_writes(values["error"]):
            return None
        for name in self._integers:
            values[name] = int(values[name])
            if abs(values[name]) >= _INT64_LIMIT:
                return None
        return values


def _compiled(text: str, end: str = "") -> str:
    """Return an expression with an atomic group for each value and the words after it, so that nothing is matched again."""
    pieces = _FIELD.split(text)
    literals = [re.escape(literal) for literal in pieces[::2]]
    literals[-1] += end
    expression = literals[0] or r"(?<![\w.-])"
    for name, following in zip(pieces[1::2], literals[1:], strict=True):
        if name == "topic_partition":
            expression += rf"(?>(?P<topic>{_TOPIC})-(?P<partition>\d{{1,10}}+){following})"
        elif name in INTEGER_FIELDS:
            expression += rf"(?P<{name}>{_INTEGER}){following}"
        elif name == "number":
            expression += _INTEGER + following
        elif name == "directory":
            expression += rf"(?:[^'\n]*/)?{following}"
        elif name in _VALUES:
            expression += rf"(?>(?P<{name}>{_VALUES[name]}){following})"
        else:
            group = f"(?P<{name}>" if name else "(?:"
            expression += rf"(?>{group}.*?){following})" if following else rf"{group}.*)"
    return expression


@lru_cache(maxsize=8)
def read_patterns(program: str) -> list[Pattern]:
    """Read the patterns of one program."""
    document = _toml(program.replace("-", "_"))
    patterns = msgspec.convert(document["patterns"], list[Pattern])
    return [msgspec.structs.replace(pattern, program=document["program"]) for pattern in patterns]


def _toml(name: str) -> dict[str, Any]:
    return packaged_toml("kaudit.formats.application_log", f"patterns/{name}.toml")


class PatternSet:
    """The patterns of all programs whose messages a log of one origin may hold.

    Of `triggers` at least one stands in every message of the patterns, so that lines without any need no second look.
    They are those of triggers.toml, and for a pattern that has none of them its longest text.
    """

    def __init__(self, origin: Origin) -> None:
        self._by_trigger: dict[str, list[Pattern]] = {trigger: [] for trigger in _toml("triggers")[origin]}
        for program in PROGRAMS[origin]:
            for pattern in read_patterns(program):
                self._by_trigger.setdefault(self._trigger_of(pattern), []).append(pattern)
        self.triggers: tuple[str, ...] = tuple(self._by_trigger)

    def _trigger_of(self, pattern: Pattern) -> str:
        standing = (trigger for trigger in self._by_trigger if any(trigger in text for text in pattern.literals))
        return next(standing, pattern.longest)

    def match(self, line: str, triggers: Iterable[int]) -> tuple[Pattern, dict[str, Any]] | None:
        """Return the pattern that the line fits, with the values.

        If several do, it is one with words of its own rather than the mere name of an error, the message rather than the
        exception that it quotes, and then the one that leaves least of the line open. `triggers` are the numbers of those that stand in the line.
        """
        best: tuple[Pattern, dict[str, Any]] | None = None
        best_rank = (False, False, 0)
        for number in triggers:
            for pattern in self._by_trigger[self.triggers[number]]:
                if pattern.longest not in line or (found := pattern.find(line)) is None:
                    continue
                rank = (not pattern.of_writes, not line.endswith(_QUOTED, 0, found.start()), pattern.weight)
                if rank > best_rank and (values := pattern.values_of(found)) is not None:
                    best, best_rank = (pattern, values), rank
        return best


@lru_cache(maxsize=2)
def pattern_set(origin: Origin) -> PatternSet:
    """Return the patterns for a log of this origin."""
    return PatternSet(origin)


def client_of(pattern: Pattern) -> Client | None:
    """Return the client that a pattern belongs to, None for a broker's."""
    return None if pattern.program == "server" else pattern.program  # type: ignore[return-value]
