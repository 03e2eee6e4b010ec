"""Copies of one small partition in log directories with the ids that brokers write beside them."""

from pathlib import Path

from tests.logs import Log, data


def log_directory(
    place: Path,
    name: str = "orders-0",
    *,
    records: int = 4,
    leader_epoch: int = 0,
    cluster: str | None = None,
    broker: int = 1,
    disk: str | None = None,
    topic: str | None = None,
) -> Path:
    """Write a partition of `records` batches and the ids; return the log directory."""
    log = Log()
    for number in range(records):
        log.append(data(100, 0, number, leader_epoch=leader_epoch))
    log.write(place / name)
    if cluster is not None:
        disks = "" if disk is None else f"directory.id={disk}\n"
        (place / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={broker}\n{disks}")
    if topic is not None:
        (place / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic}\n")
    return place
