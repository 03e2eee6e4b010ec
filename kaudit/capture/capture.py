"""A capture: the batches of some partitions of a live cluster, written into one log directory."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from kaudit.capture.account import MOST_RUNS, Account, Origin, PartitionAccount, Run, parse_account
from kaudit.capture.directory import ACCOUNT, CaptureDirectory, OccupiedError
from kaudit.capture.log_directory import write_checkpoints, write_identity, write_partition_metadata
from kaudit.capture.partition import CaptureError, PartitionCapture
from kaudit.model.rfc3339 import rfc3339
from kaudit.source.kafka.answers import TopicMetadata, TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import BrokerError, RetriableError, UnknownTopicError

_SAVE_SECONDS: Final = 5.0
"""Between two accounts while the capture runs, as a broker writes its checkpoints."""
_IDLE_SECONDS: Final = 0.2
"""Between two rounds of --follow that found nothing."""
_REPLICA_SECONDS: Final = 10.0
"""How long a follower may take to have what its leader had when the capture began."""
_REPLICA_WAIT_MS: Final = 500
_KEPT_CONFIGS: Final = (
    *("cleanup.policy", "compression.type", "message.timestamp.type", "min.insync.replicas"),
    *("retention.bytes", "retention.ms", "segment.bytes", "segment.ms"),
)


class CaptureRequest(Struct, frozen=True):
    """What to capture: partitions, None for all, by topic; from whom; whether to go on at the end; bytes per second."""

    topics: Mapping[str, Sequence[int] | None]
    from_replica: int | None = None
    follow: bool = False
    max_bytes_per_second: int | None = None


class CaptureProgress(Protocol):
    """Told how far a capture is."""

    def start(self, offsets: int) -> None:
        """Take how many offsets there are to capture."""

    def advance(self, offsets: int, size: int) -> None:
        """Count offsets and bytes."""

    def problem(self, partition: str, reason: str) -> None:
        """Take what is wrong with a partition for the moment, or to the end."""


class Capture:
    """Captures into a directory; `account` is what came of it. `stopped` says when to end before all is there."""

    def __init__(
        self,
        client: KafkaClient,
        directory: CaptureDirectory,
        request: CaptureRequest,
        progress: CaptureProgress,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take up the account of earlier runs. Raises OccupiedError where it is of another cluster or replica."""
        self._client = client
        self._directory = directory
        self._request = request
        self._progress = progress
        self._stopped = stopped
        self._parts: list[PartitionCapture] = []
        self._saved = 0.0
        self._rate = RateLimit(request.max_bytes_per_second)
        data = directory.read(ACCOUNT)
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
            raise OccupiedError(f"{self._directory} holds a capture of {whom}: another one needs a directory of its own")
        if self._request.from_replica is not None:
            nodes = sorted(node.node_id for node in cluster.nodes)
            if self._request.from_replica not in nodes:
                raise OccupiedError(f"--from-replica {self._request.from_replica}: the cluster's brokers are {nodes}")
        features = self._client.describe_features()
        self.account.origin = Origin(
            cluster.cluster_id, self._request.from_replica, features.finalized, "metadata.version" in features.finalized
        )

    # -- a run ---------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Capture all there is, with `follow` until `stopped`.

        What is wrong with one partition is kept in its account and reported, and the others go on. Raises
        UnknownTopicError for a topic or partition that is not there, OSError where the directory cannot be written.
        """
        try:
            self._plan()
            self._save()
            for part in self._parts:
                if self._stopped():
                    break
                self._guarded(part, self._to_the_end)
            if self._request.follow:
                self._follow()
        finally:
            for part in self._parts:
                part.close()
        self._end()

    def _plan(self) -> None:
        topics = self._client.describe_topics(sorted(self._request.topics))
        configs = self._configs([topic.topic for topic in topics])
        known = self.account.by_name()
        for topic in topics:
            wanted = self._request.topics[topic.topic]
            config = configs.get(topic.topic, {})
            if config:
                self.account.topics[topic.topic] = {name: config[name] for name in _KEPT_CONFIGS if name in config}
            there = {own.partition: own for own in topic.partitions}
            for partition in sorted(there) if wanted is None else wanted:
                if partition not in there:
                    raise UnknownTopicError(
                        str(TopicPartition(topic.topic, partition)), f"the topic has {len(there)} partitions"
                    )
                account = PartitionAccount(topic.topic, partition)
                account = known.get(account.name, account)
                if account.name not in known:
                    self.account.partitions.append(account)
                self._parts.append(PartitionCapture(self._client, self._directory, account, config))
