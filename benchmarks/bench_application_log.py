"""How fast server logs become events, against plain iteration over their lines.

    uv run python -m benchmarks.bench_application_log [--rounds 7] [--mebibytes 16]

Reads a log in which one entry of `--every` (default 50) is an event, the rest what brokers write all day. Prints, of the least processor time of
interleaved rounds, MB/s of the reader, MB/s of counting the lines that hold "ERROR", and the ratio. Exit 1 if the ratio exceeds the limit.
"""

import argparse
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice

from kaudit.formats.application_log.patterns import read_patterns
from kaudit.formats.application_log.reader import read_events

LIMIT = 30
"""Times the time of iterating over the lines."""
ORDINARY = (
    "[2026-11-22 10:15:30,123] INFO [GroupCoordinator 1]: Dynamic member with unknown member id joins group orders in Empty state. Created a new member id consumer-7 and requesting the member to rejoin. (kafka.coordinator.group.GroupCoordinator)",
    "[2026-11-22 10:15:30,124] INFO [LocalLog partition=orders-7, dir=/var/lib/kafka] Rolled new log segment at offset 88120 in 3 ms. (kafka.log.LocalLog)",
    "[2026-11-22 10:15:30,125] INFO Cleaner 0: Cleaning LogSegment(baseOffset=0, size=1048512, lastModifiedTime=1700000000000) in log __consumer_offsets-3 into 0 with an upper bound deletion horizon 1700000000000. (kafka.log.LogCleaner)",
    "[2026-11-22 10:15:30,126] INFO [SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.0.0.7 (channelId=9) (SSL handshake failed) (org.apache.kafka.common.network.Selector)",
    "[2026-11-22 10:15:30,127] INFO [ReplicaFetcherManager on broker 1] Removed fetcher for partitions Set(orders-7) (kafka.server.ReplicaFetcherManager)",
    "[2026-11-22 10:15:30,128] WARN [Consumer clientId=c, groupId=g] Connection to node 2 could not be established. Broker may not be available. (org.apache.kafka.clients.NetworkClient)",
)


def log(size: int, every: int) -> bytes:
    """A log of about `size` bytes."""
    events = cycle(pattern.example for pattern in read_patterns("server") if pattern.example.startswith("["))
    ordinary = cycle(ORDINARY)
    average = sum(map(len, ORDINARY)) // len(ORDINARY)
    lines = (next(events) if number % every == 0 else next(ordinary) for number in range(size // average))
    return "\n".join(lines).encode() + b"\n"


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one run."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mebibytes", type=int, default=16)
    parser.add_argument("--every", type=int, default=50)
    options = parser.parse_args()
    data = log(options.mebibytes << 20, options.every)
    pieces = [data[at : at + (1 << 20)] for at in range(0, len(data), 1 << 20)]
    works: list[Callable[[], int]] = [
        lambda: sum(1 for _ in read_events(pieces, "server", path="server.log")),
        lambda: sum(b"ERROR" in line for line in data.split(b"\n")),
    ]
    events = works[0]()
    rounds = islice(iter(lambda: [seconds(work) for work in works], None), options.rounds)
    reader, plain = (min(times) for times in zip(*rounds, strict=True))
    print("| log, MB | events | reader, MB/s | lines, MB/s | ratio | limit |\n|---|---|---|---|---|---|")
    size = len(data) / 1e6
    print(f"| {size:.0f} | {events} | {size / reader:.0f} | {size / plain:.0f} | {reader / plain:.1f} | {LIMIT} |")
    return int(reader / plain > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
