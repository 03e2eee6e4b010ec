"""The little of Kafka's wire protocol a recorder needs: requests as bytes, answers as plain values.

Old, fixed layouts wherever every release understands them; the flexible ones (compact arrays, tagged fields) only where
a release or a scenario needs them. Source: the message definitions of the apache/kafka project.
"""

import socket
import struct
from typing import NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR = 0, 1, 2, 3, 10
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = 18, 19, 20, 21
INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, WRITE_MARKERS, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 27, 28
CREATE_ACLS = 30
ELECT_LEADERS, REASSIGN_PARTITIONS = 43, 45
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS = 61, 65

FLEXIBLE_FROM = {
    PRODUCE: 9,
    INIT_PRODUCER_ID: 2,
    ADD_PARTITIONS: 3,
    END_TXN: 3,
    WRITE_MARKERS: 1,
    TXN_OFFSET_COMMIT: 3,
    ELECT_LEADERS: 2,
    REASSIGN_PARTITIONS: 0,
    DESCRIBE_PRODUCERS: 0,
    DESCRIBE_TRANSACTIONS: 0,
}
CLIENT = b"recorder"
TIMEOUT_SECONDS = 30
FETCH_BYTES = 50 << 20
READ_COMMITTED = 1
EARLIEST, LATEST = -2, -1
OF_GROUP, OF_TRANSACTION = b"\0", b"\1"
"""Whose coordinator is asked for."""
ACL_RESOURCES = {"topic": 2, "cluster": 4, "transactional_id": 5}
ACL_OPERATIONS = {"READ": 3, "WRITE": 4, "DESCRIBE": 8, "DESCRIBE_CONFIGS": 10}
_LITERAL, _ALLOW = 3, 3
_FIRST_PRODUCE_OF_TRANSACTIONS = 3
FIRST_PRODUCE_WITH_TOPIC_IDS = 13
_FIRST_INIT_OF_TWO_PHASES = 6


class ConnectionClosedError(Exception):
    """The broker hung up instead of answering."""


class Reader:
    """Values in the order they lie in an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def position(self) -> int:
        """Where the next value begins."""
        return self._at

    def number(self, layout: str) -> int:
        """One number of a struct layout character."""
        value: int = struct.unpack_from(f">{layout}", self._data, self._at)[0]
        self._at += struct.calcsize(f">{layout}")
        return value

    def varint(self) -> int:
        """An unsigned varint."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def string(self, *, compact: bool = False) -> str | None:
        """A string, None for null."""
        size = self.varint() - 1 if compact else self.number("h")
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def count(self, *, compact: bool = False) -> int:
        """An array's length, 0 for null."""
        return max(self.varint() - 1 if compact else self.number("i"), 0)

    def tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self.varint()):
            self.varint()
            self._at += self.varint()


def string(text: str | None, *, compact: bool = False) -> bytes:
    """A nullable string."""
    data = b"" if text is None else text.encode()
    if compact:
        return varint(0 if text is None else len(data) + 1) + data
    return struct.pack(">h", -1 if text is None else len(data)) + data


def varint(number: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _count(number: int, *, compact: bool) -> bytes:
    return varint(number + 1) if compact else struct.pack(">i", number)


def request(api: int, version: int, correlation: int, body: bytes) -> bytes:
    """A request with its size and header."""
    header = struct.pack(">hhih", api, version, correlation, len(CLIENT)) + CLIENT
    if version >= FLEXIBLE_FROM.get(api, 1 << 15):
        header += b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


class Appended(NamedTuple):
    """A partition's answer to a produce request."""

    error: int
    base_offset: int


class Led(NamedTuple):
    """A partition's leader, -1 for none, and the replicas that are in sync with it."""

    leader: int
    in_sync: list[int]


class Fetched(NamedTuple):
    """What a fetch returns of a partition besides its records."""

    error: int
    high_watermark: int
    last_stable_offset: int
    aborted: list[dict[str, int]]


def produce_body(
    version: int, transactional_id: str | None, acks: int, topic: str | bytes, sent: dict[int, bytes]
) -> bytes:
    """A produce request; `sent` is a record set per partition, `topic` a name, or 16 bytes of id from version 13 on."""
    compact = version >= FLEXIBLE_FROM[PRODUCE]
    end = b"\0" if compact else b""
    named = topic if isinstance(topic, bytes) else string(topic, compact=compact)
    topics = named + _count(len(sent), compact=compact)
    for partition, records in sent.items():
        size = varint(len(records) + 1) if compact else struct.pack(">i", len(records))
        topics += struct.pack(">i", partition) + size + records + end
    head = string(transactional_id, compact=compact) if version >= _FIRST_PRODUCE_OF_TRANSACTIONS else b""
    head += struct.pack(">hi", acks, TIMEOUT_SECONDS * 1000)
    return head + _count(1, compact=compact) + topics + end + end


def read_produced(version: int, reader: Reader) -> dict[int, Appended]:
    """Read the answer to `produce_body`, per partition."""
    compact = version >= FLEXIBLE_FROM[PRODUCE]
    reader.count(compact=compact)
    if version >= FIRST_PRODUCE_WITH_TOPIC_IDS:
        reader.number("q"), reader.number("q")
    else:
        reader.string(compact=compact)
    produced = {}
    for _ in range(reader.count(compact=compact)):
        partition = reader.number("i")
        produced[partition] = Appended(reader.number("h"), reader.number("q"))
        if version >= 2:
            reader.number("q")
        if version >= 5:
            reader.number("q")
        if version >= 8:
            for _ in range(reader.count(compact=compact)):
                reader.number("i")
                reader.string(compact=compact)
                if compact:
                    reader.tags()
            reader.string(compact=compact)
        if compact:
            reader.tags()
    return produced


class Connection:
    """One connection to the broker on a loopback port; opened again when it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._correlation = 0

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, api: int, version: int, body: bytes) -> None:
        """Send a request without waiting."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), TIMEOUT_SECONDS)
        self._correlation += 1
        try:
            self._socket.sendall(request(api, version, self._correlation, body))
        except OSError as error:
            self.close()
            raise ConnectionClosedError from error

    def receive(self, api: int, version: int) -> Reader:
        """Wait for the next answer. Raises ConnectionClosedError."""
        reader = Reader(self._read(struct.unpack(">i", self._read(4))[0]))
        reader.number("i")
        if version >= FLEXIBLE_FROM.get(api, 1 << 15):
            reader.tags()
        return reader

    def ask(self, api: int, version: int, body: bytes) -> Reader:
        """Send a request and wait for its answer."""
        self.send(api, version, body)
        return self.receive(api, version)

    def pass_on(self, frame: bytes) -> bytes:
        """Send a request that another client made, without its size, and return the answer to it."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), TIMEOUT_SECONDS)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self._read(struct.unpack(">i", self._read(4))[0])

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = b"" if self._socket is None else self._socket.recv(size - len(data))
            except TimeoutError:
                raise
            except OSError:
                piece = b""
            if not piece:
                self.close()
                raise ConnectionClosedError
            data += piece
        return bytes(data)

    # -- requests ----------------------------------------------------------------------------------------------------
    def api_versions(self) -> dict[int, tuple[int, int]]:
        """Lowest and highest version of each request the broker understands."""
        reader = self.ask(API_VERSIONS, 0, b"")
        reader.number("h")
        return {reader.number("h"): (reader.number("h"), reader.number("h")) for _ in range(reader.count())}

    def create_topic(self, name: str, partitions: int, config: dict[str, str], replicas: tuple[int, ...] = ()) -> int:
        """Create a topic, every partition on `replicas` if there are any; return the error code."""
        settings = b"".join(string(key) + string(str(value)) for key, value in config.items())
        layout = struct.pack(">ihi", partitions, 1, 0)
        if replicas:
            nodes = struct.pack(f">i{len(replicas)}i", len(replicas), *replicas)
            assigned = b"".join(struct.pack(">i", partition) + nodes for partition in range(partitions))
            layout = struct.pack(">ihi", -1, -1, partitions) + assigned
        topic = string(name) + layout + struct.pack(">i", len(config)) + settings
        reader = self.ask(CREATE_TOPICS, 2, struct.pack(">i", 1) + topic + struct.pack(">i?", 10_000, False))
        reader.number("i")
        reader.count()
        reader.string()
        return reader.number("h")

    def delete_topic(self, name: str) -> int:
        """Delete a topic; return the error code."""
        body = struct.pack(">i", 1) + string(name) + struct.pack(">i", 10_000)
        reader = self.ask(DELETE_TOPICS, 1, body)
        reader.number("i")
        reader.count()
        reader.string()
        return reader.number("h")

    def allow(self, user: str, resource: str, name: str, operations: tuple[str, ...]) -> list[int]:
        """Create an ACL for each of ACL_OPERATIONS named, on a resource of ACL_RESOURCES; return the error codes."""
        body = struct.pack(">i", len(operations))
        for operation in operations:
            body += struct.pack(">b", ACL_RESOURCES[resource]) + string(name) + struct.pack(">b", _LITERAL)
            body += string(f"User:{user}") + string("*") + struct.pack(">bb", ACL_OPERATIONS[operation], _ALLOW)
        reader = self.ask(CREATE_ACLS, 1, body)
        reader.number("i")
        errors = []
        for _ in range(reader.count()):
            errors.append(reader.number("h"))
            reader.string()
        return errors

    def metadata(self, topic: str | None = None) -> tuple[set[int], dict[int, Led]]:
        """(live brokers, a topic's partitions)."""
        named = struct.pack(">i", 0) if topic is None else struct.pack(">i", 1) + string(topic)
        reader = self.ask(METADATA, 1, named)
        brokers = set()
        for _ in range(reader.count()):
            brokers.add(reader.number("i"))
            reader.string()
            reader.number("i")
            reader.string()
        reader.number("i")
        partitions = {}
        for _ in range(reader.count()):
            reader.number("h")
            reader.string()
            reader.number("b")
            for _ in range(reader.count()):
                reader.number("h")
                partition, leader = reader.number("i"), reader.number("i")
                _, in_sync = ([reader.number("i") for _ in range(reader.count())] for _ in range(2))
                partitions[partition] = Led(leader, in_sync)
        return brokers, partitions

    def elect_preferred(self, version: int, topic: str, partition: int) -> None:
        """Ask for the election of a partition's first replica, version 0 or 1; metadata show when it leads."""
        kind = b"\0" if version else b""
        body = kind + struct.pack(">i", 1) + string(topic) + struct.pack(">iii", 1, partition, 10_000)
        self.ask(ELECT_LEADERS, version, body)

    def reassign(self, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
        """Ask for other replicas of a partition, or for another order."""
        nodes = _count(len(replicas), compact=True) + struct.pack(f">{len(replicas)}i", *replicas)
        partitions = _count(1, compact=True) + struct.pack(">i", partition) + nodes + b"\0"
        topics = _count(1, compact=True) + string(topic, compact=True) + partitions + b"\0"
        self.ask(REASSIGN_PARTITIONS, 0, struct.pack(">i", 10_000) + topics + b"\0")

    def find_coordinator(self, name: str, kind: bytes = OF_TRANSACTION) -> int:
        """Ask for the coordinator of a transactional id or group; return the error code."""
        reader = self.ask(FIND_COORDINATOR, 1, string(name) + kind)
        reader.number("i")
        return reader.number("h")

    def offset(self, topic: str, which: int, partition: int) -> tuple[int, int]:
        """(error, offset) of EARLIEST or LATEST."""
        body = struct.pack(">ibi", -1, 0, 1) + string(topic) + struct.pack(">iiq", 1, partition, which)
        reader = self.ask(LIST_OFFSETS, 2, body)
        reader.number("i")
        reader.count()
        reader.string()
        reader.count()
        reader.number("i")
        error = reader.number("h")
        reader.number("q")
        return error, reader.number("q")

    def fetch(self, topic: str, partition: int, offset: int) -> Fetched:
        """Fetch committed records from `offset` on; only what stands around them is kept."""
        body = struct.pack(">iiiibi", -1, 0, 0, FETCH_BYTES, READ_COMMITTED, 1) + string(topic)
        reader = self.ask(FETCH, 4, body + struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES))
        reader.number("i")
        reader.count()
        reader.string()
        reader.count()
        reader.number("i")
        error, watermark, stable = reader.number("h"), reader.number("q"), reader.number("q")
        aborted = [
            {"producer_id": reader.number("q"), "first_offset": reader.number("q")} for _ in range(reader.count())
        ]
        return Fetched(error, watermark, stable, aborted)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        """Delete the records below an offset, -1 for all; return the error code."""
        body = struct.pack(">i", 1) + string(topic) + struct.pack(">iiqi", 1, partition, before_offset, 10_000)
        reader = self.ask(DELETE_RECORDS, 0, body)
        reader.number("i")
        reader.count()
        reader.string()
        reader.count()
        reader.number("i")
        reader.number("q")
        return reader.number("h")

    def init_producer_id(
        self, version: int, transactional_id: str | None, timeout_ms: int, held: tuple[int, int]
    ) -> tuple[int, int, int]:
        """(error, producer id, epoch)."""
        compact = version >= FLEXIBLE_FROM[INIT_PRODUCER_ID]
        body = string(transactional_id, compact=compact) + struct.pack(">i", timeout_ms)
        if version >= 3:
            body += struct.pack(">qh", *held)
        if version >= _FIRST_INIT_OF_TWO_PHASES:
            body += b"\0\0"
        reader = self.ask(INIT_PRODUCER_ID, version, body + (b"\0" if compact else b""))
        reader.number("i")
        return reader.number("h"), reader.number("q"), reader.number("h")

    def add_partitions(
        self, version: int, transactional_id: str, producer: tuple[int, int], topic: str, partition: int
    ) -> int:
        """Add a partition to a transaction, version 0 to 3; return the error code."""
        compact = version >= FLEXIBLE_FROM[ADD_PARTITIONS]
        end = b"\0" if compact else b""
        topics = _count(1, compact=compact) + string(topic, compact=compact)
        topics += _count(1, compact=compact) + struct.pack(">i", partition) + end
        body = string(transactional_id, compact=compact) + struct.pack(">qh", *producer)
        reader = self.ask(ADD_PARTITIONS, version, body + topics + end)
        reader.number("i")
        reader.count(compact=compact)
        reader.string(compact=compact)
        reader.count(compact=compact)
        reader.number("i")
        return reader.number("h")

    def add_offsets(self, transactional_id: str, producer: tuple[int, int], group: str) -> int:
        """Add a group's offsets to a transaction; return the error code."""
        reader = self.ask(ADD_OFFSETS, 0, string(transactional_id) + struct.pack(">qh", *producer) + string(group))
        reader.number("i")
        return reader.number("h")

    def commit_offsets(
        self, version: int, owner: tuple[str, int, int], group: str, topic: str, partitions: range
    ) -> int:
        """Commit offset 0 of partitions of a topic, for a transactional id, producer id and epoch; return the first's error."""
        compact = version >= FLEXIBLE_FROM[TXN_OFFSET_COMMIT]
        end = b"\0" if compact else b""
        transactional_id, producer_id, epoch = owner
        body = string(transactional_id, compact=compact) + string(group, compact=compact)
        body += struct.pack(">qh", producer_id, epoch)
        if compact:
            body += struct.pack(">i", -1) + string("", compact=True) + string(None, compact=True)
        body += _count(1, compact=compact) + string(topic, compact=compact) + _count(len(partitions), compact=compact)
        for partition in partitions:
            body += struct.pack(">iq", partition, 0) + (struct.pack(">i", -1) if version >= 2 else b"")
            body += string("", compact=compact) + end
        reader = self.ask(TXN_OFFSET_COMMIT, version, body + end + end)
        reader.number("i")
        reader.count(compact=compact)
        reader.string(compact=compact)
        reader.count(compact=compact)
        reader.number("i")
        return reader.number("h")

    def end_txn(
        self, version: int, transactional_id: str, producer: tuple[int, int], *, commit: bool
    ) -> tuple[int, int, int]:
        """(error, producer id, epoch), the latter two -1 before version 5."""
        compact = version >= FLEXIBLE_FROM[END_TXN]
        body = string(transactional_id, compact=compact) + struct.pack(">qh?", *producer, commit)
        reader = self.ask(END_TXN, version, body + (b"\0" if compact else b""))
        reader.number("i")
        error = reader.number("h")
        return (error, reader.number("q"), reader.number("h")) if version >= 5 else (error, -1, -1)

    def write_marker(
        self, version: int, producer: tuple[int, int], where: tuple[str, int], *, commit: bool, coordinator_epoch: int
    ) -> int:
        """Write a marker as a coordinator would; return the partition's error code."""
        compact = version >= FLEXIBLE_FROM[WRITE_MARKERS]
        end = b"\0" if compact else b""
        topic, partition = where
        topics = string(topic, compact=compact) + _count(1, compact=compact) + struct.pack(">i", partition) + end
        marker = struct.pack(">qh?", *producer, commit) + _count(1, compact=compact) + topics
        marker += struct.pack(">i", coordinator_epoch) + (b"\0" if version >= 2 else b"") + end
        reader = self.ask(WRITE_MARKERS, version, _count(1, compact=compact) + marker + end)
        reader.count(compact=compact)
        reader.number("q")
        reader.count(compact=compact)
        reader.string(compact=compact)
        reader.count(compact=compact)
        reader.number("i")
        return reader.number("h")

    def transaction_state(self, transactional_id: str) -> str | None:
        """The state of a transactional id, e.g. `Ongoing`."""
        reader = self.ask(DESCRIBE_TRANSACTIONS, 0, varint(2) + string(transactional_id, compact=True) + b"\0")
        reader.number("i")
        reader.count(compact=True)
        reader.number("h")
        reader.string(compact=True)
        return reader.string(compact=True)

    def describe_producers(self, topic: str, partition: int) -> list[dict[str, int]]:
        """What the broker remembers of a partition's producers."""
        body = varint(2) + string(topic, compact=True) + varint(2) + struct.pack(">i", partition) + b"\0\0"
        reader = self.ask(DESCRIBE_PRODUCERS, 0, body)
        reader.number("i")
        reader.count(compact=True)
        reader.string(compact=True)
        reader.count(compact=True)
        reader.number("i")
        reader.number("h")
        reader.string(compact=True)
        producers = []
        for _ in range(reader.count(compact=True)):
            producers.append(
                {
                    "producer_id": reader.number("q"),
                    "producer_epoch": reader.number("i"),
                    "last_sequence": reader.number("i"),
                    "last_timestamp": reader.number("q"),
                    "coordinator_epoch": reader.number("i"),
                    "current_txn_start_offset": reader.number("q"),
                }
            )
            reader.tags()
        return sorted(producers, key=lambda producer: producer["producer_id"])
