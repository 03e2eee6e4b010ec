"""Inputs made field by field: checksums and framing right, numbers at the ends of their types or just beside each other."""

import json
import re
import struct
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal

import crc32c

from kaudit.formats.application_log.patterns import PROGRAMS, read_patterns
from kaudit.report.json_documents import pretty, scan_document
from kaudit.report.render_options import RenderOptions
from tests import scan_results
from tests.fuzz.commands import pack, unpack
from tests.fuzz.mutation import BEYOND, NUMBERS, ODD, changed_document
from tests.logs import record

_SAMPLES = Path(__file__).parents[2] / "samples"
_RECORDED = Path(__file__).parents[1] / "data/internal-topics"
_DIGITS = re.compile("[0-9]+")
_TOPICS = ("orders-0", "orders-1", "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0")


def _number(random: Random, bits: int, usual: int) -> int:
    """Mostly what is usual, else an interesting number, in so many bits."""
    number = usual if random.randrange(4) else random.choice(NUMBERS) + random.choice((0, 0, 0, -1, 1))
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _batch(random: Random, offset: int, sequence: int) -> bytes:
    count = random.choice((0, 1, 1, 2, 3))
    attributes = random.choice((0, 0, 0, 0x10, 0x30, 0x20, 0x40, 0x08, 1, 4, random.getrandbits(15)))
    if attributes & 0x20:
        key = struct.pack(">hh", _number(random, 16, 0), _number(random, 16, random.randrange(2)))
        records = [record(0, key, struct.pack(">hi", 0, _number(random, 32, 0)))]
    else:
        records = [record(index, random.choice((None, b"k")), b"v" * random.randrange(4)) for index in range(count)]
    tail = struct.pack(
        ">hiqqqhii",
        attributes,
        _number(random, 32, max(count - 1, 0)),
        _number(random, 64, 1_700_000_000_000),
        _number(random, 64, 1_700_000_000_000),
        _number(random, 64, random.randrange(3)),
        _number(random, 16, 0),
        _number(random, 32, sequence),
        _number(random, 32, len(records)),
    )
    body = tail + b"".join(records)
    head = struct.pack(">qiib", _number(random, 64, offset), 9 + len(body), _number(random, 32, 0), 2)
    return head + struct.pack(">I", crc32c.crc32c(body)) + body


def _segment(random: Random, base: int) -> bytes:
    parts, offset = [], base
    for sequence in range(random.randrange(12)):
        parts.append(_batch(random, offset, sequence))
        offset += random.choice((1, 1, 1, 2, 3))
        if random.randrange(12) == 0:
            parts.append(random.choice((bytes(20), b"\xff" * 13, parts[-1][:30], parts[-1])))
    return b"".join(parts)


@cache
def _real_batches(name: str) -> list[bytes]:
    """The batches that the samples and recordings have of an internal topic, of data topics those of one sample."""
    internal = name.startswith("__")
    places = (
        [_SAMPLES.glob(f"*/{name}/*.log"), _RECORDED.glob(f"*/{name}/*.log")]
        if internal
        else [_SAMPLES.glob("duplicates/*/*.log")]
    )
    logs = sorted(chain(*places))
    return [data[at : at + size] for data in (log.read_bytes() for log in logs) for at, size in _framed(data)]


def _framed(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + 61 <= len(data) and data[at + 16] == 2:
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size <= len(data):
            yield at, size
        at += size


def _rearranged(random: Random, name: str) -> bytes:
    """Batches that brokers wrote, runs of them again and again, at offsets that go on: what a topic says after years."""
    batches = _real_batches(name)
    chosen: list[bytes] = []
    for _ in range(random.randrange(1, 6)):
        start = random.randrange(len(batches))
        chosen += batches[start : start + random.randrange(1, 12)] * random.randrange(1, 5)
    content, offset = b"", 0
    for batch in chosen:
        content += struct.pack(">q", offset) + batch[8:]
        offset += 1 + int.from_bytes(batch[23:27], "big")
    return content


def _snapshot(random: Random) -> bytes:
    entries = b"".join(
        struct.pack(
            ">qhiqiqiq",
            *(_number(random, bits, 1) for bits in (64, 16, 32, 64, 32, 64, 32, 64)),
        )
        for _ in range(random.randrange(4))
    )
    body = struct.pack(">i", len(entries) // 46) + entries
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body


def _checkpoint(random: Random) -> bytes:
    rows = [
        f"{random.choice(('orders', '__transaction_state'))} {random.choice((0, 1, *BEYOND))} {random.choice(BEYOND)}"
        for _ in range(3)
    ]
    return "\n".join(
        [str(random.choice((0, 1, *BEYOND[:3]))), str(random.choice((3, 3, 3, *BEYOND))), *rows, ""]
    ).encode()


def _leader_epochs(random: Random) -> bytes:
    rows = [f"{random.choice((0, 1, 2, *BEYOND))} {random.choice((0, 3, *BEYOND))}" for _ in range(2)]
    return "\n".join(["0", str(random.choice((2, 2, *BEYOND))), *rows, ""]).encode()


def directory(random: Random) -> bytes:
    """Two log directories with partitions of hostile batches, and side files that parse and say impossible things."""
    files: dict[str, bytes] = {}
    for name in _TOPICS[: random.randrange(1, len(_TOPICS) + 1)]:
        base = random.choice((0, 0, 0, 7, 2**62, 2**63 - 5))
        content, later = _segment(random, base), _segment(random, base + 8)
        if random.randrange(4) == 0:
            base, content, later = 0, _rearranged(random, name), b""
        for broker in ("b1", "b2"):
            at = f"{broker}/{name}"
            files[f"{at}/{base:020d}.log"] = content if random.randrange(3) else _segment(random, base)
            files[f"{at}/{min(base + 8, 2**63 - 1):020d}.log"] = later
            if random.randrange(2):
                files[f"{at}/{random.choice((0, 7, base, 2**63 - 1)):020d}.snapshot"] = _snapshot(random)
            if random.randrange(2):
                files[f"{at}/leader-epoch-checkpoint"] = _leader_epochs(random)
            for suffix, layout in (("index", ">ii"), ("timeindex", ">qi"), ("txnindex", ">hqqqq")):
                if random.randrange(3) == 0:
                    fields = [{"h": 16, "i": 32, "q": 64}[code] for code in layout[1:]]
                    entry = struct.pack(layout, *(_number(random, bits, 1) for bits in fields))
                    files[f"{at}/{base:020d}.{suffix}"] = entry * random.randrange(1, 3)
    for checkpoint in ("log-start-offset", "recovery-point-offset", "replication-offset", "cleaner-offset"):
        if random.randrange(3) == 0:
            files[f"{random.choice(('b1', 'b2'))}/{checkpoint}-checkpoint"] = _checkpoint(random)
    return pack(files)


_BATCH_LINE = (
    "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} "
    "partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {} position: {} {}: {} size: {} magic: {} "
    "compresscodec: {} crc: {} isvalid: {}\n"
)
_RECORD_LINE = "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [] {}\n"
_SIDE_LINES = (
    (
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} lastTimestamp: {} firstSequence: {} "
        "lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}\n"
    ),
    "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}\n",
    "offset: {} position: {}\n",
    "timestamp: {} offset: {}\n",
)


def text(random: Random) -> bytes:
    """A text of kafka-dump-log whose numbers are of any size."""

    def any_of(usual: object) -> object:
        return usual if random.randrange(6) else random.choice(BEYOND)

    topic = random.choice(_TOPICS)
    lines = [f"Dumping /data/{topic}/{random.choice((0, 0, 7, 10**19)):020d}.log\nLog starting offset: {any_of(0)}\n"]
    for number in range(random.randrange(1, 8)):
        usual = (number, number, 1, number, number, 7, 0, 0, "false", "false", "OptionalLong.empty", 80 * number)
        time = random.choice(("CreateTime", "LogAppendTime", "NoTimestampType"))
        lines.append(
            _BATCH_LINE.format(*map(any_of, usual), time, any_of(5), any_of(80), any_of(2), "none", any_of(9), "true")
        )
        if random.randrange(2):
            payload = random.choice(
                (
                    "key: k payload: v",
                    f"endTxnMarker: COMMIT coordinatorEpoch: {any_of(0)}",
                    (
                        f"key: transaction_metadata::transactionalId=t payload: producerId:{any_of(1)},producerEpoch:{any_of(0)},"
                        f"state=Ongoing,partitions=[orders-{any_of(0)}],txnLastUpdateTimestamp={any_of(5)},txnTimeoutMs={any_of(5)}"
                    ),
                    f'payload: {{"type":"PRODUCER_IDS_RECORD","version":0,"data":{{"brokerId":{any_of(1)},"brokerEpoch":{any_of(1)},"nextProducerId":{any_of(1000)}}}}}',
                )
            )
            lines.append(_RECORD_LINE.format(*map(any_of, (number,)), time, *map(any_of, (5, 1, 1, number)), payload))
    for line in _SIDE_LINES:
        if random.randrange(3) == 0:
            lines.append(f"Dumping /data/{topic}/{random.choice((0, 7)):020d}.snapshot\n")
            lines.append(line.format(*(any_of(1) for _ in range(line.count("{}")))))
    return pack({"dump.txt": "".join(lines).encode()})


_REFUSED = (
    "ERROR [ReplicaManager broker={}] Error processing append operation on partition {}-{} (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors."
)
_REFUSALS = [
    "OutOfOrderSequenceException: Out of order sequence number for producer {} at offset {} in partition orders-0: {} (incoming seq. number), {} (current end sequence number)",
    "ProducerFencedException: Producer's epoch is no longer valid. There is probably another producer with a newer epoch. {} (request epoch), {} (server epoch)",
    "TransactionCoordinatorFencedException: Invalid coordinator epoch for producerId {} at offset {} in partition orders-0: {} (zombie), {} (current)",
    "UnknownProducerIdException: Found no record of producerId={} on the broker. It is possible that the last message",
    "OutOfOrderSequenceException: Invalid sequence number for new epoch: {} (request epoch), {} (seq. number)",
    "InvalidTxnStateException: Expected transactional write from producer {}",
]
_LOG_LINES = (
    *(_REFUSED + refusal for refusal in _REFUSALS),
    "INFO [Broker id={}] Leader {}-{} starts at leader epoch {} from offset {} with high watermark 0 ISR [1] addingReplicas []",
    "INFO [UnifiedLog partition={1}-{2}, dir=/d] Incremented log start offset to {3} due to client delete records request",
    "INFO [KafkaServer id={}] started (kafka.server.KafkaServer)",
    "INFO [KafkaServer id={}] shut down completed (kafka.server.KafkaServer)",
    "INFO starting (kafka.server.KafkaServer)",
    "INFO KafkaConfig values: \n\ttransactional.id.expiration.ms = {}\n\tlog.segment.bytes = {}\n\tzookeeper.connect = x",
    "INFO Created log for partition orders-0 in /d/orders-0 with properties {{max.message.bytes={}, cleanup.policy={}}}",
)


def server_logs(random: Random) -> bytes:
    """The directories of `directory` with logs of both brokers and of their clients, whose lines name numbers of any size."""
    files = dict(unpack(directory(random)))
    for broker in ("b1", "b2"):
        lines = []
        for _ in range(random.randrange(20)):
            values: list[object] = [random.choice((0, 0, 1, 7, *BEYOND)) for _ in range(8)]
            values[1] = random.choice(("orders", "orders", "__transaction_state", "x" * 300))
            values[2] = random.choice((0, 0, 0, *BEYOND))
            time = random.choice(
                ("[2026-11-22 17:56:08,393] ", "[1970-01-01 00:00:00,005] ", "[9999-12-31 23:59:59,999] ", "")
            )
            lines.append(time + random.choice(_LOG_LINES).format(*values))
        files[f"{broker}.server.log"] = "\n".join(lines).encode()
    programs: tuple[Literal["server", "client"], ...] = ("server", "client")
    for program in programs:
        lines = [_changed_line(random, line) for line in random.choices(_examples(program), k=random.randrange(20))]
        files[f"c.{program}.log"] = "\n".join(lines).encode()
    return pack(files)


@cache
def _examples(program: Literal["server", "client"]) -> list[str]:
    """Every line that patterns of this program's logs are for."""
    return [pattern.example for name in PROGRAMS[program] for pattern in read_patterns(name)]


def _changed_line(random: Random, line: str) -> str:
    """The line about what is in the directories, or with any number in place of one of its own."""

    def number(found: re.Match[str]) -> str:
        return found[0] if random.randrange(6) else str(random.choice((0, 1, 2, *BEYOND)))

    return _DIGITS.sub(number, line.replace("orders-2", "orders-0") if random.randrange(2) else line)


_OPS = ("broker", "topic", "produce", "init_producer_id", "add_partitions", "end_txn", "write_marker", "delete_records",
        "restart", "leader_change", "follower_restart", "wait", "describe", "none")  # fmt: skip
_FIELDS: dict[str, object] = {
    "topic": "t", "partition": 0, "producer_id": 0, "producer_epoch": 0, "base_sequence": 0, "record_count": 1,
    "is_transactional": False, "transactional_id": "x", "acks": -1, "api_version": 7, "timestamp": 5, "timeout_ms": 60000,
    "granted_producer_id": 7, "commit": True, "coordinator_epoch": 0, "before_offset": 1, "clean": True, "how": "clean",
    "lost_from_offset": 1, "ms": 1000, "at": 5, "broker_version": "2.8.2", "records_hex": "00", "found_on_disk": [],
    "config": {"producer.id.expiration.ms": 5, "cleanup.policy": "delete"}, "tamper": {"truncated_to_offset": 1},
}  # fmt: skip


def attempts(random: Random) -> bytes:
    """Lines of attempts, with fields left out and of every type."""
    lines = []
    for index in range(random.randrange(1, 8)):
        line: dict[str, object] = {"op": random.choice(_OPS), "index": index}
        for name, usual in _FIELDS.items():
            if random.randrange(8):
                line[name] = usual if random.randrange(8) else random.choice(ODD)
        config = line.get("config")
        if isinstance(config, dict) and not random.randrange(3):
            line["config"] = {random.choice([*config, "segment.bytes"]): random.choice(ODD)}
        lines.append(json.dumps(line))
    return pack({"attempts.jsonl": "\n".join(lines).encode()})


@cache
def _documents() -> list[str]:
    results = (scan_results.many(), scan_results.hostile(), scan_results.incomplete(scan_results.old_duplicate()))
    return [pretty(scan_document(result, RenderOptions())) for result in results]


def saved(random: Random) -> bytes:
    """A saved scan with some values of another type, or with text that no terminal should see."""
    document = json.loads(random.choice(_documents()))
    changed_document(random, document)
    return pack({"saved.json": json.dumps(document).encode()})
