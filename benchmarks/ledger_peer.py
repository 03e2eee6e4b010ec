"""What a user would write: `python ledger_peer.py SOURCE TARGET` reads two partitions with kafka-python's parser into a dict."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kafka.record import MemoryRecords


def records(partition: Path) -> Iterator[tuple[int, bytes, bytes, int]]:
    for segment in sorted(partition.glob("*.log")):
        batches = MemoryRecords(segment.read_bytes())
        while (batch := batches.next_batch()) is not None:
            for record in batch:
                yield record.offset, record.key, record.value, record.timestamp


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    places = {(key, value, timestamp): offset for offset, key, value, timestamp in records(source)}
    seen = Counter((key, value, timestamp) for _, key, value, timestamp in records(target))
    missing = [offset for same, offset in places.items() if same not in seen]
    repeated = sum(count > 1 for count in seen.values())
    print(len(missing), repeated, len(seen.keys() - places.keys()))


if __name__ == "__main__":
    main()
