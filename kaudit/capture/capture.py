"""A capture: the batches of some partitions of a live cluster, written into one log directory with its checkpoints."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from kaudit.capture.account import MOST_RUNS, Account, Origin, PartitionAccount, Run, parse_account
from kaudit.capture.directory import CaptureDirectory, OccupiedError
from kaudit.capture.partition import RETENTION, CaptureError, PartitionCapture
from kaudit.formats.sidefiles.checkpoints import (
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
)
from kaudit.model.json_record import rfc3339
from kaudit.source.file_kinds import (
    CAPTURE_ACCOUNT,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
)
from kaudit.source.kafka.answers import TopicMetadata, TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import AccessDeniedError, UnknownTopicError
from kaudit.source.kafka.fetched_segment import BrokerError, Throttle


def write_checkpoints(directory: CaptureDirectory, account: Account) -> None:
    """Write the four offset checkpoints.

    As a broker's: the log start only where the first segment begins before it, the cleaner's offset only where
    compaction has been at work, and no higher than that shows: clients are not told the first dirty offset.
    """
    captured = [part for part in account.partitions if part.next_offset >= 0]
    ends = [(part, part.recovery_point) for part in captured]
    starts = [(part, log_start(part)) for part in captured]
    rows = {
        RECOVERY_POINT_CHECKPOINT: ends,
        HIGH_WATERMARK_CHECKPOINT: ends,
        LOG_START_CHECKPOINT: [(part, start) for part, start in starts if start > part.first_segment],
        CLEANER_CHECKPOINT: [(part, part.compacted_to) for part in captured if part.compacted_offsets],
    }
    for name, offsets in rows.items():
        lines = [PartitionOffset(part.topic, part.partition, offset) for part, offset in offsets]
        directory.write(offset_checkpoint(lines), name)


def log_start(part: PartitionAccount) -> int:
    """Return where the captured log begins: after the last offsets that retention took before they were fetched."""
    lost = [missing.last_offset + 1 for missing in part.missing if missing.reason == RETENTION]
    return max([part.first_offset, *lost])


def write_identity(directory: CaptureDirectory, account: Account) -> None:
    """Write meta.properties: the cluster's id, and the broker's where all batches came from one."""
    brokers = {broker for part in account.partitions for broker in part.brokers}
    node = brokers.pop() if len(brokers) == 1 else None
    origin = account.origin
    properties = MetaProperties(int(bool(origin.kraft)), node, origin.cluster_id, None, ())
    directory.write(meta_properties(properties, " captured by kaudit"), META_PROPERTIES)


def write_partition_metadata(directory: CaptureDirectory, account: PartitionAccount) -> None:
    """Write partition.metadata where the topic has an id (since 2.8)."""
    if account.topic_id is not None:
        directory.write(partition_metadata(PartitionMetadata(0, account.topic_id)), account.name, PARTITION_METADATA)


_SAVE_SECONDS: Final = 5.0
"""Seconds between two writes of the account, as a broker writes its checkpoints."""
_IDLE_SECONDS: Final = 0.2
"""Seconds between two rounds of --follow without new batches."""
_LAG_SECONDS: Final = 10.0
"""Seconds that a follower may take to reach the leader's end at the beginning of the capture."""
_REPLICA_WAIT_MS: Final = 500
_KEPT_CONFIGS: Final = (
    *("cleanup.policy", "compression.type", "message.timestamp.type", "min.insync.replicas"),
    *("retention.bytes", "retention.ms", "segment.bytes", "segment.ms"),
)


class CaptureRequest(Struct, frozen=True):
    """What to capture: partitions by topic (None: all), from which replica, whether to follow the end, at how many bytes per second."""

    topics: Mapping[str, Sequence[int] | None]
    from_replica: int | None = None
    follow: bool = False
    max_bytes_per_second: int | None = None


class CaptureProgress(Protocol):
    """Receives the progress of a capture."""

    def start(self, offsets: int) -> None:
        """Add offsets to capture."""

    def advance(self, offsets: int, size_in_bytes: int) -> None:
        """Count offsets and bytes."""

    def problem(self, partition: str, reason: str) -> None:
        """Report a partition's problem, transient or final."""


def require_there(client: KafkaClient, request: CaptureRequest) -> Sequence[TopicMetadata]:
    """Return the topics to capture. Raises UnknownTopicError where a topic or partition is not there, OSError."""
    topics = client.describe_topics(sorted(request.topics))
    for topic in topics:
        there = {own.partition for own in topic.partitions}
        for partition in request.topics[topic.topic] or ():
            if partition not in there:
                name = str(TopicPartition(topic.topic, partition))
                raise UnknownTopicError(name, f"the topic has {len(there)} partitions")
    return topics


class Capture:
    """Captures into a directory; `account` describes the result."""

    def __init__(
        self,
        client: KafkaClient,
        directory: CaptureDirectory,
        request: CaptureRequest,
        topics: Sequence[TopicMetadata],
        progress: CaptureProgress,
    ) -> None:
        """Take up the account of earlier runs; `topics` are what `require_there` found.

        Raises OccupiedError where the account is of another cluster or replica, OSError.
        """
        self._client = client
        self._directory = directory
        self._request = request
        self._progress = progress
        self._stop = threading.Event()
        self._parts: list[PartitionCapture] = []
        self._topics = {topic.topic: topic for topic in topics}
        self._saved = time.monotonic()
        rate = request.max_bytes_per_second
        self._throttle = None if rate is None else Throttle(rate)
        data = directory.read(CAPTURE_ACCOUNT)
        self.account = Account() if data is None else parse_account(data, str(directory))
        self._identify()
        self._run = Run(_now(), client.servers)
        self.account.runs = [*self.account.runs, self._run][-MOST_RUNS:]

    def _identify(self) -> None:
        """Compare the cluster with that of earlier runs."""
        cluster = self._client.describe_cluster()
        known, new = self.account.origin, not self.account.runs
        if not new and (known.cluster_id, known.from_replica) != (cluster.cluster_id, self._request.from_replica):
            whom = f"cluster {known.cluster_id}, " + (
                "from the leaders" if known.from_replica is None else f"from replica {known.from_replica}"
            )
            raise OccupiedError(
                f"{self._directory} holds a capture of {whom}: another one needs a directory of its own"
            )
        if self._request.from_replica is not None:
            nodes = sorted(node.node_id for node in cluster.nodes)
            if self._request.from_replica not in nodes:
                raise OccupiedError(f"--from-replica {self._request.from_replica}: the cluster's brokers are {nodes}")
        features = self._client.features()
        self.account.origin = Origin(
            cluster.cluster_id, self._request.from_replica, features.finalized, "metadata.version" in features.finalized
        )

    # -- a run ---------------------------------------------------------------------------------------------------------
    def run(self, stop: threading.Event) -> None:
        """Capture all there is, with `follow` until `stop` is set; either way it ends soon when it is.

        What is wrong with one partition is kept in its account and reported, and the others go on. Raises OSError where
        the directory cannot be written.
        """
        self._stop = stop
        try:
            self._plan()
            self._save()
            for part in self._parts:
                if self._stop.is_set():
                    break
                self._guarded(part, self._to_the_end)
            if self._request.follow:
                self._follow()
            self._end()
        finally:
            for part in self._parts:
                part.close()

    def _plan(self) -> None:
        configs = self._configs(sorted(self._topics))
        known = self.account.by_name()
        for name, topic in self._topics.items():
            wanted, config = self._request.topics[name], configs.get(name, {})
            if config:
                self.account.topics[name] = {key: config[key] for key in _KEPT_CONFIGS if key in config}
            for partition in [own.partition for own in topic.partitions] if wanted is None else wanted:
                account = PartitionAccount(name, partition)
                account = known.get(account.name, account)
                if account.name not in known:
                    self.account.partitions.append(account)
                self._parts.append(PartitionCapture(self._client, self._directory, account, config))
        self.account.partitions.sort(key=lambda each: (each.topic, each.partition))

    def _configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        try:
            return self._client.describe_topic_configs(topics)
        except AccessDeniedError as error:
            self._progress.problem(
                ",".join(topics), f"{error.strerror}: taken to be neither compacted nor of small segments"
            )
            return {}

    def _guarded(self, part: PartitionCapture, do: Callable[[PartitionCapture], None]) -> None:
        """Call `do` with a partition; note errors of the broker and of its log in the partition's account."""
        account, before = part.account, part.account.problem
        try:
            do(part)
        except (CaptureError, BrokerError, UnknownTopicError) as error:
            account.problem = str(error) if isinstance(error, CaptureError) else f"{error.filename}: {error.strerror}"
            if account.problem != before:
                self._progress.problem(account.name, account.problem)
            part.ended = isinstance(error, CaptureError)
        else:
            account.problem = None

    def _to_the_end(self, part: PartitionCapture) -> None:
        """Capture one partition up to the high watermark it has now."""
        topic = self._topics[part.account.topic]
        metadata = next(own for own in topic.partitions if own.partition == part.account.partition)
        replica = self._request.from_replica
        if replica is not None and replica not in metadata.replicas:
            raise CaptureError(f"broker {replica} holds no replica of it: {list(metadata.replicas)} do")
        part.prepare(topic, metadata, replica)
        write_partition_metadata(self._directory, part.account)
        self._save()  # before a segment is taken out of its place
        self._progress.start(max(part.end_offset - part.account.next_offset, 0))
        late = time.monotonic() + _LAG_SECONDS
        try:
            while not part.at_end and not self._stop.is_set():
                if self._step(part, _REPLICA_WAIT_MS):
                    late = time.monotonic() + _LAG_SECONDS
                elif time.monotonic() > late and not self._request.follow:
                    raise CaptureError(
                        f"nothing came for {_LAG_SECONDS:.0f} s at offset {part.account.next_offset}, of "
                        f"{part.end_offset}: the replica is lagging"
                    )
            part.ask_epochs()
        finally:
            part.publish(grows_on=self._request.follow)
            self._save_sometimes()

    def _step(self, part: PartitionCapture, wait_ms: int = 0) -> int:
        before = part.account.next_offset
        size = part.step(wait_ms)
        self._progress.advance(part.account.next_offset - before, size)
        self._run.bytes += size
        if self._throttle is not None:
            self._throttle.spend(size)
        self._save_sometimes()
        return size

    def _follow(self) -> None:
        """Go from partition to partition until stopped; what grew is in its place whenever there is nothing more."""
        while not self._stop.is_set():
            came = [self._follow_one(part) for part in self._parts if not (part.ended or self._stop.is_set())]
            self._save_sometimes()
            if not any(came):
                self._stop.wait(_IDLE_SECONDS)

    def _follow_one(self, part: PartitionCapture) -> int:
        sizes: list[int] = []

        def step(part: PartitionCapture) -> None:
            if not part.prepared:
                self._to_the_end(part)
            sizes.append(self._step(part))
            if not sizes[-1]:
                part.publish(grows_on=True)

        self._guarded(part, step)
        return sum(sizes)

    def _end(self) -> None:
        """Put every segment in its place and note how the run ended."""
        for part in self._parts:
            if part.prepared:
                part.publish(grows_on=False)
        incomplete = any(part.account.problem for part in self._parts)
        interrupted = self._stop.is_set() and not self._request.follow
        self._run.outcome = "incomplete" if incomplete else "interrupted" if interrupted else "complete"
        self._run.ended_at = _now()
        self._save()

    # -- what is written -----------------------------------------------------------------------------------------------
    def _save_sometimes(self) -> None:
        if time.monotonic() > self._saved + _SAVE_SECONDS:
            self._save()

    def _save(self) -> None:
        """Write the account and the files of the log directory. What a checkpoint says is in its place already."""
        for part in self._parts:
            part.checkpoint()
        write_checkpoints(self._directory, self.account)
        write_identity(self._directory, self.account)
        self._directory.write(self.account.text(), CAPTURE_ACCOUNT)
        self._saved = time.monotonic()


def _now() -> str:
    now = rfc3339(time.time_ns() // 1_000_000)
    assert now is not None
    return now
