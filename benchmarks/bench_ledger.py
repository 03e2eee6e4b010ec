"""The ledger of a topic and its mirror, beside reading both: seconds, and memory of the largest process.

    uv run python -m benchmarks.bench_ledger [--records 10_000_000] [--rounds 3] [--peer-records 1_000_000] [--tree DIR]
        [--codec none|lz4|zstd] [--spark]

Each side has `--records` records of 200 bytes; the mirror lacks some, has a thousand twice and other batches. The ledger is
compared with `kaudit inspect --records` of both sides (of the checkout in `--tree`, if given), and, at `--peer-records`, with
a consumer pair that keeps a dict of what the source has: kafka-python's parser over the same segments, no network. With `--spark`
also, at `--peer-records`, with Spark's Kafka source and an anti join, which a broker on this machine serves (Maven and Java are needed).
And `dedup` of the source beside `scan --depth headers` of it. Prints one JSON object; needs 0.5 GB of disk for each million records, which it deletes.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import crc32c

from benchmarks.generate import CODECS, HEAD, TAIL, varint
from benchmarks.processes import KAUDIT, Cost, Runner
from tests.live_brokers.jars import fetched_jars, jars_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import Connection

VALUE_BYTES = 173  # a record has 200 bytes with it
FIRST = 1_760_000_000_000
SEGMENT_BYTES = 256 << 20
SOURCE_BATCH, TARGET_BATCH = 80, 250
RECORDS_A_MS = 100
LOST_EVERY, REPEATED = 100_003, 1000
DICT, SPARK = (Path(__file__).with_name(f"{name}.py") for name in ("ledger_peer", "ledger_spark_peer"))
PYSPARK = "4.1.1"
"""The newest release whose Kafka source is on Maven Central."""
BROKER = "3.9.2"


def numbers_of_mirror(records: int) -> Iterator[int]:
    """What the mirror has, in its order."""
    for number in range(records):
        if number % LOST_EVERY != LOST_EVERY - 1:
            yield number
        if number == records // 2:
            yield from range(max(0, number - REPEATED), number)


def write_log(partition: Path, numbers: Iterable[int], batch_records: int, codec: str) -> None:
    """Write a partition whose record N is N's, of 200 bytes before compression."""
    partition.mkdir(parents=True)
    offset, size = 0, 0
    attributes, compress = CODECS[codec]
    rest = iter(numbers)
    segment = (partition / f"{offset:020d}.log").open("wb")
    while chunk := list(islice(rest, batch_records)):
        first = min(chunk) // RECORDS_A_MS
        body = compress(
            b"".join([_record(number, number // RECORDS_A_MS - first, at) for at, number in enumerate(chunk)])
        )
        last = FIRST + max(chunk) // RECORDS_A_MS
        tail = TAIL.pack(attributes, len(chunk) - 1, FIRST + first, last, -1, -1, -1, len(chunk))
        if size >= SEGMENT_BYTES:
            segment.close()
            segment, size = (partition / f"{offset:020d}.log").open("wb"), 0
        crc = crc32c.crc32c(body, crc32c.crc32c(tail))
        size += segment.write(HEAD.pack(offset, 49 + len(body), 0, 2, crc) + tail + body)
        offset += len(chunk)
    segment.close()


def _record(number: int, timestamp_delta: int, offset_delta: int) -> bytes:
    body = b"\0%b%b\x24order-%012d" % (varint(timestamp_delta), varint(offset_delta), number)
    value = b"%012d" % number + b"." * (VALUE_BYTES - 12)
    body += varint(VALUE_BYTES) + value + b"\0"
    return varint(len(body)) + body


def written(place: Path, records: int, codec: str = "none") -> tuple[Path, Path]:
    source, target = place / "a", place / "b"
    write_log(source / "orders-0", range(records), SOURCE_BATCH, codec)
    write_log(target / "orders-0", numbers_of_mirror(records), TARGET_BATCH, codec)
    return source, target


@contextmanager
def served(home: Path, topics: dict[str, Path]) -> Iterator[str]:
    """The address of a broker that has these partitions; the segments that were generated replace its own."""
    broker = Broker(BROKER, jars_of(BROKER), home, heap="512m")
    try:
        broker.start()
        connection = Connection(broker.port)
        for topic in topics:
            connection.create_topic(topic, 1, {"segment.bytes": str(1 << 30), "retention.ms": "-1"})
        time.sleep(2)
        connection.close()
        broker.stop(clean=True)
        for topic, partition in topics.items():
            directory = broker.logs / f"{topic}-0"
            for file in directory.glob("0*"):
                file.unlink()
            for segment in partition.iterdir():
                shutil.copy(segment, directory)
        broker.start()
        yield f"127.0.0.1:{broker.port}"
    finally:
        broker.end()


def spark_command(address: str, source: str, target: str) -> list[str]:
    jars = fetched_jars(f"spark-kafka-{PYSPARK}", [("org.apache.spark", "spark-sql-kafka-0-10_2.13", PYSPARK)])
    python = ["uv", "run", "--no-project", "--quiet", "--with", f"pyspark=={PYSPARK}", "python"]
    return [*python, str(SPARK), address, ",".join(map(str, sorted(jars.glob("*.jar")))), source, target]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--peer-records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", choices=sorted(CODECS), default="none")
    parser.add_argument("--spark", action="store_true", help="also beside Spark's Kafka source and an anti join")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--tree", type=Path, help="a checkout whose `inspect` is measured")
    options = parser.parse_args()
    result: dict[str, object] = {"records a side": options.records, "rounds": options.rounds}
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        runner = Runner([], Path(place))
        for name, records in (("inspect", options.records), ("dict", options.peer_records)):
            source, target = written(Path(place) / name, records, options.codec)
            ledger = [*KAUDIT[:3], "diff", "--by", "records", str(source), str(target), "-q", "--exit-zero"]
            peer = _peer(name, source, target, options.tree)
            costs = runner.interleaved({"ledger": ledger, name: peer}, options.rounds)
            result[f"of {records} records, beside {name}"] = compared(costs, name)
            result[f"dedup of {records} records, times scan --depth headers"] = dedup_ratio(
                runner, source, options.rounds
            )
            if name == "dict" and options.spark:
                topics = {"source": source / "orders-0", "target": target / "orders-0"}
                with served(Path(place) / "broker", topics) as address:
                    costs = runner.interleaved(
                        {"ledger": ledger, "spark": spark_command(address, *topics)}, options.rounds
                    )
                # the JVM is no child that Python waits for: its CPU time and memory are not known
                known = compared(costs, "spark")
                result[f"of {records} records, beside spark"] = {
                    key: known[key] for key in ("ledger_s", "spark_s", "ratio")
                }
    print(json.dumps(result, indent=2))
    return 0


def dedup_ratio(runner: Runner, source: Path, rounds: int) -> float:
    """CPU time of `dedup` of a log without repeats."""
    headers = [*KAUDIT, "--depth", "headers", "--jobs", "1", str(source)]
    costs = runner.interleaved(
        {"dedup": [*KAUDIT[:3], "dedup", "-q", "--jobs", "1", str(source)], "headers": headers}, rounds
    )
    return round(costs["dedup"].cpu / costs["headers"].cpu, 2)


def compared(costs: dict[str, Cost], peer: str) -> dict[str, float]:
    return {
        "ledger_s": round(costs["ledger"].wall, 2),
        f"{peer}_s": round(costs[peer].wall, 2),
        "ratio": round(costs["ledger"].wall / costs[peer].wall, 3),
        "cpu_ratio": round(costs["ledger"].cpu / costs[peer].cpu, 3),
        "ledger_mb": round(costs["ledger"].memory),
        f"{peer}_mb": round(costs[peer].memory),
    }


def _peer(name: str, source: Path, target: Path, tree: Path | None) -> list[str]:
    if name == "dict":
        return [sys.executable, str(DICT), str(source / "orders-0"), str(target / "orders-0")]
    own = [] if tree is None else ["env", f"PYTHONPATH={tree}"]
    return [*own, *KAUDIT[:3], "inspect", "--records", str(source), str(target)]


if __name__ == "__main__":
    raise SystemExit(main())
