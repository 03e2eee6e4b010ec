"""Whatever a file of attempts holds, `kaudit replay` answers it or names the line: on every release, never a traceback.

And the fast path of produce requests answers as all the checks do.
"""

import json
from typing import get_args
from unittest.mock import patch

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from kaudit.broker.attempts import LeaderChangeKind, produce
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import all_releases, profile_for
from kaudit.replay.session import AttemptError, Session, parse_attempt
from kaudit.report.replay_formats import formatted
from tests.logs import data, marker

RELEASES = [str(version) for version in all_releases()]
T0 = 1_700_000_000_000


def mostly(*usual, rarely):
    """Values a story is made of, now and then any other."""
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), st.sampled_from(usual), rarely)


INT64 = st.integers(-(2**63), 2**63 - 1)
PIDS = mostly(0, 1, 900001, -1, rarely=INT64)
EPOCHS = mostly(0, 1, 2, 32766, 32767, -1, rarely=st.integers(-(2**15), 2**15 - 1))
SEQUENCES = mostly(0, 1, 2, 3, 2**31 - 1, -1, rarely=st.integers(-(2**31), 2**31 - 1))
COUNTS = mostly(1, 2, 5, 0, rarely=st.integers(-(2**31), 2**31 - 1))
TIMES = mostly(T0, T0 + 5000, T0 + 10**9, T0 - 10**9, rarely=INT64)
OFFSETS = mostly(0, 1, 3, 7, rarely=st.integers(0, 2**63 - 1))
OWNERS = st.sampled_from(["tx", "other", ""])
VERSIONS = st.integers(0, 14)


def encoded(producer_id, epoch, sequence, count, transactional, cut, flipped):
    batch = (
        data(producer_id, epoch, sequence, count, transactional=transactional) if count else marker(producer_id, epoch)
    )
    sent = bytearray(batch.encode())
    if flipped is not None:
        sent[flipped % len(sent)] ^= 1 + flipped % 255
    return bytes(sent[: len(sent) - cut]).hex()


HEX = st.builds(
    encoded,
    st.sampled_from([0, 1, -1]), st.sampled_from([0, 1, 32767]), st.sampled_from([0, 1, 2**31 - 1]), st.integers(0, 3),
    st.booleans(), st.sampled_from([0, 0, 0, 1, 40]), st.none() | st.integers(0, 400),
)  # fmt: skip
IDENTITY = {"producer_id": PIDS, "producer_epoch": EPOCHS}
BATCH = {**IDENTITY, "base_sequence": SEQUENCES, "record_count": COUNTS}
PRODUCE = {
    "is_transactional": st.booleans(), "transactional_id": st.none() | OWNERS, "acks": mostly(-1, 0, 1, rarely=EPOCHS),
    "api_version": VERSIONS, "timestamp": st.none() | TIMES,
}  # fmt: skip
FOUND = st.fixed_dictionaries(
    {"base_offset": OFFSETS, **IDENTITY},
    optional={
        "base_sequence": SEQUENCES, "record_count": st.integers(1, 5), "is_transactional": st.booleans(),
        "commit": st.booleans(), "coordinator_epoch": SEQUENCES, "timestamp": TIMES,
    },
)  # fmt: skip
TAMPER = st.fixed_dictionaries(
    {},
    optional={
        "truncated_to_offset": OFFSETS, "corrupted_batch_offset": OFFSETS,
        "deleted": st.lists(st.sampled_from([f"{3:020}.snapshot", "x.snapshot", f"{0:020}.log"]), max_size=2),
        "corrupted": st.lists(st.sampled_from([f"{5:020}.snapshot", "²³.snapshot"]), max_size=2),
    },
)  # fmt: skip


def op(name, required=(), optional=()):
    fields = {
        "op": st.just(name), "topic": st.sampled_from(["t", "u"]), "partition": st.sampled_from([0, 0, 1]),
        **dict(required),
    }  # fmt: skip
    more = {"at": st.none() | TIMES, **dict(optional)}
    return st.fixed_dictionaries(fields, optional={key: more[key] for key in more if key not in fields})


ELSEWHERE = st.fixed_dictionaries(
    {"partition": st.sampled_from([0, 1, 2]), **BATCH},
    optional={"topic": st.sampled_from(["t", "u"]), "records_hex": HEX, "is_transactional": st.booleans()},
)
OWNER = {"transactional_id": OWNERS, **IDENTITY}
PLAIN = op("produce", {**BATCH, "timestamp": TIMES, "at": TIMES}, PRODUCE)
REQUESTS = st.one_of(
    op("init_producer_id", {"transactional_id": st.none() | OWNERS}, {
        **IDENTITY, "timeout_ms": mostly(1000, 60_000, rarely=SEQUENCES), "api_version": VERSIONS,
        "granted_producer_id": st.none() | PIDS,
    }),
    op("add_partitions", OWNER, {"api_version": VERSIONS}),
    op("end_txn", {**OWNER, "commit": st.booleans()}, {"api_version": VERSIONS, "granted_producer_id": PIDS}),
    op("write_marker", {**IDENTITY, "commit": st.booleans(), "coordinator_epoch": SEQUENCES}, {
        "api_version": VERSIONS, "transaction_version": st.integers(0, 3),
    }),
)  # fmt: skip
ATTEMPTS = st.one_of(
    PLAIN,
    REQUESTS,
    op("produce", BATCH, PRODUCE),
    op("produce", {"records_hex": HEX}, {**BATCH, **PRODUCE}),
    op("produce", {"batches": st.lists(st.fixed_dictionaries(BATCH, optional={"records_hex": HEX}), max_size=3)}, PRODUCE),
    op("delete_records", {"before_offset": st.just(-1) | OFFSETS}),
    op("restart", {"clean": st.booleans()}, {
        "found_on_disk": st.lists(FOUND, max_size=3), "tamper": TAMPER, "log_start_offset": OFFSETS, "started_at": TIMES,
    }),
    op("leader_change", {"how": st.sampled_from(get_args(LeaderChangeKind))}, {
        "lost_from_offset": st.none() | OFFSETS, "old_leader": st.integers(0, 2), "new_leader": st.integers(0, 2),
        "via": st.sampled_from(["controlled_shutdown", "preferred_election"]),
    }),
    op("follower_restart", optional={"clean": st.booleans()}),
    op("produce", BATCH, {**PRODUCE, "other_partitions": st.lists(ELSEWHERE, max_size=3)}),
    op("txn_offset_commit", OWNER, {"record_count": st.integers(1, 9), "api_version": VERSIONS}),
    op("expire_producers", optional={"producer_ids": st.none() | st.lists(PIDS, max_size=2)}),
    op("wait", {"ms": mostly(0, 1000, 10**7, rarely=st.integers(0, 2**63 - 1))}),
    op("describe"),
    op("topic", {"config": st.fixed_dictionaries({}, optional={
        "cleanup.policy": st.sampled_from(["compact", "delete", "compact,delete"]),
        "message.timestamp.type": st.sampled_from(["LogAppendTime", "CreateTime"]),
        "max.message.bytes": st.sampled_from(["100", 10**6, "many"]),
        "compression.type": st.sampled_from(["producer", "gzip", "snappy", "lz4", "zstd", "uncompressed", "none"]),
    })}),
    st.fixed_dictionaries({"op": st.just("broker"), "broker_version": st.sampled_from([*RELEASES, "9.9", "new"])}, optional={
        "config": st.sampled_from([{}, {"process.roles": "broker"}, {"producer.id.expiration.ms": "soon"}]),
    }),
)  # fmt: skip


def refused_line(work):
    """The line that is no attempt, None if all are."""
    try:
        work()
    except AttemptError as error:
        return error.line
    return None


def lines(attempts):
    return [json.dumps(attempt).encode() + b"\n" for attempt in attempts]


WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a story of 25 attempts shrinks for minutes


@settings(max_examples=300, deadline=None, phases=WITHOUT_SHRINKING)
@given(st.sampled_from(RELEASES), st.lists(ATTEMPTS, max_size=25), st.booleans())
def test_every_file_is_answered_or_its_line_named(version, attempts, with_state):
    file = lines(attempts)
    names = ["jsonl", "table", "json"]
    broker = Broker(profile_for(version))
    pieces: list[tuple[str, ...]] = []
    line = refused_line(lambda: pieces.extend(formatted(Session(file, broker), names, with_state=with_state)))
    assert line is None or 1 <= line <= len(file)
    if line is not None:
        return
    answered, _, document = ("".join(column) for column in zip(*pieces, strict=True))
    assert len(answered.splitlines()) == len(file)
    assert len(json.loads(document)["answers"]) == len(file)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(RELEASES),
    st.lists(st.binary(max_size=40) | ATTEMPTS.map(lambda a: json.dumps(a)[:-1].encode()), max_size=4),
)
def test_what_is_no_attempt_is_named(version, file):
    session = Session(file, Broker(profile_for(version)))
    line = refused_line(lambda: list(session.answered()))
    assert line is None or 1 <= line <= len(file)


@settings(max_examples=200, deadline=None, phases=WITHOUT_SHRINKING)
@given(st.sampled_from(RELEASES), st.lists(PLAIN | ATTEMPTS.filter(lambda a: a["op"] != "broker"), max_size=30))
def test_the_fast_path_answers_as_all_the_checks_do(version, attempts):
    fast, checked = Broker(profile_for(version)), Broker(profile_for(version))
    for number, line in enumerate(lines(attempts)):
        try:
            attempt = parse_attempt(line, number)
        except ValueError:
            continue  # refused before any broker sees it
        assert attempt is not None
        try:
            with patch.object(produce, "valid_batch", return_value=None):
                expected = checked.answer(attempt)
        except ValueError:
            return
        answer = fast.answer(attempt)
        assert (answer.fields, answer.why, answer.producer) == (expected.fields, expected.why, expected.producer)


RANGES = {
    "producer_id": (-(2**63), 2**63), "base_sequence": (-(2**31), 2**31), "at": (-(2**63), 2**63),
    "acks": (-(2**15), 2**15), "partition": (0, 2**31), "coordinator_epoch": (-(2**31), 2**31),
    "transaction_version": (0, 128), "timeout_ms": (-(2**31), 2**31), "granted_producer_id": (-(2**63), 2**63),
    "api_version": (0, 2**15), "index": (0, 2**63),
}  # fmt: skip
FIELDS = {
    "produce": {"producer_id", "base_sequence", "topic", "at", "acks", "is_transactional", "partition", "transactional_id",
                "api_version", "index"},
    "init_producer_id": {"producer_id", "topic", "at", "partition", "transactional_id", "timeout_ms",
                         "granted_producer_id", "api_version", "index"},
    "add_partitions": {"producer_id", "topic", "at", "partition", "transactional_id", "api_version", "index"},
    "end_txn": {"producer_id", "topic", "at", "partition", "transactional_id", "commit", "granted_producer_id",
                "api_version", "index"},
    "write_marker": {"producer_id", "topic", "at", "partition", "commit", "coordinator_epoch", "transaction_version",
                     "api_version", "index"},
}  # fmt: skip
NULLABLE = {
    "produce": {"at", "transactional_id", "producer_id", "base_sequence"},
    "init_producer_id": {"at", "transactional_id", "producer_id", "granted_producer_id"},
    "add_partitions": {"at"},
    "end_txn": {"at", "granted_producer_id"},
    "write_marker": {"at"},
}


def is_allowed(op, name, value):
    """Whether the format lets this field of this attempt have this value."""
    if name not in FIELDS[op]:
        return True  # ignored
    if value is None:
        return name in NULLABLE[op]
    if name in RANGES:
        low, high = RANGES[name]
        return type(value) is int and low <= value < high
    return type(value) is (bool if name in ("is_transactional", "commit") else str)


@settings(max_examples=300, deadline=None)
@given(
    PLAIN | REQUESTS,
    st.sampled_from(sorted(set().union(*FIELDS.values()))),
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=3), st.integers(-(2**70), 2**70)),
)
@example({"op": "produce", "topic": "t", "partition": 0, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0,
          "record_count": 1, "timestamp": 1, "at": 1}, "producer_id", 1.0)  # fmt: skip
def test_a_value_out_of_its_range_is_named_and_any_other_is_read(attempt, name, value):
    line = json.dumps(attempt | {name: value}).encode()
    if is_allowed(attempt["op"], name, value):
        assert parse_attempt(line, 0) is not None
    else:
        with pytest.raises(ValueError, match=rf"^{name} (not )?to be ") as caught:
            parse_attempt(line, 0)
        assert type(caught.value) is ValueError
