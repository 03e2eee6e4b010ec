"""Logs of several partitions for the benchmarks of whole audits, made once in a directory: healthy ones by shape, and gaps."""

from pathlib import Path

from benchmarks.generate import Shape, Writer, generate, record

MIB = 1 << 20
PARTITIONS = 4
SHAPES = {
    "large": Shape("large", records=(16, 16), value_bytes=(1000, 1040), producers=50, anomalies=0),
    "small": Shape("small", producers=100, anomalies=0),
    "short runs": Shape("short runs", producers=50_000, anomalies=0),
    "200,000 ids": Shape("200,000 ids", producers=200_000, anomalies=0),
}
"""Batches of 16 KiB of 50 producers, and of one record of 100, 50,000 and 200,000 producers that write in turn."""


def logs(directory: Path, shape: Shape, mib: int) -> Path:
    """Partitions of this shape, about `mib` MiB in all; made once."""
    root = directory / f"{shape.name.replace(' ', '-').replace(',', '')}-{mib}"
    for number in range(PARTITIONS):
        partition = root / f"orders-{number}"
        if not (partition / "done").exists():
            partition.mkdir(parents=True, exist_ok=True)
            generate(partition / f"{0:020d}.log", shape, mib * MIB // PARTITIONS, seed=number)
            (partition / "done").touch()
    return root


def one_record_batches(segment: Path, producers: list[tuple[int, int]]) -> None:
    """Write a segment of a batch of one record for each (producer id, sequence)."""
    segment.parent.mkdir(parents=True, exist_ok=True)
    writer = Writer(segment, 1 << 62)
    body = record(0, None, b"a value of some bytes")
    for producer_id, sequence in producers:
        writer.append((producer_id, 0, sequence), 1, body, 0)
    writer.flush()
    writer.file.close()


def gaps(root: Path, number: int, partition: int = 0) -> Path:
    """One partition of one producer with that many gaps, each different from the one before; made once. Return the root."""
    segment = root / f"orders-{partition}" / f"{0:020d}.log"
    if not segment.exists():
        sent, sequence = [], 0
        for index in range(number + 1):
            sent.append((100, sequence))
            sequence = (sequence + 2 + index * index % 97 + index % 11) % (1 << 31)
        one_record_batches(segment, sent)
    return root
