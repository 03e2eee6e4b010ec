"""A partition's history and replicas of it, made by hand: what each holds is known before anything is read."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.logs import Batch

TOPIC = "orders"


@dataclass
class Copy:
    """One replica: batches at their offsets, where segments begin, and the leader epochs it knows (epoch, start)."""

    batches: list[Batch] = field(default_factory=list)
    rolls: tuple[int, ...] = ()
    checkpoint: list[tuple[int, int]] | None = None
    high_watermark: int | None = None

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def append(self, count: int, epoch: int, payload: bytes, **more: object) -> "Copy":
        """Append a batch; `more` are fields of it."""
        batch = Batch(count=count, base_offset=self.end, leader_epoch=epoch, payload=payload, **more)  # type: ignore[arg-type]
        self.batches.append(batch)
        return self

    def copy(self) -> "Copy":
        return replace(self, batches=list(self.batches))

    def write(self, log_dir: Path) -> Path:
        """Write the partition into a broker's log directory; return that directory."""
        partition = log_dir / f"{TOPIC}-0"
        partition.mkdir(parents=True)
        starts = sorted({self.batches[0].base_offset, *self.rolls} if self.batches else {0})
        files = {start: bytearray() for start in starts}
        for batch in self.batches:
            files[max(start for start in starts if start <= batch.base_offset)] += batch.encode()
        for start, content in files.items():
            (partition / f"{start:020d}.log").write_bytes(content)
        if self.checkpoint is not None:
            rows = "".join(f"{epoch} {start}\n" for epoch, start in self.checkpoint)
            (partition / "leader-epoch-checkpoint").write_text(f"0\n{len(self.checkpoint)}\n{rows}")
        if self.high_watermark is not None:
            text = f"0\n1\n{TOPIC} 0 {self.high_watermark}\n"
            (log_dir / "replication-offset-checkpoint").write_text(text)
        return log_dir


def broker(log_dir: Path, number: int, *, cluster: str | None = "cluster", directory: str | None = None) -> Path:
    """Write the meta.properties of a broker into its log directory; return that directory."""
    ids = {"node.id": number, "cluster.id": cluster, "directory.id": directory}
    lines = "".join(f"{key}={value}\n" for key, value in ids.items() if value is not None)
    (log_dir / "meta.properties").write_text(f"#\nversion=1\n{lines}")
    return log_dir


def history(*epochs: tuple[int, int]) -> Copy:
    """A log of one batch of two records for each of `batches`, by (leader epoch, batches)."""
    log = Copy()
    for epoch, batches in epochs:
        for number in range(batches):
            log.append(2, epoch, b"%d-%d" % (epoch, number))
    return log
