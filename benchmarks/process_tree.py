"""Cost of this process and its descendants: CPU seconds, and the most memory of each kind. Linux only, from /proc."""

import os
import re
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on, None if the process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def below() -> dict[int, list[str]]:
    """Return the fields of this process and of all below it."""
    found = {int(entry.name): _stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    fields = {process: stat for process, stat in found.items() if stat is not None}
    chosen = {os.getpid()}
    while more := {process for process, stat in fields.items() if int(stat[1]) in chosen} - chosen:
        chosen |= more
    return {process: fields[process] for process in chosen if process in fields}


def cpu_seconds() -> float:
    """Return the user and system time of all of them and of the children they have waited for; for descendants in steps of 10 ms."""
    ticks = {process: list(map(int, stat[11:15])) for process, stat in below().items()}
    own = ticks.pop(os.getpid())
    return time.process_time() + _TICK * (sum(own[2:]) + sum(map(sum, ticks.values())))


def cost_of(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds, and the CPU seconds of it and of all below it as far as they were seen, 0.1 s apart.

    The system adds those of Spark's workers to nobody's: their daemon ignores SIGCHLD.
    """
    seen: dict[int, int] = {}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        seen |= {number: int(stat[11]) + int(stat[12]) for number, stat in below().items() if number != os.getpid()}
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - start, _TICK * sum(seen.values())


class PeakMemory:
    """The highest VmHWM (MiB) of this process and of each kind below it, sampled while the body runs."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        self.look()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            self.look()

    def look(self) -> None:
        """Take the peaks so far of the processes that run."""
        for process in below():
            try:
                command = Path(f"/proc/{process}/cmdline").read_text()
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue  # it has ended
            peak, kind = re.search(r"VmHWM:\s+(\d+)", status), _kind(process, command)
            if peak is not None and kind is not None:
                self.peaks[kind] = max(self.peaks.get(kind, 0), int(peak[1]) >> 10)


def _kind(process: int, command: str) -> str | None:
    if process == os.getpid():
        return "driver's Python"
    if "pyspark.daemon" in command or "benchmarks" in command:
        return "largest worker"
    if "CoarseGrainedExecutorBackend" in command:
        return "executor's JVM"
    return "driver's JVM" if "java" in command else None
