"""Kinds of files in a log directory, one row for each. Their names, parsers, audits and columns are derived from the rows.

A new kind of side file is a row in FILE_KINDS, a parser in `formats/sidefiles`, and the check that reports what is wrong with it.
What follows from the row:

- discovery takes files of its names for a broker's own (`is_known_file`) and hands them to the audit;
- `kaudit inspect` names the kind and shows `columns` of the parser's rows, the tables and docs/columns.md have these columns.
  Where rows need more than a copy of attributes, `inspect/side_files.py` has a function under the kind's name;
- tests/simulate/test_run_files.py demands that simulated brokers write it, or the reason why they do not;
- with `is_audited`, `audits/sidefiles/partition_files.py` reads it and yields UnparsableSideFile where it does not parse. A
  comparison with the log is a function under the kind's name there.

Names are those of LogDir, UnifiedLog, LogFileUtils and the checkpoint classes of Apache Kafka.
"""

import enum
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from kaudit.formats.sidefiles.checkpoints import (
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index, parse_transaction_index
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"
"""A directory of brokers with remote storage (RemoteIndexCache, KIP-405)."""
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CAPTURE_ACCOUNT: Final = "capture.json"
"""The account that `kaudit capture` writes beside the partitions."""
_LOCK: Final = ".lock"
"""Held by the broker that has the log directory open (LogManager.LOCK_FILE_NAME)."""


class Scope(enum.Enum):
    """Whether a file belongs to a segment, a partition or a log directory; the first two lie in the partition's directory."""

    SEGMENT = "segment"
    PARTITION = "partition"
    LOG_DIRECTORY = "log directory"


class FileKind(Struct, frozen=True):
    """A kind of file. Its files are called `names`, or by a base offset of 20 digits and `.suffix`, or match `pattern`.

    `parse` takes the whole file. It returns the one row, or an object whose `rows` are the rows and whose `damage` lists what gave
    none; it may raise WireError. `columns` are attributes of a row, and the columns of `kaudit inspect` beyond those of every side
    file. `replaced`: brokers write the file anew as NAME.tmp and rename that.
    """

    name: str
    scope: Scope | None = None
    suffix: str | None = None
    names: tuple[str, ...] = ()
    pattern: str | None = None
    parse: Callable[[bytes], object] | None = None
    columns: tuple[str, ...] = ()
    replaced: bool = False
    holds_batches: bool = False
    """The file is a sequence of record batches."""
    is_audited: bool = False
    """A scan reads the file of a partition and reports where it does not parse."""


SEGMENT: Final = FileKind("segment", Scope.SEGMENT, suffix="log", holds_batches=True)
OFFSET_CHECKPOINT: Final = FileKind(
    "checkpoint",
    Scope.LOG_DIRECTORY,
    names=(CLEANER_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT),
    parse=parse_offset_checkpoint,
    columns=("topic", "partition", "offset"),
)
LEADER_EPOCHS: Final = FileKind(
    "leader_epoch",
    Scope.PARTITION,
    names=(LEADER_EPOCH_CHECKPOINT,),
    parse=parse_leader_epoch_checkpoint,
    columns=("leader_epoch", "offset"),
    replaced=True,
    is_audited=True,
)
DUMP: Final = FileKind("dump")
"""A text of kafka-dump-log, recognised by its first bytes."""
APPLICATION_LOG: Final = FileKind("application_log")
"""A log of a broker or of an application with a Kafka client, recognised by its first bytes."""
UNKNOWN: Final = FileKind("unknown")

FILE_KINDS: Final = (
    SEGMENT,
    FileKind(
        "index",
        Scope.SEGMENT,
        suffix="index",
        parse=parse_offset_index,
        columns=("offset", "relative_offset", "log_position"),
        replaced=True,
    ),
    FileKind(
        "timeindex",
        Scope.SEGMENT,
        suffix="timeindex",
        parse=parse_time_index,
        columns=("timestamp", "offset", "relative_offset"),
        replaced=True,
    ),
    FileKind(
        "txnindex",
        Scope.SEGMENT,
        suffix="txnindex",
        parse=parse_transaction_index,
        columns=("producer_id", "first_offset", "last_offset", "last_stable_offset"),
        replaced=True,
    ),
    FileKind(
        "snapshot",
        Scope.PARTITION,
        suffix="snapshot",
        parse=parse_producer_snapshot,
        columns=(
            "snapshot_offset", "producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta",
            "timestamp", "coordinator_epoch", "current_txn_start_offset",
        ),
        replaced=True,
    ),
    FileKind(
        "metadata_snapshot",
        Scope.PARTITION,
        pattern=r"[0-9]{20}-[0-9]{10}\.checkpoint|bootstrap\.checkpoint",
        holds_batches=True,
    ),
    OFFSET_CHECKPOINT,
    LEADER_EPOCHS,
    FileKind(
        "meta_properties",
        Scope.LOG_DIRECTORY,
        names=(META_PROPERTIES,),
        parse=parse_meta_properties,
        columns=("version", "node_id", "cluster_id", "directory_id"),
    ),
    FileKind(
        "partition_metadata",
        Scope.PARTITION,
        names=(PARTITION_METADATA,),
        parse=parse_partition_metadata,
        columns=("version", "topic_id"),
        replaced=True,
    ),
    FileKind(
        "clean_shutdown",
        Scope.LOG_DIRECTORY,
        names=(CLEAN_SHUTDOWN,),
        parse=parse_clean_shutdown,
        columns=("broker_epoch",),
    ),
    FileKind("quorum_state", Scope.PARTITION, names=("quorum-state",), parse=parse_quorum_state, replaced=True),
)  # fmt: skip
OFFSET_CHECKPOINT_NAMES: Final = frozenset(OFFSET_CHECKPOINT.names)

_BY_SUFFIX: Final[Mapping[str, FileKind]] = {kind.suffix: kind for kind in FILE_KINDS if kind.suffix is not None}
_BY_NAME: Final[Mapping[str, FileKind]] = {name: kind for kind in FILE_KINDS for name in kind.names}
_BY_PATTERN: Final = tuple((re.compile(kind.pattern), kind) for kind in FILE_KINDS if kind.pattern is not None)
_BASED: Final = re.compile(rf"[0-9]{{20}}\.({'|'.join(_BY_SUFFIX)})")
_OTHER_KNOWN: Final = (
    re.escape(CLEAN_SHUTDOWN),
    "remote_log_snapshot",
    r".*\.checkpoint(\.part|\.deleted)?",
    r"[0-9]{1,19}_[\w-]{22}\.(index|timeindex|txnindex)(\.deleted|\.tmp)?",
)
"""Names that also occur in a partition's directory, and names of files that kaudit does not read, as those of RemoteIndexCache."""


def _known_names() -> re.Pattern[str]:
    """Return what matches the names of files that a broker keeps in a partition's directory."""
    found = [rf"[0-9]{{20}}(-[0-9]{{10}})?\.({'|'.join(_BY_SUFFIX)})"]
    for kind in FILE_KINDS:
        if kind.scope is not Scope.LOG_DIRECTORY:
            own = [re.escape(name) for name in kind.names]
            found += own
            if kind.replaced:
                found += [
                    rf"{name}\.tmp" for name in (*own, *([rf"[0-9]{{20}}\.{kind.suffix}"] if kind.suffix else ()))
                ]
    return re.compile("|".join([*found, *_OTHER_KNOWN]))


_KNOWN_FILE: Final = _known_names()
LEFTOVER_SUFFIXES: Final = (".deleted", ".cleaned", ".swap")
_PARTITION: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")
# the broker names these with a 32-digit UUID; -stray has had none in some releases
_MOVED: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})(\.[0-9a-f]{32})?-(?P<kind>future|delete|stray)"
)
_COPIED: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249}?)-(?P<partition>0|[1-9][0-9]{0,9})[.~ (](?![0-9]{1,5}(?![0-9])).*"
)
"""What a copy may have after the name: `.bak`, ` (copy)`, `.20240229`; a few digits are a version, as in `kafka-2.8`."""
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")


class PartitionName(Struct, frozen=True):
    """Topic and partition that a directory's path names.

    `moved` is `future`, `delete` or `stray` for a directory that a broker put aside; `replica` is empty where no --layout names it.
    """

    topic: str
    partition: int
    moved: str | None = None
    replica: str = ""


def parse_partition_name(name: str) -> PartitionName | None:
    """Read a partition directory's name; topics may hold dashes and dots. None for any other name."""
    moved = _MOVED.fullmatch(name)
    if moved:
        return PartitionName(moved["topic"], int(moved["partition"]), moved["kind"])
    plain = _PARTITION.fullmatch(name)
    if plain and plain["topic"] not in (".", ".."):
        return PartitionName(plain["topic"], int(plain["partition"]))
    return None


def copied_partition_name(name: str) -> PartitionName:
    """Read the name of a directory that someone called otherwise, such as `orders-3.bak`: whatever it is called may be the topic."""
    copied = _COPIED.fullmatch(name)
    return PartitionName(name, 0) if copied is None else PartitionName(copied["topic"], int(copied["partition"]))


def segment_base_offset(name: str) -> int | None:
    """Base offset of a segment's file name, None for any other name."""
    return int(name[:20]) if _SEGMENT.fullmatch(name) else None


def leftover_kind(name: str) -> str | None:
    """`deleted`, `cleaned` or `swap` for a file a broker left behind, else None."""
    for suffix in LEFTOVER_SUFFIXES:
        if name.endswith(suffix):
            return suffix[1:]
    return None


def is_known_file(name: str) -> bool:
    """Return whether a broker keeps a file of this name in a partition directory."""
    return _KNOWN_FILE.fullmatch(name) is not None


def is_broker_file(name: str) -> bool:
    """Return whether a broker, or kaudit's capture, keeps a file of this name in a log directory or in a partition's."""
    known = is_known_file(name) or kind_by_name(name)[0] is not UNKNOWN
    return known or leftover_kind(name) is not None or name in {CAPTURE_ACCOUNT, _LOCK}


def kind_by_name(name: str) -> tuple[FileKind, int | None]:
    """Return the kind of a file by its name, UNKNOWN for others, and the base offset in the name if it has one."""
    based = _BASED.fullmatch(name)
    if based:
        return _BY_SUFFIX[based[1]], int(name[:20])
    for pattern, kind in _BY_PATTERN:
        if pattern.fullmatch(name):
            return kind, None
    return _BY_NAME.get(name, UNKNOWN), None


_WHAT_INSTEAD = (
    "records have lost their producer ids and sequences; give kaudit the segment files (.log) of the broker's log"
)
_DUMP_SUFFIXES: Mapping[str, str] = {
    ".parquet": "a Parquet file of records",
    ".avro": "an Avro file of records",
    ".orc": "an ORC file of records",
    ".json": "a JSON dump of records",
    ".jsonl": "a JSON dump of records",
    ".ndjson": "a JSON dump of records",
    ".csv": "a CSV dump of records",
}
_DUMP_MAGICS: Mapping[re.Pattern[bytes], str] = {
    re.compile(rb"PAR1"): "a Parquet file of records",
    re.compile(rb"Obj\x01"): "an Avro file of records",
    re.compile(rb"ORC"): "an ORC file of records",
    re.compile(rb"\s*(?:\{|\[\s*[\[{])\s*[\"}]"): "a JSON dump of records",
}
_COMPRESSIONS = (".gz", ".zst", ".bz2", ".snappy")


def describe_dump(name: str, prefix: bytes) -> str | None:
    """Return why a file that consumers or connectors wrote cannot be audited, by its name or first bytes; None for any other."""
    plain = name.lower()
    for compression in _COMPRESSIONS:
        plain = plain.removesuffix(compression)
    for suffix, kind in _DUMP_SUFFIXES.items():
        if plain.endswith(suffix):
            return f"{kind}: {_WHAT_INSTEAD}"
    for magic, kind in _DUMP_MAGICS.items():
        if magic.match(prefix):
            return f"{kind}: {_WHAT_INSTEAD}"
    return None
