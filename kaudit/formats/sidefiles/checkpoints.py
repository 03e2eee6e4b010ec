"""The text files of a log directory: offset and leader epoch checkpoints, meta.properties, partition.metadata, read and written.

Source of the formats: Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, MetaProperties (whose
file is a java.util.Properties), PartitionMetadataFile and CleanShutdownFileHandler.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Damage, ParsedRows, Reason, RowT, WireError
from kaudit.formats.java_properties import parse_properties
from kaudit.model.leader_epochs import EpochEntry

CHECKPOINT_VERSION: Final = 0

_INTEGER: Final = re.compile(rb"[+-]?[0-9]{1,19}")
_INT32_BITS, _INT64_BITS = 32, 64
_META_VERSIONS: Final = (0, 1)
_TOPIC_ID: Final = re.compile(rb"[A-Za-z0-9_-]{22}")
_ZERO_TOPIC_ID: Final = b"A" * 22


class PartitionOffset(Struct, frozen=True):
    """One line of an offset checkpoint: `partition` 0..2^31-1 and `offset` as written, -2^63..2^63-1."""

    topic: str
    partition: int
    offset: int


OffsetCheckpoint = ParsedRows[PartitionOffset]
"""One of the four checkpoints of a log directory; without damage where a broker accepts it whole."""
LeaderEpochCheckpoint = ParsedRows[EpochEntry]
"""A partition's leader epochs. With damage, a broker fails the whole log directory at start."""


class MetaProperties(Struct, frozen=True):
    """meta.properties of one log directory; what the file does not say is None.

    `version` 0 (ZooKeeper mode: broker.id) or 1 (KRaft: node.id); `others` are its further keys, sorted.
    """

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None
    others: tuple[tuple[str, str], ...]


class PartitionMetadata(Struct, frozen=True):
    """partition.metadata (2.8+): `topic_id` as Kafka prints it, 22 characters of base64url."""

    version: int
    topic_id: str


class QuorumState(Struct, frozen=True):
    """quorum-state of a metadata log: `content` as JSON has it."""

    content: object


def parse_offset_checkpoint(data: Buffer) -> OffsetCheckpoint:
    """Read a recovery point, replication offset, log start offset or cleaner checkpoint. Never raises."""
    return _parse_rows(data, _partition_offset)


def parse_leader_epoch_checkpoint(data: Buffer) -> LeaderEpochCheckpoint:
    """Read a leader-epoch-checkpoint. Never raises; the order of epochs and offsets is not checked here."""
    return _parse_rows(data, _epoch_start)


def _parse_rows(data: Buffer, parse: Callable[[bytes], RowT]) -> ParsedRows[RowT]:
    """Read a version, a count and one row a line. A file of no bytes, as brokers create it, has no rows and no damage."""
    raw = bytes(data)
    lines = list(_lines(raw))
    if not lines:
        return ParsedRows((), ())
    start, line = lines[0]
    damage: list[Damage] = []
    try:
        _require_version(line, start)
    except WireError as error:
        # after an unknown version nothing can be read
        return ParsedRows((), (Damage(start, len(raw), Reason.VERSION, error.detail),))
    count: int | None = None
    if len(lines) == 1:
        damage.append(Damage(len(raw), len(raw), Reason.TRUNCATED, "the count of entries is missing"))
    else:
        start, line = lines[1]
        try:
            count = _integer(line, _INT32_BITS, "count")
        except WireError as error:
            damage.append(Damage(start, start + len(line), error.reason, error.detail))
    rows: list[RowT] = []
    for start, line in lines[2:]:
        try:
            rows.append(parse(line))
        except WireError as error:
            damage.append(Damage(start, start + len(line), error.reason, error.detail))
    found = max(len(lines) - 2, 0)
    if count is not None and count != found:
        damage.append(Damage(lines[1][0], len(raw), Reason.COUNT, f"{count} entries announced, {found} lines follow"))
    return ParsedRows(tuple(rows), tuple(damage))


def _lines(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """(start, line) as Java's BufferedReader splits them: at LF, CR LF or CR, no line after the last terminator."""
    start = 0
    for line in raw.splitlines(keepends=True):
        yield start, line.rstrip(b"\r\n")
        start += len(line)


def _integer(text: bytes, bits: int, what: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise WireError(0, Reason.TEXT, f"{what} {text[:40]!r} is not an integer")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise WireError(0, Reason.VALUE, f"{what} {value} is not an int{bits}")
    return value


def _require_version(text: bytes, start: int) -> int:
    version = _integer(text, _INT32_BITS, "version")
    if version != CHECKPOINT_VERSION:
        raise WireError(start, Reason.VERSION, f"version {version}, only {CHECKPOINT_VERSION} exists")
    return version


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError(0, Reason.TEXT, f"{what} {raw[:40]!r} is not UTF-8") from None


def _partition_offset(line: bytes) -> PartitionOffset:
    fields = line.split()
    if len(fields) != 3:
        raise WireError(0, Reason.TEXT, f"{line[:80]!r} is not topic, partition, offset")
    topic, partition, offset = fields
    return PartitionOffset(
        _text(topic, "topic"), _integer(partition, _INT32_BITS, "partition"), _integer(offset, _INT64_BITS, "offset")
    )


def _epoch_start(line: bytes) -> EpochEntry:
    fields = line.split()
    if len(fields) != 2:
        raise WireError(0, Reason.TEXT, f"{line[:80]!r} is not epoch, start offset")
    return EpochEntry(_integer(fields[0], _INT32_BITS, "epoch"), _integer(fields[1], _INT64_BITS, "start offset"))


def parse_meta_properties(data: Buffer) -> MetaProperties:
    """Read meta.properties. Raises WireError without a known version, or for ids that are not integers."""
    properties = parse_properties(bytes(data).decode("latin-1"))
    if "version" not in properties:
        raise WireError(0, Reason.TEXT, "no version property")
    version = _integer(properties.pop("version").encode(), _INT32_BITS, "version")
    if version not in _META_VERSIONS:
        raise WireError(0, Reason.VERSION, f"version {version}, known are {_META_VERSIONS}")
    # Both names occur in either version while a cluster migrates to KRaft; the version's own one counts.
    first, second = ("node.id", "broker.id") if version else ("broker.id", "node.id")
    node_id = properties.pop(first) if first in properties else properties.pop(second, None)
    return MetaProperties(
        version,
        None if node_id is None else _integer(node_id.encode(), _INT32_BITS, "node id"),
        properties.pop("cluster.id", None),
        properties.pop("directory.id", None),
        tuple(sorted(properties.items())),
    )


def parse_partition_metadata(data: Buffer) -> PartitionMetadata:
    """Read partition.metadata. Raises WireError unless it holds version 0 and a topic id that is not all zeros."""
    fields: dict[bytes, tuple[int, bytes]] = {}
    for start, line in _lines(bytes(data)):
        key, separator, value = line.partition(b": ")
        if not separator or key not in (b"version", b"topic_id") or key in fields:
            raise WireError(start, Reason.TEXT, f"unexpected line {line[:80]!r}")
        fields[key] = (start, value)
    if len(fields) != 2:
        raise WireError(len(data), Reason.TRUNCATED, f"version and topic_id expected, found {sorted(fields)}")
    start, value = fields[b"version"]
    version = _require_version(value, start)
    start, value = fields[b"topic_id"]
    if not _TOPIC_ID.fullmatch(value) or value == _ZERO_TOPIC_ID:
        raise WireError(start, Reason.VALUE, f"{value[:40]!r} is not a topic id")
    return PartitionMetadata(version, value.decode("ascii"))


def parse_clean_shutdown(data: Buffer) -> int | None:
    """Read .kafka_cleanshutdown: the broker epoch written into it (3.7+), None where it is empty, as before.

    Raises WireError for anything else; a broker then treats the shutdown as clean all the same.
    """
    raw = bytes(data)
    if not raw.strip():
        return None
    content = _json(raw)
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    if type(epoch) is not int or not -(2**63) <= epoch < 2**63:
        raise WireError(0, Reason.VALUE, f"no brokerEpoch in {raw[:40]!r}")
    return epoch


def parse_quorum_state(data: Buffer) -> QuorumState:
    """Read the state of a KRaft voter. Raises WireError unless it is JSON."""
    return QuorumState(_json(bytes(data)))


def _json(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise WireError(0, Reason.TEXT, f"{raw[:40]!r} is not JSON") from None


def offset_checkpoint(rows: Collection[PartitionOffset]) -> str:
    """Return a recovery point, replication offset, log start offset or cleaner checkpoint."""
    return _checkpoint([f"{row.topic} {row.partition} {row.offset}" for row in rows])


def leader_epoch_checkpoint(rows: Collection[EpochEntry]) -> str:
    """Return a leader-epoch-checkpoint."""
    return _checkpoint([f"{row.epoch} {row.start_offset}" for row in rows])


def _checkpoint(lines: Collection[str]) -> str:
    return "\n".join([str(CHECKPOINT_VERSION), str(len(lines)), *lines, ""])


def partition_metadata(metadata: PartitionMetadata) -> str:
    """Return a partition.metadata, whose last line has no end."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}"


def meta_properties(properties: MetaProperties, comment: str = "") -> str:
    """Return a meta.properties; what is None is left out. `comment` is one line of ASCII."""
    node = "node.id" if properties.version else "broker.id"
    known = (
        ("version", properties.version),
        (node, properties.node_id),
        ("cluster.id", properties.cluster_id),
        ("directory.id", properties.directory_id),
        *properties.others,
    )
    return "".join([f"#{comment}\n", *(f"{name}={value}\n" for name, value in known if value is not None)])
