"""What a broker writes beside the batches, and fails at."""

import contextlib
import itertools
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bugs.recipe import Outcome, outcome_of
from tests.bugs.recipes.cleaner import SMALL_INDEXES
from tests.cluster import brokers
from tests.conformance.recorder.batches import Sent
from tests.conformance.recorder.disk import positions_of
from tests.conformance.recorder.topic import clock
from tests.live_brokers.protocol import PRODUCE, Connection, ConnectionClosedError, produce_body

_SNAPSHOT_HEADER, _LAST_OFFSET = struct.Struct(">hIi"), struct.Struct(">8xhiq")
PRODUCE_VERSION = 5
WRITERS = 6


def snapshot_of_a_roll(version: str, home: Path) -> Outcome:
    """A batch begins a segment; the snapshot of that moment should know nothing of the batch."""
    step = {"op": "produce", "pid": "A", "epoch": "A", "seq": "next", "value_size": 150}
    steps = [{"op": "init_pid", "as": "A"}, step, step, step]
    with brokers.live(version, home / "broker") as live:
        live.play({"name": "orders", "topic_config": {"segment.bytes": "260"}, "steps": steps})
        live.broker.stop(clean=True)
        last = {int(path.stem): _last_offset(path) for path in live.broker.snapshots("orders", 0)}
        too_new = sorted(offset for offset, known in last.items() if known >= offset)
        found = {"code": "KA502", "topic": "orders", "partition": 0, "offset": min(too_new, default=None)}
        state = ", ".join(f"{known} in that of offset {offset}" for offset, known in sorted(last.items()))
        return outcome_of(
            f"an idempotent producer's batches each began a segment; its last offset in the snapshots: {state}",
            found, happened=bool(too_new), logs=live.broker.logs, partitions=("orders-0",),
        )  # fmt: skip


def _last_offset(snapshot: Path) -> int:
    data = snapshot.read_bytes()
    offset: int = _LAST_OFFSET.unpack_from(data, _SNAPSHOT_HEADER.size)[-1]
    return offset


def transaction_index_unwritable(version: str, home: Path) -> Outcome:
    """The index of aborted transactions cannot be written when a marker is appended while others write."""
    with brokers.live(version, home / "broker", SMALL_INDEXES) as live:
        writer = {"op": "produce", "pid": "A", "epoch": "A", "seq": 0, "txn": True, "txn_id": "payments"}
        lines = live.play({"name": "orders", "steps": [{"op": "init_pid", "as": "A"}, writer]})
        producer = lines[0][1]["producer_id"], lines[0][1]["producer_epoch"]
        (live.directory("orders") / f"{0:020}.txnindex").mkdir()
        ended = threading.Event()
        with ThreadPoolExecutor(WRITERS) as pool:
            for _ in range(WRITERS):
                pool.submit(_write_on, live.broker.port, ended)
            time.sleep(0.5)
            with contextlib.suppress(ConnectionClosedError):  # a broker without log directories ends
                live.connection.write_marker(0, producer, ("orders", 0), commit=False, coordinator_epoch=0)
            time.sleep(1)
            ended.set()
        live.broker.stop(clean=False)
        (live.directory("orders") / f"{0:020}.txnindex").rmdir()
        (segment,) = live.broker.segments("orders", 0)
        offsets = [offset for _, offset in positions_of(segment)]
        repeated = [after for before, after in itertools.pairwise(offsets) if after <= before]
        return outcome_of(
            f"the index of aborted transactions could not be written; offsets written twice: {repeated}",
            *({"code": "KA006", "topic": "orders", "partition": 0, "offset": offset} for offset in repeated),
            happened=bool(repeated), logs=live.broker.logs, partitions=("orders-0",),
        )  # fmt: skip


def _write_on(port: int, ended: threading.Event) -> None:
    connection = Connection(port)
    while not ended.is_set():
        data = Sent(-1, -1, -1, 1, clock(), {}).encode()
        try:
            connection.ask(PRODUCE, PRODUCE_VERSION, produce_body(PRODUCE_VERSION, None, 1, "orders", {0: data}))
        except (ConnectionClosedError, OSError):
            return
    connection.close()
