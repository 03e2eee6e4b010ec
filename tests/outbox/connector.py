"""A connector as Debezium's outbox event router is one, over an outbox table in SQLite: its log, and the truth about it.

An application writes an order and its event in one transaction. The connector reads the table by id, writes each event with the header
`id` of its row, and stores its offset now and then, as Kafka Connect does; killed in between, it begins again at the offset it stored.
"""

import random
import sqlite3
import struct
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tests.formats import encoders
from tests.logs import BASE_TIMESTAMP

MOST_IN_A_BATCH = 4


@dataclass
class Truth:
    """Offsets of each event that was written again, by the offset of its first copy."""

    first: dict[str, int] = field(default_factory=dict)
    again: list[tuple[int, int]] = field(default_factory=list)
    records: int = 0


class Outbox:
    """The table, the connector, and the partition that it writes."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._table = sqlite3.connect(":memory:")
        self._table.execute("CREATE TABLE outbox (row INTEGER PRIMARY KEY, id TEXT, aggregate TEXT, payload TEXT)")
        self._table.execute("CREATE TABLE offsets (row INTEGER)")
        self._table.execute("INSERT INTO offsets VALUES (0)")
        self._batches: list[bytes] = []
        self._producer = 0
        self._clock = BASE_TIMESTAMP
        self.truth = Truth()

    def events(self, count: int) -> None:
        """Let the application write events; some of them say the same as others and are others all the same."""
        for _ in range(count):
            event = str(uuid.UUID(int=self._chance.getrandbits(128)))
            order, state = self._chance.randint(1, 5), self._chance.choice(("paid", "sent"))
            row = event, str(order), f'{{"order": {order}, "state": "{state}"}}'
            with self._table:
                self._table.execute("INSERT INTO outbox (id, aggregate, payload) VALUES (?, ?, ?)", row)

    def run(self, most: int) -> None:
        """Start the connector with a new producer, and kill it after so many events at most."""
        self._producer += 1
        (row,) = self._table.execute("SELECT row FROM offsets").fetchone()
        sequence = 0
        while most > 0:
            size = min(self._chance.randint(1, MOST_IN_A_BATCH), most)
            rows = self._table.execute(
                "SELECT * FROM outbox WHERE row > ? ORDER BY row LIMIT ?", (row, size)
            ).fetchall()
            if not rows:
                return
            self._write(rows, sequence)
            row, sequence, most = rows[-1][0], sequence + len(rows), most - len(rows)
            if self._chance.random() < 0.3:
                self._table.execute("UPDATE offsets SET row = ?", (row,))

    def _write(self, rows: list[tuple[int, str, str, str]], sequence: int) -> None:
        self._clock += 20
        base = self.truth.records
        records = []
        for at, (_, event, aggregate, payload) in enumerate(rows):
            trace = struct.pack(">q", self._chance.getrandbits(60))
            headers = [(b"id", event.encode()), (b"traceparent", trace)]
            records.append(encoders.record(at, 0, aggregate.encode(), payload.encode(), headers))
            if self.truth.first.setdefault(event, base + at) != base + at:
                self.truth.again.append((base + at, self.truth.first[event]))
        header = {"producer_id": self._producer, "producer_epoch": 0, "base_sequence": sequence}
        self._batches.append(encoders.batch(records, base, base_timestamp=self._clock, **header))
        self.truth.records += len(rows)

    def write(self, directory: Path) -> Path:
        """Write the partition's log."""
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(b"".join(self._batches))
        return directory
