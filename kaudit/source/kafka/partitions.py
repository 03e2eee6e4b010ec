"""Partitions of a live cluster: a topic as a layout with one directory a partition, and its batches as a source of bytes."""

import os
import time
from collections.abc import Iterator, Sequence

from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

from kaudit.formats.log.batch_header import HEADER_SIZE, base_offset_of, batch_size
from kaudit.source.kafka.answers import PartitionMetadata, TopicPartition
from kaudit.source.kafka.client import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, KafkaClient
from kaudit.source.kafka.command_config import load_settings
from kaudit.source.kafka.failures import (
    AccessDeniedError,
    OffsetOutOfRangeError,
    UnknownTopicError,
    UnsupportedRequestError,
)
from kaudit.source.kafka.fetched_segment import Aborted, BrokerError, FetchedSegment, RemovedByRetentionError, Throttle
from kaudit.source.kafka.options import ClusterOptions, TopicUrl
from kaudit.source.layout import FetchedRange, FoundPartitions, PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.uri import UrlError

_clients: dict[tuple[int, str, str | None], KafkaClient] = {}
_throttles: dict[tuple[str, int], Throttle] = {}
_given_up: dict[tuple[str, str | None], dict[TopicPartition, BrokerError]] = {}
"""Partitions whose reads failed until the retries ran out."""


def client_of(servers: str, command_config: str | None) -> KafkaClient:
    """Return this process' client of a cluster: a connection is not for two processes.

    Raises:
        UrlError: the servers are not a list of HOST:PORT, or the property file cannot be used.

    """
    key = (os.getpid(), servers, command_config)
    if key not in _clients:
        _clients[key] = KafkaClient(servers, load_settings(command_config))
    return _clients[key]


def open_fetched(place: FetchedRange) -> FetchedSegment:
    """Return a partition's batches as a source of bytes; nothing is sent before it is read."""
    client = client_of(place.servers, place.command_config)
    partition = TopicPartition(place.topic, place.partition)
    throttle = _throttle(place)

    def fetch(offset: int, size: int) -> tuple[bytes, Aborted]:
        given_up = _given_up.setdefault((place.servers, place.command_config), {})
        if partition in given_up:
            raise given_up[partition]
        try:
            # the batches are the same, up to the last stable offset
            isolation = READ_COMMITTED if offset < place.stable_offset else READ_UNCOMMITTED
            answer = client.fetch(partition, offset, max_bytes=size, isolation=isolation)
        except OffsetOutOfRangeError as error:
            raise _out_of_range(client, partition, offset, error) from None
        except BrokerError as error:
            given_up[partition] = error  # the next range would wait as long and fail too
            raise
        if throttle is not None:
            throttle.spend(len(answer.records))
        return answer.records, answer.aborted

    return FetchedSegment(place, fetch)


def try_again() -> None:
    """Ask again for partitions that could not be read: a broker may be back by now."""
    _given_up.clear()


def _out_of_range(client: KafkaClient, partition: TopicPartition, offset: int, error: OffsetOutOfRangeError) -> OSError:
    """Return the error for an offset out of range: retention removed it, or the log became shorter."""
    log_start = client.list_offset(partition, EARLIEST)
    if log_start > offset:
        return RemovedByRetentionError(str(partition), log_start)
    error.strerror = f"offset {offset} is beyond the log end: the log became shorter while it was read"
    return error


def _throttle(place: FetchedRange) -> Throttle | None:
    rate = place.max_bytes_per_second
    if rate is None:
        return None
    return _throttles.setdefault((place.servers, rate), Throttle(rate))


CLEANUP_POLICY = "cleanup.policy"
_PROBE_BYTES = 64 << 10
_MOST_POSITIONS = 1 << 62
"""Positions are 64 bit integers, and sums of them too."""


def find_partitions(url: TopicUrl, options: ClusterOptions) -> FoundPartitions:
    """Ask the brokers for a topic's partitions: their log start, high watermark and configuration now.

    Raises:
        UrlError: the cluster has no such topic or partition, or the options cannot be used.

    """
    found = FoundPartitions()
    name = f"kafka://{url.servers}/{url.topic}"
    client = client_of(url.servers, _absolute(options.command_config))
    try_again()
    try:
        (topic,) = client.describe_topics([url.topic])
        wanted = [own for own in topic.partitions if url.partition in (None, own.partition)]
        if not wanted:
            numbers = f"0 to {len(topic.partitions) - 1}" if topic.partitions else "none"
            raise UrlError(f"{name}/{url.partition}: the topic has no such partition; there: {numbers}")
        found.broker_versions = _versions(client, wanted)
    except UnknownTopicError as error:
        raise UrlError(f"{name}: {error.strerror}") from None
    except OSError as error:
        found.unreadable.append(Unreadable(name, _reason(error)))
        return found
    compacted = _is_compacted(client, url.topic, name, found)
    for own in wanted:
        try:
            directory = _directory(client, url, own, options, compacted=compacted)
        except OSError as error:
            found.unreadable.append(Unreadable(f"{name}/{own.partition}", _reason(error)))
        else:
            found.partitions.append(directory)
    return found


def _directory(
    client: KafkaClient, url: TopicUrl, own: PartitionMetadata, options: ClusterOptions, *, compacted: bool
) -> PartitionDirectory:
    partition = TopicPartition(url.topic, own.partition)
    log_start = client.list_offset(partition, EARLIEST)
    high_watermark = client.list_offset(partition, LATEST)
    stable_offset = client.list_offset(partition, LATEST, READ_COMMITTED)
    first, end = _asked_for(client, partition, options, log_start, high_watermark)
    base, bytes_per_offset = _probe(client, partition, first, end)
    if not 0 <= base <= first or (end - base) * bytes_per_offset >= _MOST_POSITIONS:
        raise OSError(0, f"the broker names offsets {base} to {end}: no log has them", str(partition))
    place = f"kafka://{client.servers}/{url.topic}/{own.partition}"
    fetched = FetchedRange(
        servers=client.servers,
        topic=url.topic,
        partition=own.partition,
        first_offset=base,
        readable_from=first,
        end_offset=end,
        stable_offset=min(stable_offset, end),
        bytes_per_offset=bytes_per_offset,
        command_config=_absolute(options.command_config),
        max_bytes_per_second=options.max_bytes_per_second,
        whole=not compacted,
    )
    segment = SegmentFile(
        path=place,
        name=f"{base:020d}.log",
        base_offset=base,
        size=fetched.size,
        modified_ms=time.time_ns() // 1_000_000,
        fetched=fetched,
    )
    return PartitionDirectory(
        topic=url.topic,
        partition=own.partition,
        replica=client.servers,
        log_dir=f"kafka://{client.servers}",
        directory=place,
        relative="",
        segments=(segment,),
        log_start_offset=first,
        first_dirty_offset=first if compacted else None,
        has_checkpoints=True,
        whole_directory=False,
    )


def _asked_for(
    client: KafkaClient, partition: TopicPartition, options: ClusterOptions, log_start: int, high_watermark: int
) -> tuple[int, int]:
    """Return the first offset to read and the one to end before."""
    first, end = log_start, high_watermark
    if options.from_offset is not None:
        first = max(first, options.from_offset)
    if options.to_offset is not None:
        end = min(end, options.to_offset)
    if options.from_ms is not None:
        since = client.list_offset(partition, options.from_ms)
        first = max(first, since if since >= 0 else high_watermark)
    if options.to_ms is not None:
        until = client.list_offset(partition, options.to_ms)
        end = min(end, until if until >= 0 else high_watermark)
    first = min(first, high_watermark)
    return first, max(first, end)


def _probe(client: KafkaClient, partition: TopicPartition, first: int, end: int) -> tuple[int, int]:
    """Return the base offset of the first batch, and about how many bytes the log has for each offset."""
    base, size, offsets = first, 0, 0
    for number, offset in enumerate((first, (first + end) // 2)):
        if first >= end:
            break
        heads = list(_heads(client.fetch(partition, offset, max_bytes=_PROBE_BYTES).records))
        if heads and not number:
            base = min(heads[0][0], first)
        size += sum(own for _, _, own in heads)
        offsets += heads[-1][1] + 1 - heads[0][0] if heads else 0
    return base, max(size // offsets, 1) if offsets > 0 else 1


def _heads(records: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield first offset, last offset and size of each whole batch of a record set."""
    view, at = memoryview(records), 0
    while at + HEADER_SIZE <= len(view):
        head = view[at : at + HEADER_SIZE]
        size, base = batch_size(head), base_offset_of(head)
        if size < HEADER_SIZE or at + size > len(view):
            return
        yield base, base + max(int.from_bytes(head[23:27], signed=True), 0) if head[16] >= 2 else base, size
        at += size


def _versions(client: KafkaClient, partitions: Sequence[PartitionMetadata]) -> set[str]:
    """Return the releases of the brokers that lead the partitions, by the requests they take."""
    nodes = {own.leader for own in partitions if own.leader >= 0}
    versions = (infer_broker_version_from_api_versions(dict(client.features(node).api_versions)) for node in nodes)
    return {".".join(map(str, version)) for version in versions}


def _is_compacted(client: KafkaClient, topic: str, name: str, found: FoundPartitions) -> bool:
    try:
        return "compact" in client.describe_topic_configs([topic])[topic].get(CLEANUP_POLICY, "")
    except OSError as error:
        reason = f"{_reason(error)}: --compacted says that its topics are compacted"
        # whom brokers do not tell, or brokers before 0.11, is no failure; who does not answer is
        is_refused = isinstance(error, AccessDeniedError | UnsupportedRequestError)
        unknown = Unreadable(name, f"its configuration is not known: {reason}")
        (found.skipped if is_refused else found.unreadable).append(unknown)
        return False


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - a text that other processes open


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or type(error).__name__
