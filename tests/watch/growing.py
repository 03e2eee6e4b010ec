"""A log directory that changes as a broker changes it, and a watch of it."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.model.result import ScanResult
from kaudit.scanning.options import ScanOptions
from kaudit.watch.log_directories import LogDirectories
from kaudit.watch.memory import Memory
from kaudit.watch.watcher import Watcher
from tests.logs import Batch


def findings(result: ScanResult) -> dict[str, dict[str, object]]:
    """What a scan or a watch found, in full, by what distinguishes findings."""
    return {found.key: found.to_dict() for found in result.findings}


class Watching:
    """A watch that can be ended and begun again with what its state file would hold."""

    def __init__(self, directory: Path) -> None:
        self.options = ScanOptions(paths=[str(directory)])
        self.reported: dict[str, dict[str, object]] = {}
        self.repeated: list[str] = []
        self._begin(Memory())

    def _begin(self, memory: Memory) -> None:
        self.watcher = Watcher(self.options, LogDirectories(self.options), memory, lambda result: result)

    def restart(self) -> None:
        """End, and begin again."""
        self._begin(msgspec.json.decode(msgspec.json.encode(self.watcher.memory), type=Memory))

    def look(self, *, last: bool = False) -> None:
        """Go round once, and take note of what is reported."""
        for found in self.watcher.round(last=last).new:
            self.repeated += [found.key] if found.key in self.reported else []
            self.reported[found.key] = found.to_dict()

    def end(self) -> dict[str, dict[str, object]]:
        """Go round for the last time; return what is in the log."""
        self.look(last=True)
        return {} if self.watcher.result is None else findings(self.watcher.result)

    def scanned(self) -> dict[str, dict[str, object]]:
        """What a scan of the directory finds as it is."""
        try:
            return findings(local.scan(self.options, SilentProgress()))
        except NothingToAuditError:
            return {}


@dataclass
class GrowingLog:
    """One partition on disk. `pieces` are batches not written yet, `written` those in each segment, by base offset."""

    directory: Path
    written: dict[int, list[Batch]] = field(default_factory=dict)
    torn: bytes = b""

    def roll(self, base_offset: int) -> None:
        """Begin a segment."""
        self.flush()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.written[base_offset] = []
        self.file(base_offset).touch()

    def file(self, base_offset: int) -> Path:
        """The segment's file."""
        return self.directory / f"{base_offset:020d}.log"

    def append(self, batch: Batch, first_bytes: int | None = None) -> None:
        """Write a batch to the last segment; with `first_bytes` only these now, the rest with what follows."""
        self.flush()
        content = batch.encode()
        active = max(self.written)
        self.written[active].append(batch)
        with self.file(active).open("ab") as file:
            file.write(content[:first_bytes])
        self.torn = b"" if first_bytes is None else content[first_bytes:]

    def flush(self) -> None:
        """Write what is left of a batch."""
        if self.torn:
            with self.file(max(self.written)).open("ab") as file:
                file.write(self.torn)
        self.torn = b""

    def delete_head(self) -> None:
        """Let retention delete the oldest segment, unless it is the last."""
        if len(self.written) > 1:
            oldest = min(self.written)
            del self.written[oldest]
            self.file(oldest).unlink()

    def compact(self, keep: int) -> None:
        """Let the cleaner rewrite the closed segments: of their batches of data every `keep`-th is gone."""
        for base in sorted(self.written)[:-1]:
            batches = self.written[base]
            kept = [batch for number, batch in enumerate(batches) if (number + 1) % keep or batch.control is not None]
            if len(kept) < len(batches):
                self.written[base] = kept
                cleaned = self.directory / f"{base:020d}.log.cleaned"
                cleaned.write_bytes(b"".join(batch.encode() for batch in kept))
                swap = cleaned.with_name(f"{base:020d}.log.swap")
                cleaned.rename(swap)
                swap.rename(self.file(base))
        checkpoint = self.directory.parent / "cleaner-offset-checkpoint"
        topic, _, partition = self.directory.name.rpartition("-")
        checkpoint.write_text(f"0\n1\n{topic} {partition} {max(self.written)}\n")

    def truncate(self, batches: int) -> int | None:
        """Cut off the last batches, as after an unclean election; return the offset the log now ends at."""
        self.flush()
        end = None
        for _ in range(batches):
            while len(self.written) > 1 and not self.written[max(self.written)]:
                last = max(self.written)
                del self.written[last]
                self.file(last).unlink()
            if not self.written[max(self.written)]:
                break
            end = self.written[max(self.written)].pop().base_offset
        active = max(self.written)
        with self.file(active).open("r+b") as file:
            file.truncate(sum(len(batch.encode()) for batch in self.written[active]))
        return end

    def remove(self) -> None:
        """Delete the partition, as with its topic."""
        gone = self.directory.with_name(f"{self.directory.name}.{'0' * 32}-delete")
        self.directory.rename(gone)
        shutil.rmtree(gone)
