"""The ledger of a topic and its mirror, beside reading both: seconds, and memory of the largest process.

    uv run python -m benchmarks.bench_ledger [--records 10_000_000] [--rounds 3] [--peer-records 1_000_000] [--tree DIR]
        [--codec none|lz4|zstd]

Each side has `--records` records of 200 bytes; the mirror lacks some, has a thousand twice and other batches. The ledger is
compared with `kaudit inspect --records` of both sides (of the checkout in `--tree`, if given), and, at `--peer-records`, with
a consumer pair that keeps a dict of what the source has: kafka-python's parser over the same segments, no network.
Prints one JSON object; needs 0.5 GB of disk for each million records, which it deletes.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import crc32c

from benchmarks.generate import CODECS, HEAD, TAIL, varint
from benchmarks.processes import KAUDIT, Runner

VALUE_BYTES = 173  # a record has 200 bytes with it
FIRST = 1_760_000_000_000
SEGMENT_BYTES = 256 << 20
SOURCE_BATCH, TARGET_BATCH = 80, 250
RECORDS_A_MS = 100
LOST_EVERY, REPEATED = 100_003, 1000
DICT = Path(__file__).with_name("ledger_peer.py")


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--peer-records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", choices=sorted(CODECS), default="none")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--tree", type=Path, help="a checkout whose `inspect` is measured")
    options = parser.parse_args()
    result: dict[str, object] = {"records a side": options.records, "rounds": options.rounds}
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        runner = Runner([], Path(place))
        for name, records in (("inspect", options.records), ("dict", options.peer_records)):
            source, target = written(Path(place) / name, records, options.codec)
            costs = runner.interleaved(
                {"ledger": [*KAUDIT[:3], "diff", "--by", "records", str(source), str(target), "-q", "--exit-zero"],
                 "peer": _peer(name, source, target, options.tree)},
                options.rounds,
            )  # fmt: skip
            result[f"of {records} records, beside {name}"] = {
                "ledger_s": round(costs["ledger"].wall, 2),
                f"{name}_s": round(costs["peer"].wall, 2),
                "ratio": round(costs["ledger"].wall / costs["peer"].wall, 3),
                "cpu_ratio": round(costs["ledger"].cpu / costs["peer"].cpu, 3),
                "ledger_mb": round(costs["ledger"].memory),
                f"{name}_mb": round(costs["peer"].memory),
            }
    print(json.dumps(result, indent=2))
    return 0


def _peer(name: str, source: Path, target: Path, tree: Path | None) -> list[str]:
    if name == "dict":
        return [sys.executable, str(DICT), str(source / "orders-0"), str(target / "orders-0")]
    own = [] if tree is None else ["env", f"PYTHONPATH={tree}"]
    return [*own, *KAUDIT[:3], "inspect", "--records", str(source), str(target)]


if __name__ == "__main__":
    raise SystemExit(main())
