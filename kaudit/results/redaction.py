"""Names and texts of a result become hashes, so that it can be shown to anybody: topics, ids, hosts, paths, lines of logs.

The result is changed before a format sees it, so every format shows the same. What is left in clear: IN_CLEAR.
"""

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.internal_topics.transaction_state import DEFAULT_PARTITIONS, coordinator_partition
from kaudit.model.finding import Finding, KnownBug
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.result import Changed, Expected
from kaudit.model.transactional_ids import name_pattern
from kaudit.results.log_words import redacted_line
from kaudit.results.redacted_ids import in_form, letters_of
from kaudit.source.file_kinds import UNKNOWN, kind_by_name, leftover_kind, parse_partition_name
from kaudit.source.layout import INTERNAL_TOPICS

IN_CLEAR: Final = (
    "offsets, sequences, producer ids, epochs, broker ids, times, sizes, CRCs and digests, partition numbers, names of internal topics and "
    "of brokers' files, ids of clusters, directories and topics, releases, numbers in lines of logs, and the words of Kafka's own messages"
)
"""What a redacted result still says."""
_DIGITS: Final = 10
_TRANSACTIONAL: Final = "txn"
_INTERNAL: Final = INTERNAL_TOPICS | {REMOTE_LOG}
"""Topics whose names are Kafka's."""
_KINDS: Final[Mapping[str, str]] = {
    "topic": "topic",
    "transactional_id": _TRANSACTIONAL,
    "transactional_ids": _TRANSACTIONAL,
    "application": _TRANSACTIONAL,
    "client_id": "client",
    "group_id": "group",
    "group": "group",
    "member_id": "client",
    "before_member_id": "client",
    "host": "host",
    "client_host": "host",
    "replica": "copy",
    "reference": "copy",
}
"""Fields that hold names, and what a name becomes."""
_PATHS: Final = frozenset(
    {"inputs", "path", "log_dir", "directory", "file", "sources", "not_used", "copy", "paths", "older_snapshot"}
)
_RELATIVE: Final = frozenset({"file", "older_snapshot"})
"""Those that are relative to an input; all others begin at a root when they are redacted, so that no format completes them."""
_SOURCE: Final = "source"
_PLACE: Final = re.compile(r"(?P<path>.+?)(?P<place>@(?:offset )?\d+|:\d+)").fullmatch
"""Where an attempt was found: a position or an offset in a log, or a line."""
_LOG_LINE: Final = "text"
_PRINTS: Final = frozenset({"fingerprint", "incident"})
"""Fields with fingerprints of findings, by which a topic could be guessed."""
_PRINT_DIGITS: Final = 16
_WRITTEN: Final = frozenset({"suppression", "summary", "reason"})
_BY_TEAM: Final = "redacted"
"""Stands for what a team has written itself: the reasons in a baseline and a configuration."""
_CONSTANT: Final = frozenset(
    {
        "code",
        "kind",
        "type",
        "status",
        "severity",
        "confidence",
        "event",
        "origin",
        "outcome",
        "algorithm",
        "client",
    }
)
"""Fields whose values are kaudit's own words."""
_IN_TEXT: Final = re.compile(r"[^\s'\"`(),;=<>]*/[^\s'\"`(),;=<>]*")
_WORD: Final = "A-Za-z0-9_"
_PATHS_OF_ROWS: Final = frozenset({"file", "segment", "path"})
_WORDS_OF_ROWS: Final = frozenset(
    {
        "row",
        "kind",
        "status",
        "codec",
        "timestamp_type",
        "control_type",
        "encoding",
        "state",
        "leftover",
        "broker",
        "type",
        "crc",
        "relation",
        "cause",
        "confidence",
        "transaction_outcome",
        "original_transaction_outcome",
    }
)
"""Fields of rows whose values are words of Kafka's or of kaudit's."""
_NAMED_BY_KAFKA: Final = frozenset({"internal_record", "metadata"})
"""Rows whose `name` is that of a type of records."""
_LEFT: Final = frozenset({"", ".", "..", "-"})
_WITHOUT_NAMES: Final = bytes | bytearray | memoryview | range | set | frozenset | type
_PLACED: Final = frozenset({_TRANSACTIONAL, "group"})
"""Kinds of names whose hash says which partition of an internal topic has them."""
_NUMBER: Final = "#"
_Value = TypeVar("_Value")
_Error = TypeVar("_Error", bound=Exception)


class Redactor:
    """Replaces names by hashes under a secret: the same name gives the same hash in every result that has the secret."""

    def __init__(self, secret: bytes) -> None:
        self.partitions: Collection[int] = (DEFAULT_PARTITIONS,)
        """How many partitions a coordinator's topic has: a name's hash lies in the partition that the name lies in."""
        self._secret = secret
        self._placed: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        self._components: set[str] = set()
        self._known: re.Pattern[str] | None = None

    def learn(self, *values: object) -> None:
        """Note the names in results and paths: they are replaced wherever a text has them."""
        known = len(self._names)
        self._walk(values, "")
        self._known = self._known if len(self._names) == known else None

    def learn_paths(self, paths: Iterable[str]) -> None:
        """Note paths as they were given."""
        for path in paths:
            self._learn_path(path)
        self._known = None

    def learned(self, value: _Value) -> _Value:
        """Note the names in a value, and return it with all names replaced in it: of what is shown while it comes."""
        self.learn(value)
        return self.redacted(value)

    def json_lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield lines of JSON with all names replaced; a line that is none stays, to be refused by its reader."""
        for line in lines:
            try:
                document = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield line
            else:
                yield msgspec.json.encode(self.learned(document)) + b"\n"

    def redacted(self, value: _Value, field: str = "") -> _Value:
        """Return the value with all names replaced in it; `field` is what holds it."""
        changed: Any = self._changed(value, field)
        return changed  # type: ignore[no-any-return]

    def digest(self, data: bytes) -> bytes:
        """Return 32 bytes that stand for these, and tell nothing of them to whoever lacks the secret."""
        return hmac.digest(self._secret, data, "sha256")

    def name(self, field: str, name: str) -> str:
        """Return what stands for a name in a field of results; of a field that holds none, for a word."""
        return self._token(_KINDS.get(field, "value"), name)

    def component(self, name: str) -> str:
        """Return what stands for a directory or a file in a path; names that brokers give stay."""
        return self._component(name)

    def topic(self, name: str) -> str:
        """Return what stands for a topic; internal ones keep their names."""
        return name if name in _INTERNAL else self._token("topic", name)

    def path(self, path: str) -> str:
        """Return a path whose directories and files are replaced, but for names that a broker gives; it begins at a root."""
        shown = self._relative(path)
        return shown if "://" in shown or shown.startswith("/") or shown in _LEFT else f"/{shown}"

    def _relative(self, path: str) -> str:
        scheme, separator, rest = path.rpartition("://")
        return scheme + separator + "/".join(map(self._component, rest.split("/")))

    def text(self, text: str) -> str:
        """Return a text in which known names, and paths with known names, are replaced."""
        if self._known is None:
            found = sorted((name for name in self._names if name not in _LEFT), key=len, reverse=True)
            names = "|".join(map(re.escape, found)) or "(?!)"
            self._known = re.compile(f"(?<![{_WORD}])(?:{names})(?![{_WORD}])")
        text = self._known.sub(lambda match: self._names[match[0]], text)
        return _IN_TEXT.sub(lambda match: self._path_in_text(match[0]), text)

    def of_error(self, error: _Error, paths: Iterable[str]) -> _Error:
        """Return an error whose text does not name the paths of the command line."""
        self.learn_paths(paths)
        return type(error)(self.text(str(error)))

    def row_of_inspect(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return a row of `kaudit inspect` in which no text is left but Kafka's and kaudit's own words, and names of brokers' files."""
        redacted = {name: self._part_of_row(value, name) for name, value in row.items()}
        return redacted | {"name": row["name"]} if row.get("row") in _NAMED_BY_KAFKA else redacted

    def _part_of_row(self, value: object, field: str) -> object:
        if isinstance(value, str):
            if field in _PATHS_OF_ROWS:
                return self._relative(value)
            kind = _KINDS.get(field, "value")
            return value if field in _WORDS_OF_ROWS or value in _INTERNAL else self._token(kind, value)
        if isinstance(value, Mapping):
            return {key: self._part_of_row(item, str(key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._part_of_row(item, field) for item in value]
        return self.redacted(value) if isinstance(value, Struct) else value

    def _path_in_text(self, text: str) -> str:
        return "/".join(self._component(part) if part in self._components else part for part in text.split("/"))

    def _token(self, kind: str, name: str) -> str:
        if kind not in _PLACED:
            return f"{kind}-{self._digest(name)[:_DIGITS]}"
        known = self._placed.get((kind, name))
        if known is None:
            known = self._placed[kind, name] = next(
                token for token in self._tokens(kind, name) if all(map(_same_partition(name, token), self.partitions))
            )
        return known

    def _tokens(self, kind: str, name: str) -> Iterator[str]:
        """Yield names for a name that a coordinator's partition follows from; those of one application differ in numbers alone, too."""
        pattern = name_pattern(name)
        numbers = pattern.count(_NUMBER)
        for salt in count():
            formed = in_form(name, kind, salt, self._digest) if kind == _TRANSACTIONAL else None
            if formed is not None:
                yield formed
                continue
            letters = letters_of(self._digest(pattern if numbers else f"{name} {salt}"))
            counters = (self._digest(f"{name} {salt} {number}")[:_DIGITS] for number in range(numbers))
            yield "-".join([kind, letters, *(str(int(counter, 16)) for counter in counters)])

    def _digest(self, name: str) -> str:
        return self.digest(name.encode(errors="surrogateescape")).hex()

    def _component(self, name: str) -> str:
        """Return what stands for a directory or a file in a path."""
        partition = parse_partition_name(name)
        if partition is not None:
            return self.topic(partition.topic) + name[len(partition.topic) :]
        known = name.removesuffix(f".{leftover_kind(name)}")
        if name in _LEFT or kind_by_name(known)[0] is not UNKNOWN or name == "00000000000000000000":
            return name
        return self._token("path", name.removesuffix("!")) + ("!" if name.endswith("!") else "")

    def _learn_path(self, path: str, *, relative: bool = False) -> None:
        if path in _LEFT or " and " in path or path.startswith("--"):
            return
        parts = path.rpartition("://")[2].split("/")
        self._components |= {part for part in parts if self._component(part) != part}
        self._names.setdefault(path, self._relative(path) if relative else self.path(path))
        if self._component(parts[-1]) != parts[-1]:
            self._names.setdefault(parts[-1], self._component(parts[-1]))

    def _learn(self, text: str, field: str) -> None:
        kind = _KINDS.get(field)
        if kind is not None and text and text not in _INTERNAL:
            self._names[text] = self._token(kind, text)
            if kind == _TRANSACTIONAL:
                self._names[name_pattern(text)] = name_pattern(self._token(kind, text))
        elif field in _PATHS and "/" in text:
            self._learn_path(text, relative=field in _RELATIVE)

    def _walk(self, value: object, field: str) -> None:
        if isinstance(value, str):
            self._learn(value, field)
        elif isinstance(value, Struct):
            if isinstance(value, Finding) and value.topic is not None:
                self._names[value.fingerprint] = replace(value, topic=self.topic(value.topic)).fingerprint
            for name in value.__struct_fields__:
                self._walk(getattr(value, name), name)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._walk(item, key if isinstance(key, str) else field)
        elif isinstance(value, Iterable) and not isinstance(value, Iterator | _WITHOUT_NAMES):
            for item in () if hasattr(value, "dtype") else value:
                self._walk(item, field)

    def _changed(self, value: object, field: str) -> object:
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, KnownBug | _WITHOUT_NAMES) or hasattr(value, "dtype"):
            return value
        if isinstance(value, Struct):
            return self._struct(value)
        return self._items(value, field) if isinstance(value, Iterable) else value

    def _items(self, value: Iterable[object], field: str) -> object:
        if isinstance(value, dict):
            return {self._key(key): self._changed(item, self._field(key, field)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            make: Callable[[Iterable[object]], object] = getattr(type(value), "_make", type(value))  # of a named tuple
            return make(self._changed(item, field) for item in value)
        return Changed(value, lambda item: self._changed(item, field))

    def _struct(self, value: Struct) -> Struct:
        changes: dict[str, object] = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            if name == "name" and isinstance(value, Finding):
                continue
            written = (name == "suppression" or isinstance(value, Expected)) and name in _WRITTEN and before
            after = _BY_TEAM if written else self._changed(before, name)
            if after is not before and after != before:
                changes[name] = after
        return replace(value, **changes) if changes else value

    def _key(self, key: object) -> object:
        return self._names.get(key, key) if isinstance(key, str) else key

    def _field(self, key: object, field: str) -> str:
        return key if isinstance(key, str) and key not in self._names else field

    def _string(self, text: str, field: str) -> str:
        kind = _KINDS.get(field)
        if kind is not None:
            return text if not text or text in _INTERNAL else self._token(kind, text)
        if field in _PRINTS:
            return self._names.get(text) or self._digest(text)[:_PRINT_DIGITS]
        if field in _CONSTANT:
            return text
        if field == _LOG_LINE:
            return redacted_line(self.text(text), lambda word: self._token("word", word))
        if field in _PATHS and "/" in text and " " not in text:
            return self._relative(text) if field in _RELATIVE else self.path(text)
        placed = _PLACE(text) if field == _SOURCE else None
        return self.text(text) if placed is None else self.path(placed["path"]) + placed["place"]


def _same_partition(name: str, token: str) -> Callable[[int], bool]:
    """Return whether two names lie in one partition of an internal topic, by the number of its partitions."""
    return lambda partitions: coordinator_partition(name, partitions) == coordinator_partition(token, partitions)
