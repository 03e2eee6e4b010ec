"""The command's job on Spark over a log with a finding in 12,000 batches, beside a clean one and jobs that users would write.

    python -m benchmarks.bench_spark_job [--mib 4096] [--peer-mib 1024] [--rounds 2] [--master local[2]] [--directory DIR]

Batches of one record of 40 to 70 bytes. A segment of 128 MiB is generated once; its hard links are the partitions, so that 4 GiB
take 256 MiB of disk. Whole processes, the JVM and Python workers included, in turn; least of the rounds. Prints JSON; exit code 1:
the job with findings takes more than LIMIT times the CPU time of the clean one.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.generate import Shape, Truth, generate
from benchmarks.process_tree import cost_of
from benchmarks.processes import KAUDIT

LIMIT = 1.3
SEGMENT_MIB = 128
CLEAN, FOUND = Shape("clean", anomalies=0), Shape("findings")
PEERS = ("struct", "kafka-python")


def generated(directory: Path, shape: Shape) -> tuple[Path, Truth]:
    segment = directory / f"{shape.name}.log"
    return segment, generate(segment, shape, SEGMENT_MIB << 20)


def linked(segment: Path, mib: int) -> str:
    """Link a segment as so many partitions as have `mib` MiB together; return their root."""
    root = segment.with_name(f"{segment.stem}-{mib}")
    for number in range(mib // SEGMENT_MIB):
        partition = root / f"orders-{number}"
        partition.mkdir(parents=True)
        os.link(segment, partition / f"{0:020d}.log")
    return str(root)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=4096)
    parser.add_argument("--peer-mib", type=int, default=1024, help="of the jobs that users would write, which run once")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        (clean, _), (found, truth) = (generated(Path(place), shape) for shape in (CLEAN, FOUND))
        on_spark = [*KAUDIT, "--engine", "spark", "--master", options.master]
        jobs = {
            name: [*on_spark, linked(segment, options.mib)] for name, segment in (("clean", clean), ("findings", found))
        }
        root = linked(found, options.peer_mib) if options.peer_mib != options.mib else jobs["findings"][-1]
        beside = {"findings, less": [*on_spark, root], "local engine, less": [*KAUDIT, root]}
        peer = str(Path(__file__).with_name("spark_peers.py"))
        beside |= {f"{name}, less": [sys.executable, peer, name, options.master, root] for name in PEERS}
        turns = [*[name for _ in range(options.rounds) for name in jobs], *beside]
        costs: dict[str, list[tuple[float, float]]] = {}
        for name in turns:
            costs.setdefault(name, []).append(cost_of((jobs | beside)[name]))
    seconds, cpu = ({name: round(min(each[at] for each in own), 1) for name, own in costs.items()} for at in (0, 1))
    ratio = cpu["findings"] / cpu["clean"]
    print(
        json.dumps(
            {
                "MiB": options.mib, "MiB, less": options.peer_mib, "batches a segment": truth.batches,
                "findings a segment": len(truth.findings),
                "CPU s": cpu, "wall s": seconds,
                "findings / clean": round(ratio, 2), "load": os.getloadavg()[0],
            },
            indent=1,
        )
    )  # fmt: skip
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
