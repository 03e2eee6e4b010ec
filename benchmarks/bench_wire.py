"""A scan over the wire compared with the same client library, which only fetches; one broker on loopback.

    python -m benchmarks.bench_wire HOST:PORT TOPIC [ROUNDS]

Both run in this process, by turns, with the same fetches; the figure is the median of the rounds' ratios. With `--broker`
in place of HOST:PORT TOPIC a broker is started and filled first (Maven and Java are all it needs).
"""

import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.protocol.consumer import FetchRequest

from benchmarks.generate import Shape, generate
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka.fetched_segment import FETCH_BYTES
from kaudit.source.kafka.options import ClusterOptions
from tests.live_brokers.jars import jars_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import Connection

ROUNDS = 7
FILLED_BYTES = 256 << 20
BROKER = "3.9.2"
SHAPES = (
    Shape("large", records=(16, 16), value_bytes=(1000, 1040), producers=200, anomalies=0),
    Shape("small", producers=2000, anomalies=0),
)
"""Batches of 16 KiB, and of one small record each."""


def fetched_bytes(address: str, topic: str) -> int:
    """Fetch a partition from front to back with the library alone and return how many bytes came."""
    net = NetworkSelector(slow_task_threshold_secs=0)
    manager = KafkaConnectionManager(net, bootstrap_servers=address, receive_message_max_bytes=64 << 20)
    total = net.run(_fetch_all, manager, topic)
    manager.close()
    net.close()
    return int(total)


async def _fetch_all(manager, topic: str) -> int:
    connection = manager.get_connection("bootstrap-0")
    await connection
    offset = total = 0
    part = FetchRequest.FetchTopic.FetchPartition
    while True:
        own = part(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=[own])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics, max_version=12)
        records = (await connection.send_request(request)).responses[0].partitions[0].records
        if not records:
            return total
        offset, size = _after_last(records)
        total += size


def _after_last(records: bytes) -> tuple[int, int]:
    """The offset after the last whole batch, and the position where that batch ends: all that the next fetch needs."""
    at, last, size = 0, 0, len(records)
    while at + 61 <= size:
        following = at + 12 + int.from_bytes(records[at + 8 : at + 12])
        if following > size:
            break
        last, at = at, following
    base, delta = int.from_bytes(records[last : last + 8]), int.from_bytes(records[last + 23 : last + 27])
    return base + delta + 1, at


def scanned_bytes(address: str, topic: str) -> int:
    """Scan the partition in this process and return how many bytes its batches have."""
    cluster = ClusterOptions(max_bytes_per_second=None)
    options = ScanOptions([f"kafka://{address}/{topic}/0"], jobs=1, cluster=cluster)
    return scan(options, SilentProgress()).summary.bytes


def compare(address: str, topic: str, rounds: int) -> None:
    """Print the rates of both, and the median of their ratios."""
    ratios, rates = [], []
    for _ in range(rounds):
        measured = []
        for run in (fetched_bytes, scanned_bytes):
            begun = time.perf_counter()
            measured.append(run(address, topic) / (time.perf_counter() - begun) / 1e6)
        rates.append(measured)
        ratios.append(measured[1] / measured[0])
    library, audit = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"{topic}: library {library:.0f} MB/s, scan {audit:.0f} MB/s, ratio {statistics.median(ratios):.0%}")


def _filled(broker: Broker) -> list[str]:
    """Start the broker with a partition of each shape; generated segments replace those that the broker made."""
    broker.start()
    connection = Connection(broker.port)
    for shape in SHAPES:
        connection.create_topic(shape.name, 1, {"segment.bytes": str(1 << 30), "retention.ms": "-1"})
    time.sleep(2)
    connection.close()
    broker.stop(clean=True)
    for shape in SHAPES:
        directory = broker.logs / f"{shape.name}-0"
        for file in directory.iterdir():
            if file.name.startswith("0"):
                file.unlink()
        generate(directory / f"{0:020d}.log", shape, FILLED_BYTES)
    broker.start()
    return [shape.name for shape in SHAPES]


def main() -> None:
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    if sys.argv[1:2] == ["--broker"]:
        with tempfile.TemporaryDirectory() as home:
            broker = Broker(BROKER, jars_of(BROKER), Path(home, "broker"), heap="512m")
            try:
                for topic in _filled(broker):
                    compare(f"127.0.0.1:{broker.port}", topic, ROUNDS)
            finally:
                broker.end()
        return
    address, topic, *rounds = sys.argv[1:]
    compare(address, topic, int(rounds[0]) if rounds else ROUNDS)


if __name__ == "__main__":
    main()
