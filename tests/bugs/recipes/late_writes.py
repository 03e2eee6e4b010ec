"""A produce request that arrives when its transaction has ended."""

from pathlib import Path

from tests.bugs.recipe import COORDINATOR, Outcome, answer, outcome_of
from tests.cluster import brokers
from tests.conformance.recorder.topic import Step

TIMEOUT_MS, TIMED_OUT_MS = 2_000, 63_000
"""A transaction's timeout, and when the coordinator has looked: 0.11.0.0 does so every minute, whatever is configured."""
HELD_UP_MS = 500
"""How long before it arrived the request was made."""
MARKER = 2
"""Offset of the end marker, behind two records."""
_LATE: Step = {"op": "produce", "pid": "A", "epoch": "A", "seq": 2, "count": 2, "txn": True, "txn_id": "payments"}


def _begun(**timeout: int) -> list[Step]:
    return [
        {"op": "init_pid", "as": "A", "txn_id": "payments", **timeout},
        {"op": "add_partitions", "pid": "A", "epoch": "A", "txn_id": "payments"},
        {**_LATE, "seq": 0},
    ]


def after_abort(version: str, home: Path) -> Outcome:
    """The producer aborts while a request of the transaction is still under way, which then arrives."""
    end = {"op": "end_txn", "pid": "A", "epoch": "A", "txn_id": "payments", "commit": False}
    steps = [*_begun(), {"op": "sleep", "ms": 2 * HELD_UP_MS}, end, {**_LATE, "ts_ago": HELD_UP_MS}]
    return _play(version, home, steps, "after the abort marker of its transaction")


def after_timeout(version: str, home: Path) -> Outcome:
    """The coordinator aborts a transaction for its age; the producer, which does not learn it, writes on."""
    wait = {"op": "sleep", "ms": TIMED_OUT_MS}
    steps = [*_begun(timeout_ms=TIMEOUT_MS), wait, _LATE]
    return _play(version, home, steps, "after the coordinator had aborted its transaction for its age")


def _play(version: str, home: Path, steps: list[Step], when: str) -> Outcome:
    with brokers.live(version, home / "broker") as live:
        lines = live.play({"name": "orders", "steps": steps})
        live.broker.stop(clean=True)
        late = [line for line in lines if line[0]["op"] == "produce"][-1]
        attempt, answered = late
        happened = answered.get("base_offset") == MARKER + 1
        hanging = {
            "topic": "orders", "partition": 0, "producer_id": attempt["producer_id"],
            "producer_epoch": attempt["producer_epoch"], "offset": answered.get("base_offset"),
        }  # fmt: skip
        return outcome_of(
            f"a produce request of sequences 2 and 3 arrived {when}, in the same epoch: {answer(late)}",
            *({"code": code, **hanging} for code in ("KA301", "KA304")),
            happened=happened, logs=live.broker.logs, partitions=("orders-0", COORDINATOR),
        )  # fmt: skip
