"""Bugs of Go's sarama."""

import subprocess
from pathlib import Path

from tests.bugs.recipe import Outcome, outcome_of
from tests.cluster import brokers

SOURCE = Path(__file__).parents[1] / "produce.go"
_MODULE = "module kaudit/bugs\n\ngo 1.20\n\nrequire github.com/Shopify/sarama v{}\n"
SENT, TAKEN_EVERY = 33_600, 4_070
"""So many records are sent, of which the broker takes every 4,070th and refuses the others as too large."""
LAST_EPOCH = 32_767
BUILD_SECONDS = SEND_SECONDS = 300


def spent_epochs(version: str, home: Path) -> Outcome:
    """Every record that fails raises the producer's epoch by itself, until there is none left."""
    client = home / "client"
    client.mkdir()
    (client / "go.mod").write_text(_MODULE.format(version))
    (client / "main.go").write_bytes(SOURCE.read_bytes())
    subprocess.run(["go", "build", "-mod=mod", "-o", "produce", "."], check=True, cwd=client, timeout=BUILD_SECONDS)
    with brokers.live(brokers.WITH_EITHER, home / "broker") as live:
        live.play({"name": "orders", "topic_config": {"max.message.bytes": "300"}, "steps": []})
        command = [str(client / "produce"), live.address(), str(SENT), str(TAKEN_EVERY)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=SEND_SECONDS)
        live.broker.stop(clean=True)
    *_, before, last = [line.split(" ", 2) for line in done.stdout.splitlines()]
    return outcome_of(
        f"{SENT} records were sent, most of them too large; record {before[0]} was written at offset {before[1]}, the "
        f"last one, behind {LAST_EPOCH} failures: {last[2]}",
        {"code": "KA204", "topic": "orders", "partition": 0, "offset": int(before[1])},
        happened="epoch" in last[2], logs=live.broker.logs, partitions=("orders-0",),
    )  # fmt: skip
