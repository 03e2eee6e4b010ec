"""Parts of the rows of `kaudit inspect`: values, bytes as text, and the file of a row."""

import enum
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kaudit.source.content import HEAD_BYTES, Content
from kaudit.source.file_kinds import (
    APPLICATION_LOG,
    DUMP,
    SEGMENT,
    UNKNOWN,
    FileKind,
    PartitionName,
    kind_by_name,
    leftover_kind,
    parse_partition_name,
)
from kaudit.source.layout import FetchedRange
from kaudit.source.recognition import recognise
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

Row = dict[str, object]
"""One row: JSON-ready values, `row` names its kind (docs/columns.md)."""


def null(value: int | None) -> int | None:
    """Return None for -1, Kafka's mark for a field without a value."""
    return None if value == -1 else value


def fields_of(entry: object, names: Iterable[str], or_null: Iterable[str] = ()) -> Row:
    """Return the attributes of `entry` under their own names; those of `or_null` are None where they are -1."""
    return {name: getattr(entry, name) for name in names} | {name: null(getattr(entry, name)) for name in or_null}


class BytesForm(enum.Enum):
    """How to show bytes: `auto` is text where it is UTF-8, else hex; `utf8` replaces invalid bytes."""

    AUTO = "auto"
    HEX = "hex"
    UTF8 = "utf8"


class BytesFormatter(Struct, frozen=True):
    """Shows bytes. `limit`: bytes shown of each key, value and header, None for all of them."""

    form: BytesForm = BytesForm.AUTO
    limit: int | None = None

    def show(self, data: bytes | None) -> dict[str, object] | None:
        """`text` and its `encoding` (utf8 or hex), the `size` in bytes of all of it, and whether it was `truncated`."""
        if data is None:
            return None
        truncated = self.limit is not None and len(data) > self.limit
        shown = data[: self.limit] if truncated else data
        text, encoding = self._text(shown, truncated=truncated)
        return {"text": text, "encoding": encoding, "size": len(data), "truncated": truncated}

    def _text(self, shown: bytes, *, truncated: bool) -> tuple[str, str]:
        if self.form is BytesForm.HEX:
            return shown.hex(), "hex"
        if self.form is BytesForm.UTF8:
            return shown.decode("utf-8", "replace"), "utf8"
        try:
            return shown.decode("utf-8"), "utf8"
        except UnicodeDecodeError as error:
            if truncated and error.reason == "unexpected end of data":
                return shown[: error.start].decode("utf-8"), "utf8"  # the limit cut a character
            return shown.hex(), "hex"


class LogFile(Struct, frozen=True):
    """A file and the partition it belongs to: None where its directory is not named after a partition.

    `base_offset` is of the segment the file belongs to, from its name; `segment` that segment's `.log`. `leftover` is
    the suffix a broker gave it: deleted, cleaned or swap.
    """

    path: Uri
    kind: FileKind
    topic: str | None = None
    partition: int | None = None
    replica: str | None = None
    base_offset: int | None = None
    leftover: str | None = None
    fetched: FetchedRange | None = None
    """Brokers send the batches: there is no file."""

    @property
    def segment(self) -> str | None:
        """File name of the segment; for batches in a file of another name that name."""
        if self.base_offset is not None:
            return f"{self.base_offset:020d}.log"
        return self.path.name if self.kind.holds_batches else None

    def row(self, kind: str, /, **fields: object) -> Row:
        """Return a row of what lies in this file, of its kind and with these fields."""
        place = {"topic": self.topic, "partition": self.partition, "replica": self.replica, "segment": self.segment}
        return {"row": kind, **place, **fields}

    def side_row(self, kind: str, /, **fields: object) -> Row:
        """Return such a row with the file's own name, which `segment` does not have."""
        return self.row(kind, file=self.path.name, **fields)

    def named(self, topic: str | None, partition: int | None) -> "LogFile":
        """Return the same file under the topic and partition that the user names."""
        return replace(
            self,
            topic=self.topic if topic is None else topic,
            partition=self.partition if partition is None else partition,
        )


def identify(path: Uri, replica: str | None = None) -> LogFile:
    """Identify a file: by its name, else by its first bytes. Raises OSError when those cannot be read."""
    file = identify_by_name(path, replica)
    return file if file.kind is not UNKNOWN else replace(file, kind=_kind_of_bytes(path))


def identify_by_name(path: Uri, replica: str | None = None) -> LogFile:
    """Identify a file by its name alone; nothing is opened."""
    directory = path.absolute().parent
    parsed = _partition_of(directory)
    leftover = leftover_kind(path.name)
    kind, base_offset = kind_by_name(path.name if leftover is None else path.name.removesuffix(f".{leftover}"))
    if parsed is None:
        return LogFile(path, kind, None, None, None, base_offset, leftover)
    replica = directory.parent.name if replica is None else replica
    return LogFile(path, kind, parsed.topic, parsed.partition, replica, base_offset, leftover)


@lru_cache(maxsize=16)
def _partition_of(directory: Uri) -> PartitionName | None:
    """Kept for the next file of the directory: there may be tens of thousands."""
    return parse_partition_name(directory.name)


_KINDS = {
    Content.SEGMENT: SEGMENT,
    Content.DUMP_TEXT: DUMP,
    Content.APPLICATION_LOG: APPLICATION_LOG,
}


def _kind_of_bytes(path: Uri) -> FileKind:
    return _KINDS.get(recognise(path.name, filesystem(path).read_start(path, HEAD_BYTES)).content, UNKNOWN)
