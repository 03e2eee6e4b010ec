"""Findings of lines of logs, in the layout of Kafka's log4j."""

from collections.abc import Sequence
from pathlib import Path

from kaudit.checks.check import Check
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.scanning.options import ScanOptions
from tests.logs import Log


def line(text: str, second: float = 0, level: str = "INFO", logger: str = "kafka.server.ReplicaManager") -> str:
    """An entry of a broker's log, `second` after 10 o'clock."""
    return f"[2026-08-18 10:{int(second // 60):02}:{second % 60:06.3f}] {level} {text} ({logger})".replace(".", ",", 1)


def append_error(partition: str, exception: str, second: float = 0) -> str:
    """How a leader logs that it refuses a batch."""
    head = line(
        f"[ReplicaManager broker=2] Error processing append operation on partition {partition}", second, "ERROR"
    )
    return f"{head}\norg.apache.kafka.common.errors.{exception}"


def out_of_order(
    base: int, last: int, second: float = 0, producer_id: int = 29003, partition: str = "merchants-0"
) -> str:
    """A batch that does not follow the last one."""
    return append_error(
        partition,
        f"OutOfOrderSequenceException: Out of order sequence number for producer {producer_id} at offset 1641969 in partition "
        f"{partition}: {base} (incoming seq. number), {last} (current end sequence number)",
        second,
    )


def initialized(transactional_id: str, producer_id: int, epoch: int, second: float = 0) -> str:
    """A coordinator hands out an epoch."""
    return line(
        f"[TransactionCoordinator id=1] Initialized transactionalId {transactional_id} with producerId {producer_id} and producer "
        f"epoch {epoch} on partition __transaction_state-2",
        second,
        logger="kafka.coordinator.transaction.TransactionCoordinator",
    )


def sender(text: str, second: float = 0, level: str = "WARN", client: str = "app") -> str:
    """What a Java producer logs."""
    return line(
        f"[Producer clientId={client}] {text}", second, level, "org.apache.kafka.clients.producer.internals.Sender"
    )


def all_findings(
    tmp_path: Path, *, server: Sequence[str] = (), client: Sequence[str] = (), log: Log | None = None
) -> Sequence[Finding]:
    """Scan logs of a broker and a client; beside a partition orders-0 where `log` is given."""
    paths = {}
    for name, lines in (("server", server), ("client", client)):
        paths[name] = [str(tmp_path / f"{name}.log")] if lines else []
        for path in paths[name]:
            Path(path).write_text("\n".join(lines) + "\n")
    partitions = [] if log is None else [str(log.write(tmp_path / "orders-0"))]
    options = ScanOptions(partitions, server_logs=paths["server"], client_logs=paths["client"])
    return scan(options, SilentProgress()).findings


def reported(check: Check, tmp_path: Path, **given: object) -> list[Finding]:
    """The findings of one check."""
    found = all_findings(tmp_path, **given)  # type: ignore[arg-type]
    return [finding for finding in found if finding.code == check.code]
