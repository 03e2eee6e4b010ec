"""A marker of a coordinator that was replaced, accepted because the partition's leader forgot the producer too early."""

from pathlib import Path

from tests.bugs.recipe import Outcome, outcome_of
from tests.cluster import brokers

NEW_EPOCH, OLD_EPOCH = 1, 0
"""Of the coordinator that leads the transaction log now, and of the one before."""


def marker_after_expiry(version: str, home: Path) -> Outcome:
    """A transaction is aborted for its age, its producer forgotten at a restart, then the former coordinator ends it too."""
    writer = {"pid": "A", "epoch": "A"}
    marker = {"op": "write_marker", "pid": "A", "epoch": "A+1", "commit": False}
    steps = [
        {"op": "init_pid", "as": "A"},
        {"op": "produce", **writer, "seq": 0, "count": 2, "txn": True, "txn_id": "payments"},
        {**marker, "coord_epoch": NEW_EPOCH},
        {"op": "barrier", "kind": "clean"},
        {**marker, "coord_epoch": OLD_EPOCH},
    ]
    with brokers.live(version, home / "broker") as live:
        lines = live.play({"name": "orders", "steps": steps})
        live.broker.stop(clean=True)
        attempt, answered = [line for line in lines if line[0]["op"] == "write_marker"][-1]
        return outcome_of(
            f"a coordinator of epoch {NEW_EPOCH} aborted a transaction at offset 2, the broker was started again, and a "
            f"marker of coordinator epoch {OLD_EPOCH} arrived: {answered['error']}",
            {"code": "KA205", "topic": "orders", "partition": 0, "producer_id": attempt["producer_id"], "offset": 3},
            happened=answered["outcome"] == "ok",
            logs=live.broker.logs, partitions=("orders-0",),
        )  # fmt: skip
