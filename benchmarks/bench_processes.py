"""Savings of kaudit's own processes over concurrent.futures: CPU time to read all ranges and take their rows, interleaved.

    uv run python -m benchmarks.bench_processes [--rounds 5] [--processes 2] DIRECTORY...

prints a Markdown table, a row for each directory: seconds of CPU of this process and its children, the least of the rounds.
The difference grows with the rows of a log: own processes send large columns without a copy (kaudit/engines/processes.py).
"""

import argparse
import multiprocessing
import resource
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from kaudit.engines.processes import read_in_processes
from kaudit.engines.ranges import Range, RangeRead, ranges, read_most, reads
from kaudit.reading.chunk_reader import CHUNK_BYTES
from kaudit.reading.chunk_rows import Outcome
from kaudit.reading.chunk_size import fixed_size
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs

_IN_FLIGHT = 3
Read = Callable[[Iterator[Range], int], Iterator[RangeRead]]


def own(found: Iterator[Range], processes: int) -> Iterator[RangeRead]:
    """Read with kaudit's own processes."""
    return read_in_processes(found, processes, "fork")


def futures(found: Iterator[Range], processes: int) -> Iterator[RangeRead]:
    """Read with concurrent.futures, as many ranges in flight."""
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        waiting: deque[tuple[Range, Future[list[Outcome]]]] = deque()
        for entry in found:
            waiting.append((entry, pool.submit(read_most, entry.spec)))
            if len(waiting) >= processes * _IN_FLIGHT:
                first, read = waiting.popleft()
                yield from reads(first, read.result())
        for first, read in waiting:
            yield from reads(first, read.result())


def cpu_seconds(read: Read, directory: Path, processes: int) -> float:
    """CPU time of reading a directory, start of the processes included."""
    options = ScanOptions([str(directory)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    began = _spent()
    for _ in read(ranges(jobs, [fixed_size(CHUNK_BYTES) for _ in jobs]), processes):
        pass
    return _spent() - began


def _spent() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    print("| directory | own processes, s | concurrent.futures, s | saved |\n|---|---|---|---|")
    for directory in given.directories:
        least = dict.fromkeys((own, futures), float("inf"))
        for _ in range(given.rounds):
            for read in least:
                least[read] = min(least[read], cpu_seconds(read, directory, given.processes))
        saved = 1 - least[own] / least[futures]
        print(f"| {directory} | {least[own]:.2f} | {least[futures]:.2f} | {saved:.0%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
