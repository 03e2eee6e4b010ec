"""Running and measuring whole processes."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")
PEERS = Path(__file__).with_name("peers.py")
KAUDIT = [sys.executable, "-m", "kaudit", "scan", "--exit-zero", "-q", "--output-format", "concise"]


@dataclass
class Cost:
    """Wall time of each of several runs, the least user and system time (s), the most memory (MB)."""

    walls: list[float] = field(default_factory=list)
    cpu: float = float("inf")
    memory: float = 0.0

    @property
    def wall(self) -> float:
        """The least wall time."""
        return min(self.walls)

    @property
    def median(self) -> float:
        """The median of the wall times."""
        return statistics.median(self.walls)


class Runner:
    """Runs commands, each with `prefix` before it; compiled modules are kept in `cache`, as an installation keeps them."""

    def __init__(self, prefix: list[str], cache: Path) -> None:
        self.prefix = prefix
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment["PYTHONPYCACHEPREFIX"] = str(cache / "pycache")

    def run(self, command: list[str], cost: Cost) -> None:
        """Run a command once and discard its output."""
        launched = [*self.prefix, sys.executable, "-S", "-E", str(LAUNCH), *command]
        done = subprocess.run(launched, capture_output=True, text=True, check=False, env=self.environment)
        if done.returncode:
            raise SystemExit(f"{command} ended with {done.returncode} {done.stderr}")
        measured = json.loads(done.stdout)
        cost.walls.append(measured["wall"])
        cost.cpu = min(cost.cpu, measured["cpu"])
        cost.memory = max(cost.memory, measured["memory"])

    def run_at_once(self, commands: list[list[str]], cost: Cost) -> None:
        """Run commands in parallel and discard their output; the wall time ends with the last one."""
        start = time.perf_counter()
        running = [
            subprocess.Popen(
                [*self.prefix, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment
            )
            for command in commands
        ]
        codes = [process.wait() for process in running]
        cost.walls.append(time.perf_counter() - start)
        if any(codes):
            raise SystemExit(f"{commands} ended with {codes}")

    def output(self, command: list[str]) -> str:
        """Run a command and return what it prints."""
        done = subprocess.run(
            [*self.prefix, *command], capture_output=True, text=True, check=True, env=self.environment
        )
        return done.stdout

    def interleaved(self, commands: dict[str, list[str]], rounds: int) -> dict[str, Cost]:
        """Run all commands in turn, `rounds` times; return the least cost of each."""
        costs = {name: Cost() for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                self.run(command, costs[name])
        return costs


def machine() -> str:
    """Name the processor, the versions and the load."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    versions = f"Python {platform.python_version()}"
    if shutil.which("java"):
        lines = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
        versions += f", {lines[0]}" if lines else ""
    return f"{model}, {os.cpu_count()} cores, {versions}, load {os.getloadavg()[0]:.1f} at the end"
