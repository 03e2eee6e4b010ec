"""The layout of the input: log directories, partitions, segments, snapshots, and paths that were left out."""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.formats.plain_text.forms import PLAIN, TextForm
from kaudit.model.application_logs import Origin
from kaudit.model.limits import SNAPSHOTS
from kaudit.source.uri import Uri

CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", CLUSTER_METADATA, "__share_group_state"})
ALWAYS_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_PRODUCER_SNAPSHOT = re.compile(r"(\d{20})\.snapshot")
_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
"""End offset and epoch: Snapshots.SNAPSHOT_FILE (KIP-630)."""


class TextRange(Struct, frozen=True):
    """The lines of one segment in a text of kafka-dump-log: bytes `start` to `end` (exclusive), after `lines_before` other lines."""

    start: int
    end: int
    lines_before: int = 0
    form: TextForm = PLAIN
    """With another form the bytes are those of the plain text that is made of the file."""


class FetchedRange(Struct, frozen=True):
    """Offsets of a partition that brokers send, from `first_offset`, a batch's first, to `end_offset` (exclusive).

    `readable_from` is the first offset a broker lets be asked for: the log start may lie inside the first batch. Below
    `stable_offset` a broker lists the aborted transactions with the batches.

    On the wire batches have offsets and no positions, so positions stand for offsets: `bytes_per_offset` (about what the
    log has, at least 1) for each, which makes ranges of positions about as long as the batches in them. `servers` as in
    bootstrap.servers, `command_config` the path of a property file, `max_bytes_per_second` for one reading process.
    """

    servers: str
    topic: str
    partition: int
    first_offset: int
    readable_from: int
    end_offset: int
    stable_offset: int = 0
    bytes_per_offset: int = 1
    command_config: str | None = None
    max_bytes_per_second: int | None = None
    whole: bool = False
    """Whether every offset is in a batch: the topic is not compacted, as far as is known."""

    @property
    def size(self) -> int:
        """Number of positions."""
        return (self.end_offset - self.first_offset) * self.bytes_per_offset

    def position(self, offset: int) -> int:
        """Return the position that stands for an offset."""
        return (offset - self.first_offset) * self.bytes_per_offset

    def offset(self, position: int) -> int:
        """Return the first offset whose position is not below this one."""
        return self.first_offset - (-position // self.bytes_per_offset)


class SegmentFile(Struct, frozen=True):
    """One `.log` file: `path` opens it, `name` is its file name, `size` bytes as planned, `modified_ms` its mtime.

    With `text` the file at `path` is not a segment but a text that shows one: `name` is what the text calls it, `size`
    the bytes of text. With `fetched` there is no file: brokers send the batches, and `size` counts their positions.
    """

    path: str
    name: str
    base_offset: int
    size: int
    modified_ms: int
    text: TextRange | None = None
    fetched: FetchedRange | None = None
    deleted: bool = False
    """Retention deleted it after it was read: nothing can be compared with it."""
    is_cut: bool = False
    """It is read up to where the next segment begins, and its indexes are those of all of it."""
    key_files: Sequence[str] = ()
    """Files with private keys, one of which decrypts it if it is encrypted in remote storage."""


class SideFiles(Struct, frozen=True):
    """The files of one directory that are not segments, packed: about 45 bytes each, since there are two or three per segment.

    `prefix`: what their paths have in front of their names. `names` are joined by slashes; `numbers`: for each its size in
    bytes and its mtime in ms, int64 in this machine's order, as bytes.
    """

    prefix: str
    names: str
    numbers: bytes

    @classmethod
    def of(cls, files: Sequence[SegmentFile]) -> "SideFiles | tuple[()]":
        """Pack the files of one directory."""
        if not files:
            return ()
        numbers = array("q", (number for file in files for number in (file.size, file.modified_ms)))
        return cls(files[0].path.removesuffix(files[0].name), "/".join(file.name for file in files), numbers.tobytes())

    def __iter__(self) -> Iterator[SegmentFile]:
        """Unpack the files."""
        numbers = array("q")
        numbers.frombytes(self.numbers)
        for name, size, modified_ms in zip(self.names.split("/"), numbers[::2], numbers[1::2], strict=True):
            yield SegmentFile(self.prefix + name, name, 0, size, modified_ms)


class LeftoverFile(Struct, frozen=True):
    """A file or directory a broker leaves behind; `relative` to its input, `kind` its suffix or `odd-name`."""

    relative: str
    kind: str
    topic: str | None = None
    partition: int | None = None
    log_dir: str | None = None
    base_offset: int | None = None
    segment_missing: bool = False
    log: "PartitionDirectory | None" = None
    """The partition's log in a directory that a broker has set aside."""

    @property
    def name(self) -> str:
        """Its file name."""
        return self.relative.rsplit("/", 1)[-1]


class LogDirectoryIdentity(Struct, frozen=True):
    """The ids in a log directory's meta.properties; brokers write the cluster's since 2.4, the directory's since 3.7."""

    broker_id: int
    cluster_id: str | None = None
    directory_id: str | None = None

    @property
    def key(self) -> tuple[int, str] | None:
        """Key that copies of one log directory share, None where too little is known.

        Without a directory id all log directories of the broker share it.
        """
        either = self.directory_id or self.cluster_id
        return None if either is None else (self.broker_id, either)


class RemoteFault(Struct, frozen=True):
    """What is wrong with a file or an object of a segment in remote storage, `path`; `segment` is its index in its partition.

    `position` is a byte of the object, None where the whole is meant.
    """

    path: str
    detail: str
    position: int | None = None
    segment: int = 0


class PartitionDirectory(Struct, frozen=True):
    """One replica of one partition: its segments in offset order.

    `directory` is the path opened, `relative` the same relative to its input (empty for a lone segment file's own
    directory), `log_dir` the log directory that holds it as given. `log_start_offset` is None where no checkpoint
    says; `first_dirty_offset` likewise, from cleaner-offset-checkpoint.
    """

    topic: str
    partition: int
    replica: str
    log_dir: str
    directory: str
    relative: str
    segments: Sequence[SegmentFile]
    log_start_offset: int | None = None
    first_dirty_offset: int | None = None
    topic_id: str | None = None
    identity: LogDirectoryIdentity | None = None
    has_checkpoints: bool = False
    leftover_files: Sequence[LeftoverFile] = ()
    whole_directory: bool = True
    named: bool = True
    """False where no name gives topic and partition: those here are made up, and the user may give others."""
    side_files: SideFiles | Sequence[SegmentFile] = ()
    """Files with known names that are not segments, sorted by name."""
    checkpoints: Sequence[SegmentFile] = ()
    """The offset checkpoints of its log directory: the same objects for all its partitions."""
    is_tiered: bool | None = None
    """Whether segments are moved to remote storage, by its topic's configuration, else its broker's; None: not known."""
    is_captured: bool = False
    """Whether `kaudit capture` wrote it: its segments are not the broker's."""
    is_stopped: bool = False
    """The broker had been shut down, and not been started again, when its log directory was copied."""
    remote_segments: int = 0
    """How many of its segments, the first ones, are read from remote storage."""
    remote_faults: Sequence[RemoteFault] = ()
    """What names and sizes there show to be wrong, before the segments are read."""

    @property
    def name(self) -> str:
        """`topic-partition` as brokers print it."""
        return f"{self.topic}-{self.partition}"

    @property
    def bytes(self) -> int:
        """Size of its segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def start_offset(self) -> int:
        """The log start offset, as far as the checkpoint and the name of the first segment say."""
        return max([self.log_start_offset or 0, *(segment.base_offset for segment in self.segments[:1])])

    @property
    def first_readable_offset(self) -> int:
        """The first offset that consumers are given, which may be in remote storage."""
        return self.start_offset if self.log_start_offset is None or not self.is_tiered else self.log_start_offset

    @property
    def offsets_elsewhere(self) -> int:
        """How many offsets lie between the log start offset and the first segment, where all segments were given."""
        stated = self.log_start_offset
        if stated is None or not self.whole_directory or self.is_fetched or not self.segments:
            return 0
        return max(self.segments[0].base_offset - stated, 0)

    @property
    def is_fetched(self) -> bool:
        """Whether brokers send its batches: they have offsets, but neither files nor positions."""
        # brokers send all of a partition or nothing
        return bool(self.segments) and self.segments[0].fetched is not None


class Unreadable(Struct, frozen=True):
    """A path that could not be opened or listed. `vanished`: it existed, or was longer, when the input was listed."""

    path: str
    reason: str
    vanished: bool = False


EXPECTED = (
    "expected are log directories, partitions, segments, output of kafka-dump-log, or logs of brokers and Kafka clients"
)
"""What kaudit takes as input."""


class ApplicationLog(Struct, frozen=True):
    """A log of a broker or of an application with a Kafka client.

    `path` opens it, `name` is what reports call it: a compressed file is not called `FILE!`. `origins`: whose messages it may hold;
    more than one where its first bytes do not tell. `claimed`: the user says that it is one, and misses it where it is not understood.
    """

    path: str
    name: str
    origins: tuple[Origin, ...]
    claimed: bool = False


class FoundPartitions(Struct):
    """Partitions under some inputs, paths that could not be read or used, and the releases of brokers that were asked."""

    partitions: list[PartitionDirectory] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    skipped: list[Unreadable] = field(default_factory=list)
    broker_versions: set[str] = field(default_factory=set)

    def add(self, other: "FoundPartitions") -> None:
        """Add what was found under other inputs."""
        self.partitions += other.partitions
        self.unreadable += other.unreadable
        self.skipped += other.skipped
        self.broker_versions |= other.broker_versions


class Evidence(Struct, frozen=True):
    """Hints about the broker's version found beside the logs: file names and properties, not interpreted."""

    meta_properties: Sequence[Mapping[str, str]] = ()
    has_bootstrap_checkpoint: bool = False
    broker_versions: Sequence[str] = ()
    """Releases that live brokers have by the requests they take, such as `3.9`."""
    features: Mapping[str, int] = field(default_factory=dict)
    """Levels of the cluster's finalized features by name, where a capture gives them."""


class Layout(Struct, frozen=True):
    """Everything found under the inputs. `unchosen` are partitions that the filters left out; they may hold facts about the others."""

    partitions: Sequence[PartitionDirectory]
    leftover_files: Sequence[LeftoverFile] = ()
    unreadable: Sequence[Unreadable] = ()
    skipped: Sequence[Unreadable] = ()
    evidence: Evidence = field(default_factory=Evidence)
    unchosen: Sequence[PartitionDirectory] = ()
    empty_inputs: Sequence[Unreadable] = ()
    """Inputs, as they were given, that hold no evidence, and what they hold instead."""
    logs: Sequence[ApplicationLog] = ()
    """Logs of brokers and of applications."""
    other_logs: Sequence[Unreadable] = ()
    """Logs of other programs that lie beside them, and of which."""

    @property
    def everything(self) -> tuple[PartitionDirectory, ...]:
        """The partitions to audit and those that only hold facts about them: the coordinator's, the controller's."""
        return (*self.partitions, *self.unchosen)

    @property
    def latest_modification(self) -> int:
        """The newest modification time of a segment to audit, ms since 1970; 0 without one."""
        return max((segment.modified_ms for part in self.partitions for segment in part.segments), default=0)


def with_replicas(partitions: Sequence[PartitionDirectory]) -> Iterator[PartitionDirectory]:
    """Name each replica by the shortest suffix of its log directory that distinguishes the log directories."""
    directories = sorted({entry.log_dir for entry in partitions})
    parts = {text: Uri.parse(text).parts() for text in directories}
    names: dict[str, str] = {}
    for depth in count(1):
        names = {text: "/".join(entry[-depth:]) for text, entry in parts.items()}
        if len(set(names.values())) == len(set(parts.values())):
            break
    for entry in partitions:
        yield entry if entry.replica else replace(entry, replica=names[entry.log_dir])


def list_snapshots(directory: PartitionDirectory) -> tuple[SegmentFile, ...]:
    """Return a partition's newest snapshots (`%020d.snapshot`), by offset; none where only single files were given.

    `base_offset` is the exclusive end of the state that a snapshot holds.
    """
    return tuple(_all(directory)[-SNAPSHOTS:])


def count_older_snapshots(directory: PartitionDirectory) -> int:
    """Return how many snapshots of a partition there are before those that `list_snapshots` returns."""
    return max(len(_all(directory)) - SNAPSHOTS, 0)


def _all(directory: PartitionDirectory) -> list[SegmentFile]:
    return [] if directory.topic == CLUSTER_METADATA else _by_offset(directory, _PRODUCER_SNAPSHOT)


def metadata_snapshots(directory: PartitionDirectory) -> list[SegmentFile]:
    """Return the snapshots beside a metadata log (`<end offset>-<epoch>.checkpoint`), `base_offset` the end offset."""
    return _by_offset(directory, _METADATA_SNAPSHOT)


def _by_offset(directory: PartitionDirectory, names: re.Pattern[str]) -> list[SegmentFile]:
    found = [
        replace(file, base_offset=int(named[1]))
        for file in directory.side_files
        if (named := names.fullmatch(file.name)) is not None
    ]
    return sorted(found, key=lambda file: file.base_offset)


def furthest_replicas(
    directories: Iterable[PartitionDirectory], topics: Collection[str] = ()
) -> list[PartitionDirectory]:
    """Return of each partition, of these topics if any are named, the replica that goes furthest, by topic and number.

    Of those that go equally far it is the longest: compaction has removed least of it.
    """
    best: dict[tuple[str, int], tuple[tuple[int, int, int], PartitionDirectory]] = {}
    for directory in directories:
        if directory.segments and (not topics or directory.topic in topics):
            place, last = (directory.topic, directory.partition), directory.segments[-1]
            reach = last.base_offset, last.size, sum(segment.size for segment in directory.segments)
            if place not in best or best[place][0] < reach:
                best[place] = reach, directory
    return [directory for _, (_, directory) in sorted(best.items(), key=lambda entry: entry[0])]
