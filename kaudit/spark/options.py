"""Options of the data sources, as text, and of the functions of `kaudit.spark`, as Python values: those of an audit, and of reading.

Options of an audit and of comparisons are those that kaudit/scanning declares, with their types, under the names that `kaudit.scan` has.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar, get_args, get_origin

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import fields

from kaudit.errors import UsageError, suggestion
from kaudit.scanning.comparison_options import LedgerOptions, RecordOptions, ReplicaOptions
from kaudit.scanning.options import DECLARED, ScanOptions, scan_options_of
from kaudit.source.option import DeclaredField, declared_fields, milliseconds, parse_time
from kaudit.source.uri import Uri, UrlError

_Compared = TypeVar("_Compared", bound=Struct)
Time = datetime | str | int
"""A time: without a zone it is UTC; a number is ms since 1970."""
Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]


class ReadOptions(Struct, frozen=True):
    """What to read: offsets and times (ms) are inclusive, None means unbounded; by name options of the audit and of comparisons.

    `partition_bytes`: bytes of segments that a task reads, about. `pushdown`: filters of Spark choose segments before they are
    read. `allow_incomplete`: what cannot be listed or read is left out, and no error.
    """

    paths: Sequence[str] = ()
    first_offset: int | None = None
    last_offset: int | None = None
    since: int | None = None
    until: int | None = None
    partition_bytes: int | None = None
    pushdown: bool = False
    allow_incomplete: bool = False
    audit: Mapping[str, Any] = field(default_factory=dict)
    compared: Mapping[str, Any] = field(default_factory=dict)

    def to_text(self) -> dict[str, str]:
        """Return the options of a data source."""
        own = {name: getattr(self, name) for name in _OWN}
        return {
            name: json.dumps(value)
            for name, value in {**own, **self.audit, **self.compared}.items()
            if value is not None and value is not False and value != ()
        }

    @property
    def origin(self) -> str:
        """What was read, as rows name it: the options as JSON, without those that leave out rows."""
        more = {"allow_incomplete": True} if self.allow_incomplete else {}
        return json.dumps({"paths": self.paths, **self.audit, **more})

    def scan_options(self, **audit: Any) -> ScanOptions:  # noqa: ANN401 - values of options
        """Return the options of an audit of what is read; `audit` are others, with the keywords of `kaudit.scan`."""
        return scan_options_of({"paths": self.paths, **self.audit, **audit})

    def compared_as(self, kind: type[_Compared]) -> _Compared:
        """Return how replicas or records are compared. Raises UsageError for a value that means nothing."""
        own: dict[str, Any] = {}
        for entry in declared_fields(kind):
            value, parse = self.compared.get(entry.keyword), entry.option.parse
            if value is not None:
                own[entry.path[-1]] = value if parse is None else parse(value, entry.keyword)
        return convert(own, kind)


_OWN: Mapping[str, Any] = {
    entry.name: entry.type for entry in fields(ReadOptions) if entry.name not in {"audit", "compared"}
}
_DECLARED = {entry.keyword: entry for entry in DECLARED.values() if entry.option.name != "jobs"}
_JUDGING = frozenset((
    "producer_ids", "since", "until", "broker_version", "now", "zookeeper", "blocks", "metadata", "server_logs",
    "client_logs", "state", "digests",
))  # fmt: skip
"""Options of how an audit goes about what was read. The others choose what is read."""
_COMPARISONS: Mapping[str, Sequence[DeclaredField]] = {
    table: tuple(declared_fields(kind))
    for table, kind in (("diff", ReplicaOptions), ("dedup", RecordOptions), ("ledger", LedgerOptions))
}
_COMPARING: Mapping[str, Any] = {
    "target": str,
    **{
        entry.keyword: entry.type if entry.option.parse is None else str
        for declared in _COMPARISONS.values()
        for entry in declared
    },
}
"""Options of comparisons, with their types."""
OPTIONS: Mapping[str, Any] = {
    **{name: entry.type for name, entry in _DECLARED.items()}, "compacted_topics": Sequence[str], **_OWN, **_COMPARING,
}  # fmt: skip
"""The type of every option."""
READING = frozenset(OPTIONS) - _JUDGING - frozenset(_COMPARING) | frozenset(_OWN)
"""Names of the options of `batches`, `records` and `runs`."""
AUDITING = frozenset(_JUDGING | {"allow_incomplete"})
"""Names of the options of `findings`, `timelines` and `producers` of rows that were read before."""
RESULTS = AUDITING | (READING - {"first_offset", "last_offset", "partition_bytes", "pushdown"})
"""Names of their options where they read themselves."""
_SHARED = READING - frozenset(_OWN) - {"require_all"} | {"allow_incomplete"}
COMPARED: Mapping[str, frozenset[str]] = {
    table: _SHARED | {entry.keyword for entry in declared} | ({"target"} if table == "ledger" else set())
    for table, declared in _COMPARISONS.items()
}
"""Names of the options of comparisons."""
_PATHS = frozenset(
    entry.keyword
    for entry in (*_DECLARED.values(), *chain.from_iterable(_COMPARISONS.values()))
    if entry.option.is_path
) | {"target"}
_TIMES = ("since", "until", "now", "from_time", "to_time")


def hint(name: str) -> Any:  # noqa: ANN401 - a type
    """Return the type of the Python values of an option, by which type checkers know it: kaudit/spark/__init__.pyi."""
    kind = OPTIONS[name]
    if name in _TIMES:
        return Time | None
    if name in _PATHS:
        return (Paths if get_origin(kind) is Sequence else Path) | None
    return (kind | str if hasattr(kind, "__members__") else kind) | None


def read_options(given: Mapping[str, Any], known: frozenset[str] = READING) -> ReadOptions:
    """Check options, each a Python value or the text of one, as JSON or as people write it: `orders,payments`.

    `path`, which load() gives, is one more of `paths`.

    Raises:
        UsageError: an option is not `known`, or its value is none.

    """
    values: dict[str, Any] = {}
    for asked, value in given.items():
        name = asked.lower()
        if name == "path":
            values["paths"] = [str(value), *values.get("paths", ())]
        elif name == "paths":
            values["paths"] = [*values.get("paths", ()), *_value(name, value)]
        elif value is not None:
            name = checked_name(asked, known)
            values[name] = _value(name, value)
    for name in _PATHS & values.keys():
        several = not isinstance(values[name], str)
        values[name] = absolute(values[name]) if several else absolute([values[name]])[0]
    values |= {name: [*map(_absolute_schema, values[name])] for name in ("schemas", "key_schemas") if name in values}
    values["paths"] = absolute(values.get("paths", ()))
    if not values["paths"] and "remote" not in values:
        raise UsageError('nothing to read: give a path or URL, as in .load("hdfs://name-node/kafka-logs")')
    own = {name: value for name, value in values.items() if name in _OWN}
    compared = {name: value for name, value in values.items() if name in _COMPARING}
    audit = {name: value for name, value in values.items() if name not in own and name not in compared}
    options = ReadOptions(**own, audit=audit, compared=compared)
    try:
        options.scan_options()
        options.compared_as(LedgerOptions)
    except UsageError as error:
        raise UsageError(f"option {error}") from None
    return options


def checked_name(asked: str, known: frozenset[str]) -> str:
    """Return the name of an option, in lower case. Raises UsageError where it is not `known`."""
    name = asked.lower()
    if name in known:
        return name
    if name not in OPTIONS:
        raise UsageError(f"option {asked}: there is none{suggestion(name, sorted(known))}")
    if name in _COMPARING or known in COMPARED.values():
        having = [table for table, names in COMPARED.items() if name in names]
        raise UsageError(
            f"option {asked}: "
            + (f"only {' and '.join(having)} have it" if name in _COMPARING else "comparisons do not have it")
        )
    if known is AUDITING:
        raise UsageError(f"{asked}: given where the log is read, in batches() or runs()")
    where = "findings, timelines and producers" if name in _JUDGING else "batches, records and runs"
    raise UsageError(f"option {asked}: only {where} have it")


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - of the option's type
    kind = OPTIONS[name]
    many = get_origin(kind) is Sequence
    if isinstance(value, str) and (many or value[:1] == '"'):
        try:
            value = json.loads(value)
        except ValueError:
            value = value.split(",")
    if many:
        several = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        value = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in several]
        value = list(map(str, value)) if get_args(kind)[0] is str else value
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        if name in _TIMES:
            return time_ms(int(value) if isinstance(value, str) and value.isdecimal() else value)
        typed = convert(value.lower() if kind is bool and isinstance(value, str) else value, kind, strict=False)
        return tuple(typed) if many else getattr(typed, "value", typed)
    except (UsageError, ValidationError, ValueError, TypeError):
        what = "a time" if name in _TIMES else "a valid value"
        raise UsageError(f"option {name} {value}: not {what}{_choices(kind)}") from None


def _choices(kind: Any) -> str:  # noqa: ANN401 - a type
    if not hasattr(kind, "__members__"):
        return ""
    *others, last = (each.value for each in kind)
    return f": {', '.join(others)} or {last}"


def time_ms(time: Time | None) -> int | None:
    """Return a time as ms since 1970.

    Raises:
        UsageError: a text is not RFC 3339.
        TypeError: it is neither a time nor a text.

    """
    if time is None or (isinstance(time, int) and not isinstance(time, bool)):
        return time
    if isinstance(time, datetime):
        return milliseconds(time)
    if isinstance(time, str):
        return parse_time(time, "time")
    raise TypeError


def absolute(paths: Sequence[str]) -> tuple[str, ...]:
    """Make local paths absolute: tasks have working directories of their own.

    Raises:
        UsageError: a URL is malformed.

    """
    try:
        return tuple(os.path.abspath(path) if _is_relative(path) else path for path in paths)  # noqa: PTH100 - keeps URLs' text
    except UrlError as error:
        raise UsageError(str(error)) from error


def _absolute_schema(text: str) -> str:
    number, equals, file = text.partition("=")
    return f"{number}={absolute([file])[0]}" if equals and number.isdecimal() else absolute([text])[0]


def _is_relative(path: str) -> bool:
    return Uri.parse(path).is_local and "://" not in path and not os.path.isabs(path)  # noqa: PTH117 - a text


def merged(origins: Sequence[ReadOptions]) -> ReadOptions:
    """Return the options by which all that several say is read: as if all paths had been given at once.

    Raises:
        UsageError: they say different things about what is read.

    """
    first = origins[0]
    audit = dict(first.audit)
    for name in {name for origin in origins for name in origin.audit}:
        values: list[Any] = [origin.audit.get(name) for origin in origins]
        if name in {"topics", "partitions"}:
            audit[name] = tuple(sorted(set().union(*values))) if None not in values else None
        elif any(value != values[0] for value in values):
            raise UsageError(
                f"these rows were read with different values of {name}: give all paths to one batches() or runs()"
            )
    paths = tuple(dict.fromkeys(path for origin in origins for path in origin.paths))
    incomplete = any(origin.allow_incomplete for origin in origins)
    known = {name: value for name, value in audit.items() if value is not None}
    return ReadOptions(paths=paths, audit=known, allow_incomplete=incomplete)
