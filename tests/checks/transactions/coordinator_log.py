"""__transaction_state written by hand, beside partitions with markers."""

import struct

from kaudit.checks.transactions.illegal_state_transition import illegal_state_transition
from kaudit.checks.transactions.marker_outcomes import coordinator_disagrees, torn_transaction
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, marker, record, sealed_records, varint

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
CODES = {check.code for check in (coordinator_disagrees, illegal_state_transition, torn_transaction)}


def state(name, status, partitions=(), *, producer_id=7, epoch=0, timeout_ms=60000):
    """A version 0 value as TransactionLog writes it; `partitions` None is null."""
    key = struct.pack(">hh", 0, len(name)) + name.encode()
    value = struct.pack(">hqhib", 0, producer_id, epoch, timeout_ms, status)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions or ():
        topics.setdefault(topic, []).append(partition)
    value += struct.pack(">i", -1 if partitions is None else len(topics))
    for topic, numbers in topics.items():
        value += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">i", len(numbers))
        value += b"".join(struct.pack(">i", number) for number in numbers)
    return record(0, key, value + struct.pack(">qq", BASE_TIMESTAMP, BASE_TIMESTAMP))


def tombstone(name):
    """A record without a value: the transactional id expired."""
    key = struct.pack(">hh", 0, len(name)) + name.encode()
    body = b"\0" + varint(0) + varint(0) + varint(len(key)) + key + varint(-1) + varint(0)
    return varint(len(body)) + body


def write_states(root, states, offsets=None):
    raw = b""
    for number, one in enumerate(states):
        raw += sealed_records(Batch(base_offset=number if offsets is None else offsets[number]), [one])
    directory = root / "__transaction_state-0"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(raw)


def cycle(commit, partitions):
    prepare, complete = (PREPARE_COMMIT, COMPLETE_COMMIT) if commit else (PREPARE_ABORT, COMPLETE_ABORT)
    return [state("t", ONGOING, partitions), state("t", prepare, partitions), state("t", complete)]


def write_partition(root, topic, outcomes, producer_id=7):
    log = Log()
    for sequence, commit in enumerate(outcomes):
        log.append(data(producer_id, 0, sequence, transactional=True))
        log.append(marker(producer_id, 0, commit=commit))
    log.write(root / f"{topic}-0")


def reported(root):
    result = scan(ScanOptions([str(root)]), SilentProgress())
    return [(entry.code, entry.topic, entry.offset) for entry in result.findings if entry.code in CODES]


BOTH = (("a", 0), ("b", 0))
