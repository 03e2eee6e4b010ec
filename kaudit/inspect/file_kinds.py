"""The kind of a file, and the partition it belongs to (LogFileUtils and the checkpoint classes of Apache Kafka)."""

import enum
import re
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.dump_text.text import looks_like_dump
from kaudit.formats.log.batch_header import LOG_OVERHEAD, MAGIC_OFFSET, PREFIX_SIZE, batch_size, plausible_length
from kaudit.formats.sidefiles.checkpoints import OFFSET_CHECKPOINT_NAMES
from kaudit.inspect.rows import Row
from kaudit.source.layout import FetchedRange
from kaudit.source.names import PartitionName, leftover_kind, parse_partition_name
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri


class FileKind(enum.Enum):
    """The formats kaudit decodes, and `unknown`."""

    SEGMENT = "segment"
    INDEX = "index"
    TIMEINDEX = "timeindex"
    TXNINDEX = "txnindex"
    SNAPSHOT = "snapshot"
    METADATA_SNAPSHOT = "metadata_snapshot"
    CHECKPOINT = "checkpoint"
    LEADER_EPOCH = "leader_epoch"
    META_PROPERTIES = "meta_properties"
    PARTITION_METADATA = "partition_metadata"
    CLEAN_SHUTDOWN = "clean_shutdown"
    QUORUM_STATE = "quorum_state"
    DUMP = "dump"
    UNKNOWN = "unknown"

    @property
    def holds_batches(self) -> bool:
        """Whether the file is a sequence of record batches."""
        return self in (FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT)


_BASE = re.compile(r"(?P<base>[0-9]{20})\.(?P<suffix>log|index|timeindex|txnindex|snapshot)")
_METADATA_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint|bootstrap\.checkpoint")
_BY_SUFFIX = {
    "log": FileKind.SEGMENT,
    "index": FileKind.INDEX,
    "timeindex": FileKind.TIMEINDEX,
    "txnindex": FileKind.TXNINDEX,
    "snapshot": FileKind.SNAPSHOT,
}
_BY_NAME = {
    **dict.fromkeys(OFFSET_CHECKPOINT_NAMES, FileKind.CHECKPOINT),
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH,
    "meta.properties": FileKind.META_PROPERTIES,
    "partition.metadata": FileKind.PARTITION_METADATA,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    "quorum-state": FileKind.QUORUM_STATE,
}
_PROBE_BYTES = 65536


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
    """With it there is no file: brokers send the batches."""

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
        """The same place under the names the user gives it."""
        return replace(
            self,
            topic=self.topic if topic is None else topic,
            partition=self.partition if partition is None else partition,
        )


def identify(path: Uri, replica: str | None = None) -> LogFile:
    """Identify a file: by its name, else by its first bytes. Raises OSError when those cannot be read."""
    file = identify_by_name(path, replica)
    return file if file.kind is not FileKind.UNKNOWN else replace(file, kind=_kind_of_bytes(path))


def identify_by_name(path: Uri, replica: str | None = None) -> LogFile:
    """Identify a file by its name alone; nothing is opened."""
    directory = path.absolute().parent
    parsed = _partition_of(directory)
    leftover = leftover_kind(path.name)
    name = path.name if leftover is None else path.name.removesuffix(f".{leftover}")
    based = _BASE.fullmatch(name)
    base_offset = int(based["base"]) if based else None
    if based:
        kind = _BY_SUFFIX[based["suffix"]]
    elif _METADATA_SNAPSHOT.fullmatch(name):
        kind = FileKind.METADATA_SNAPSHOT
    else:
        kind = _BY_NAME.get(name, FileKind.UNKNOWN)
    if parsed is None:
        return LogFile(path, kind, None, None, None, base_offset, leftover)
    replica = directory.parent.name if replica is None else replica
    return LogFile(path, kind, parsed.topic, parsed.partition, replica, base_offset, leftover)


@lru_cache(maxsize=16)
def _partition_of(directory: Uri) -> PartitionName | None:
    """Kept for the next file of the directory: there may be tens of thousands."""
    return parse_partition_name(directory.name)


def _kind_of_bytes(path: Uri) -> FileKind:
    head = filesystem(path).read_start(path, _PROBE_BYTES)
    if len(head) >= PREFIX_SIZE and any(head[:PREFIX_SIZE]) and _starts_batch(head):
        return FileKind.SEGMENT
    return FileKind.DUMP if looks_like_dump(head) else FileKind.UNKNOWN


def _starts_batch(head: bytes) -> bool:
    """The top byte of a base offset below 2^56 is zero: text is not."""
    return head[0] == 0 and plausible_length(head[MAGIC_OFFSET], batch_size(head) - LOG_OVERHEAD)
