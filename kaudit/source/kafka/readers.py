"""The clients of this process, one a cluster, and record sets through them."""

import os

from kaudit.source.kafka.answers import TopicPartition
from kaudit.source.kafka.client import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED, KafkaClient
from kaudit.source.kafka.command_config import load_settings
from kaudit.source.kafka.failures import BrokerError, OffsetOutOfRangeError
from kaudit.source.kafka.fetched_segment import Aborted, FetchedSegment, RemovedByRetentionError, Throttle
from kaudit.source.layout import FetchedRange

_clients: dict[tuple[int, str, str | None], KafkaClient] = {}
_throttles: dict[tuple[str, int], Throttle] = {}
_given_up: dict[tuple[str, str | None], dict[TopicPartition, BrokerError]] = {}
"""Partitions that could not be read for as long as it was worth trying."""


def client_of(servers: str, command_config: str | None) -> KafkaClient:
    """Return this process' client of a cluster: a connection is not for two processes.

    Raises:
        UrlError: the servers are no list of HOST:PORT, or the property file cannot be used.

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
            given_up[partition] = error  # the next range would wait as long, and in vain
            raise
        if throttle is not None:
            throttle.spend(len(answer.records))
        return answer.records, frozenset((one.producer_id, one.first_offset) for one in answer.aborted)

    return FetchedSegment(place, fetch)


def try_again() -> None:
    """Ask again for partitions that could not be read: a broker may be back by now."""
    _given_up.clear()


def _out_of_range(client: KafkaClient, partition: TopicPartition, offset: int, error: OffsetOutOfRangeError) -> OSError:
    """Return what an offset out of range means: retention removed it, or the log became shorter."""
    log_start = client.list_offset(partition, EARLIEST).offset
    if log_start > offset:
        return RemovedByRetentionError(str(partition), log_start)
    error.strerror = f"offset {offset} is beyond the log end: the log became shorter while it was read"
    return error


def _throttle(place: FetchedRange) -> Throttle | None:
    rate = place.max_bytes_per_second
    if rate is None:
        return None
    return _throttles.setdefault((place.servers, rate), Throttle(rate))
