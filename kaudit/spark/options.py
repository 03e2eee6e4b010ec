"""Options of the data sources, as text, and of the functions of `kaudit.spark`, as Python values."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from kaudit.errors import UsageError, suggestion
from kaudit.scanning.options import Depth, ScanOptions, scan_options_of
from kaudit.source.uri import Uri, UrlError

Time = datetime | str | int
"""A time: without a zone it is UTC; a number is ms since 1970."""


class ReadOptions(Struct, frozen=True):
    """What to read: `paths` as `kaudit scan` takes them; offsets and times (ms) are inclusive, None means unbounded.

    `partition_bytes`: bytes of segments that a task reads, about. `cut`: tasks may read parts of segments. `pushdown`: filters
    of Spark choose segments before they are read. `digests`: chunks have what digests of their batches need.
    `allow_incomplete`: what cannot be listed or read is left out, and no error.
    """

    paths: Sequence[str] = ()
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    first_offset: int | None = None
    last_offset: int | None = None
    since: int | None = None
    until: int | None = None
    depth: str = Depth.CRC.value
    log_start_offset: int | None = None
    compacted_topics: Sequence[str] = ()
    command_config: str | None = None
    remote: str | None = None
    remote_keys: Sequence[str] = ()
    partition_bytes: int | None = None
    cut: bool = False
    pushdown: bool = False
    digests: bool = False
    allow_incomplete: bool = False

    def to_text(self) -> dict[str, str]:
        """Return the options of a data source."""
        return {
            name: json.dumps(value)
            for name in self.__struct_fields__
            if (value := getattr(self, name)) not in (None, ())
        }

    def scan_options(self, **audit: Any) -> ScanOptions:  # noqa: ANN401 - values of options
        """Return the options of an audit of what is read; `audit` are others, with the keywords of `kaudit.scan`."""
        own = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _OF_READING}
        return scan_options_of({**own, **audit})


_OF_READING = (
    "first_offset",
    "last_offset",
    "since",
    "until",
    "partition_bytes",
    "cut",
    "pushdown",
    "allow_incomplete",
)
"""Options of reading. The others set the fields of ScanOptions with their names."""
_NAMES = ReadOptions.__struct_fields__
_TEXTS = ("paths", "topics", "compacted_topics", "remote_keys")
_NUMBERS = ("partitions",)
_TIMES = ("since", "until")
_FLAGS = ("cut", "pushdown", "digests", "allow_incomplete")
_PLAIN = ("depth", "command_config", "remote")


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read the options of a data source, as JSON or as people write them: `topics` is `orders,payments` or a JSON list.

    `path`, which load() gives, is one more of `paths`.

    Raises:
        UsageError: an option is not known, or its value is none.

    """
    given: dict[str, Any] = {}
    paths = [str(options["path"])] if "path" in options else []
    for name, text in options.items():
        known = next((entry for entry in _NAMES if entry == name.lower()), None)
        if known is not None:
            given[known] = _value(known, str(text))
        elif name.lower() != "path":
            raise UsageError(f"option {name}: there is none{suggestion(name.lower(), _NAMES)}")
    given["paths"] = absolute([*paths, *given.get("paths", ())])
    given["remote_keys"] = absolute(given.get("remote_keys", ()))
    if given.get("remote") is not None:
        (given["remote"],) = absolute([given["remote"]])
    if not given["paths"] and given.get("remote") is None:
        raise UsageError('nothing to read: give a path or URL, as in .load("hdfs://name-node/kafka-logs")')
    if given.get("depth", Depth.CRC.value) not in {depth.value for depth in Depth}:
        raise UsageError(f"option depth {given['depth']}: headers, crc or records")
    return ReadOptions(**given)


def _value(name: str, text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        value = text.split(",") if name in (*_TEXTS, *_NUMBERS) else text
    if name in _PLAIN and isinstance(value, str):
        return value
    if name in _TEXTS:
        return tuple(map(str, value if isinstance(value, list) else [value]))
    try:
        if name in _TIMES:
            return time_ms(value)
        if name in _FLAGS:
            return {"true": True, "false": False}[str(value).lower()]
        if name in _NUMBERS:
            return tuple(map(int, value if isinstance(value, list) else [value]))
        return int(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"option {name} {text}: not a {'time' if name in _TIMES else 'valid value'}") from None


def time_ms(time: Time | None) -> int | None:
    """Return a time as ms since 1970.

    Raises:
        ValueError: a text is not RFC 3339.

    """
    if time is None or isinstance(time, int):
        return time
    parsed = datetime.fromisoformat(time) if isinstance(time, str) else time
    parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
    return round(parsed.timestamp() * 1000)


def absolute(paths: Sequence[str]) -> tuple[str, ...]:
    """Make local paths absolute: tasks have working directories of their own.

    Raises:
        UsageError: a URL is malformed.

    """
    try:
        return tuple(os.path.abspath(path) if _is_relative(path) else path for path in paths)  # noqa: PTH100 - keeps URLs' text
    except UrlError as error:
        raise UsageError(str(error)) from error


def _is_relative(path: str) -> bool:
    return Uri.parse(path).is_local and "://" not in path and not os.path.isabs(path)  # noqa: PTH117 - a text
