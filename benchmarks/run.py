"""Run all benchmarks and print them as Markdown: `uv run python -m benchmarks.run [--output FILE]`.

Whole processes on the same warm segment, rounds interleaved, the least of each (in the first table the median too), ratios formed within a log only. What is
found is compared with the truth before anything is measured. On a busy machine `--prefix "chrt -f 10"` keeps others out.
"""

import argparse
import datetime as dt
import json
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.dump_log import dump_log_command
from benchmarks.generate import Shape, Truth, generate
from benchmarks.growth import AXES, peers, table
from benchmarks.processes import KAUDIT, Cost, Runner, machine

LARGE = Shape("large", records=(16, 16), value_bytes=(1000, 1040))
SHAPES = (
    Shape("small"),
    LARGE,
    replace(LARGE, name="lz4", codec="lz4"),
    replace(LARGE, name="zstd", codec="zstd"),
    Shape("mixed", mixed=0.05),
    Shape("transactional v1", transactions=1),
    Shape("transactional v2", transactions=2),
    Shape("50,000 ids", producers=50_000),
    Shape("sparse ids", stride=10**9 + 7),
    Shape("no faults", anomalies=0),
    Shape("many faults", anomalies=2e-3),
)
"""Each has a fault in 12,500 batches, unless it says otherwise; *many faults* one in 125."""
LONGER = {"small": 8, "large": 28, "lz4": 28, "zstd": 28}
"""These logs are this many times as long, because otherwise most of the measured time would be start-up."""
DEPTHS = ("headers", "crc", "records")
GIB_SHAPES = (Shape("1 KB", value_bytes=(800, 1200), anomalies=0), replace(LARGE, name="16 KiB", anomalies=0))
GIB_SIZES = (0.25, 1, 4)
SEGMENT_BYTES = 1 << 30
"""The brokers' default for log.segment.bytes."""
MIB = 1 << 20
Table = list[str]


@dataclass
class Result:
    """The measurements of one log."""

    shape: Shape
    truth: Truth
    costs: dict[str, Cost]
    inside: dict[str, Any]


def contenders(segment: Path, dump_log: list[str] | str) -> dict[str, list[str]]:
    directory = str(segment.parent)
    own = {"kaudit": [*KAUDIT, directory], "kaudit --jobs 1": [*KAUDIT, "--jobs", "1", directory]}
    return own | peers([str(segment)], dump_log)


def check_truth(runner: Runner, directory: Path, truth: Truth) -> None:
    every = ["--max-findings", str(truth.batches)]  # else only the first of each check are listed
    document = json.loads(runner.output([*KAUDIT[:-1], "json", *every, str(directory)]))
    found = {(entry["code"], entry["offset"]) for entry in document["findings"] if entry["severity"] == "error"}
    if found != truth.findings or document["summary"]["batches"] + _corrupt(truth) != truth.batches:
        raise SystemExit(f"{directory.name}: missed {truth.findings - found}, invented {found - truth.findings}")


def _corrupt(truth: Truth) -> int:
    return sum(code == "KA001" for code, _ in truth.findings)


def inside(runner: Runner, directories: list[Path], rounds: int, *depths: str) -> list[dict[str, Any]]:
    asked = [word for depth in depths for word in ("--depth", depth)]
    command = [sys.executable, "-m", "benchmarks.inside", str(rounds), *map(str, directories), *asked]
    return [json.loads(line) for line in runner.output(command).splitlines()]


def whole_processes(results: list[Result]) -> Table:
    names = list(results[0].costs)
    lines = ["| log | batches | MiB | " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) + 2)]
    for result in results:
        cells = [result.shape.name, f"{result.truth.batches:,}", f"{result.truth.bytes / MIB:.0f}"]
        cells += [f"{cost.wall:.2f}, {cost.median:.2f}" for cost in map(result.costs.__getitem__, names)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def ratios(results: list[Result]) -> Table:
    lines = [
        "| log | dump-log / kaudit | dump-log / --jobs 1 | --jobs 1 / all | MB | us a batch | times small | CRC passes |",
        "|---|" + "---:|" * 7,
    ]
    plain = next((_each(result) for result in results if result.shape.name == "small"), None)
    for result in results:
        every, one = result.costs["kaudit"], result.costs["kaudit --jobs 1"]
        java = result.costs.get("kafka-dump-log")
        cells = [result.shape.name]
        cells += [f"{java.wall / every.wall:.1f}", f"{java.wall / one.wall:.1f}"] if java else ["-", "-"]
        cells += [f"{one.wall / every.wall:.2f}", f"{max(one.memory, every.memory):.0f}"]
        cells += [f"{_each(result):.2f}", f"{_each(result) / plain:.1f}" if plain else "-"]
        cells += [f"{result.inside['scan']['crc'] / result.inside['crc_pass']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _each(result: Result) -> float:
    seconds: float = result.inside["scan"]["crc"]
    batches: int = result.inside["batches"]
    return seconds / batches * 1e6


def start_up(runner: Runner, place: Path) -> str:
    """Cost of a scan of a tiny log."""
    partition = place / "log-0"
    partition.mkdir()
    generate(partition / f"{0:020d}.log", Shape("tiny", anomalies=0), 1000)
    cost = runner.interleaved({"kaudit": [*KAUDIT, str(partition)]}, 6)["kaudit"]
    shutil.rmtree(partition)
    return f"A scan of one kilobyte takes {cost.wall:.2f} s and {cost.memory:.0f} MB."


def depths(runner: Runner, place: Path, mib: int) -> Table:
    lines = ["| log | headers | crc | records |", "|---|---:|---:|---:|"]
    for shape in SHAPES[:4]:
        partition = place / f"depth{len(lines)}-0"
        partition.mkdir()
        generate(partition / f"{0:020d}.log", shape, mib * MIB)
        (measured,) = inside(runner, [partition], 3, *DEPTHS)
        cells = [measured["scan"][depth] / measured["scan"]["crc"] for depth in DEPTHS]
        lines.append(f"| {shape.name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
        shutil.rmtree(partition)
    return lines


def spread(runner: Runner, place: Path, mib: int, rounds: int) -> Table:
    """One process and all, of one large segment and of the same bytes as sixteen partitions; and what the machine gives.

    That is how much more a scan a core, all at once and none knowing of another, get done than one by itself: cores share
    memory and caches, and on a rented machine perhaps one core.
    """
    cores = os.cpu_count() or 1
    lines = [f"| input | s, --jobs 1 | s, all cores | times | {cores} scans at once, times |", "|---|" + "---:|" * 4]
    for name, partitions in (("one segment", 1), ("16 partitions", 16)):
        root = place / f"spread{partitions}"
        for number in range(partitions):
            partition = root / f"log-{number}"
            partition.mkdir(parents=True)
            generate(partition / f"{0:020d}.log", SHAPES[0], 8 * mib * MIB // partitions, seed=number)
        alone, costs = [*KAUDIT, "--jobs", "1", str(root)], {name: Cost() for name in ("one", "all", "at once")}
        for _ in range(rounds):
            runner.run(alone, costs["one"])
            runner.run([*KAUDIT, str(root)], costs["all"])
            runner.run_at_once([alone] * cores, costs["at once"])
        one, every, at_once = (costs[name].wall for name in ("one", "all", "at once"))
        gains = f"{one / every:.2f} | {cores * one / at_once:.2f}"
        lines.append(f"| {name}, {8 * mib} MiB | {one:.2f} | {every:.2f} | {gains} |")
        shutil.rmtree(root)
    return lines


def gib(runner: Runner, place: Path, cache: Path) -> Table:
    """Logs of one partition, a segment a GiB as brokers write them."""
    dump_log = dump_log_command(cache)
    lines = [
        "| batches | GiB | s | s, --jobs 1 | MB | kafka-dump-log | dump-log / kaudit | dump-log / --jobs 1 |",
        "|---|" + "---:|" * 7,
    ]
    for shape in GIB_SHAPES:
        for size in GIB_SIZES:
            partition = place / "growth-0"
            partition.mkdir()
            generate(partition / f"{0:020d}.log", shape, int(size * 1024 * MIB), segment_bytes=SEGMENT_BYTES)
            commands = {"all": [*KAUDIT, str(partition)], "one": [*KAUDIT, "--jobs", "1", str(partition)]}
            if isinstance(dump_log, list):
                commands["dump-log"] = [*dump_log, ",".join(map(str, sorted(partition.glob("*.log"))))]
            costs = runner.interleaved(commands, 3)
            every, one, java = costs["all"], costs["one"], costs.get("dump-log")
            cells = [shape.name, f"{size}", f"{every.wall:.2f}", f"{one.wall:.2f}"]
            cells += [f"{max(every.memory, one.memory):.0f}"]
            cells += (
                [f"{number:.1f}" for number in (java.wall, java.wall / every.wall, java.wall / one.wall)]
                if java
                else 3 * ["-"]
            )
            lines.append("| " + " | ".join(cells) + " |")
            shutil.rmtree(partition)
    return lines


def growth(runner: Runner, place: Path, cache: Path) -> Table:
    """The tables of benchmarks.growth: 16 GiB, a million findings, two million ids, 100,000 segments and partitions."""
    return [line for axis in AXES for line in ["", *table(runner, place, axis, 1, dump_log_command(cache))[0]]]


def cold(runner: Runner, place: Path, mib: int) -> Table:
    """From disk: the page cache forgets the file before each run."""
    if not hasattr(os, "posix_fadvise"):
        return ["Cold files were not measured: this system has no posix_fadvise to drop a file from the page cache."]
    partition = place / "cold-0"
    partition.mkdir()
    segment = partition / f"{0:020d}.log"
    generate(segment, SHAPES[1], 8 * mib * MIB)
    commands = {"cat": ["cat", str(segment)], "kaudit --jobs 1": [*KAUDIT, "--jobs", "1", str(partition)]}
    warm, forgotten = runner.interleaved(commands, 3), {name: Cost() for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            _forget(segment)
            runner.run(command, forgotten[name])
    lines = ["| large, from disk | s, cold | s, warm |", "|---|---:|---:|"]
    lines += [f"| {name} | {forgotten[name].wall:.2f} | {warm[name].wall:.2f} |" for name in commands]
    shutil.rmtree(partition)
    return lines


def _forget(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def spark(runner: Runner, place: Path, mib: int) -> Table:
    if find_spec("pyspark") is None or shutil.which("java") is None:
        return ["Spark was not measured: pyspark or Java is missing."]
    partition = place / "spark-0"
    partition.mkdir()
    truth = generate(partition / f"{0:020d}.log", SHAPES[0], 8 * mib * MIB)
    cores = f"local[{os.cpu_count()}]"
    commands = {"local": [*KAUDIT, str(partition)]}
    commands["spark"] = [*KAUDIT, "--engine", "spark", "--master", cores, str(partition)]
    costs = runner.interleaved(commands, 2)
    shutil.rmtree(partition)
    return [
        f"| engine, {truth.batches:,} small batches | s |",
        "|---|---:|",
        f"| local | {costs['local'].wall:.1f} |",
        f"| Spark, `{cores}`, session and JVM included | {costs['spark'].wall:.1f} |",
    ]


def measure(runner: Runner, place: Path, shapes: list[Shape], options: argparse.Namespace) -> list[Result]:
    dump_log = dump_log_command(options.cache)
    results = []
    for number, shape in enumerate(shapes):
        partition = place / f"log{number}-0"
        partition.mkdir()
        segment = partition / f"{0:020d}.log"
        truth = generate(segment, shape, options.mib * LONGER.get(shape.name, 1) * MIB)
        check_truth(runner, partition, truth)
        costs = runner.interleaved(contenders(segment, dump_log), options.rounds)
        (own,) = inside(runner, [partition], options.rounds)
        results.append(Result(shape, truth, costs, own))
        say(f"{shape.name}: done")
        shutil.rmtree(partition)
    if isinstance(dump_log, str):
        say(f"kafka-dump-log was not measured: {dump_log}")
    return results


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mib", type=int, default=64, help="size of each log; small: four times that, large batches: eight times"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="", help="names, separated by semicolons, or none (default: all)")
    parser.add_argument("--without", default="", help="sections to leave out: depths,spread,gib,growth,cold,spark")
    parser.add_argument("--prefix", default="", help="a command in front of each measured one, such as 'chrt -f 10'")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kaudit-benchmarks", help="Kafka's jars")
    parser.add_argument("--directory", type=Path, help="where the logs are made (default: the temporary directory)")
    parser.add_argument("--output", type=Path, help="write the Markdown here too")
    options = parser.parse_args()
    shapes = [shape for shape in SHAPES if not options.shapes or shape.name in options.shapes.split(";")]
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kaudit-benchmarks-", dir=options.directory) as name:
        place = Path(name)
        runner = Runner(shlex.split(options.prefix), options.cache)
        starting = start_up(runner, place)
        results = measure(runner, place, shapes, options)
        if results:
            lines += ["Seconds, whole process, least and median:", "", *whole_processes(results), "", starting, ""]
            lines += ["Ratios; the last three columns inside a process:", "", *ratios(results)]
        sections = {
            "depths": lambda: depths(runner, place, max(options.mib // 2, 1)),
            "spread": lambda: spread(runner, place, options.mib, options.rounds),
            "gib": lambda: gib(runner, place, options.cache),
            "growth": lambda: growth(runner, place, options.cache),
            "cold": lambda: cold(runner, place, options.mib),
            "spark": lambda: spark(runner, place, options.mib),
        }
        for section, make in sections.items():
            if section not in options.without.split(","):
                lines += ["", *make()]
                say(f"{section}: done")
    arguments = shlex.join(["benchmarks.run", *sys.argv[1:]])
    text = (
        "\n".join([f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, {machine()}; `python -m {arguments}`", "", *lines]) + "\n"
    )
    print(text)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
