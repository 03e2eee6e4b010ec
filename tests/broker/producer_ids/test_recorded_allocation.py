"""Block histories of real clusters: what was granted, to whom, and what the forged ones are called."""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kaudit.broker.producer_ids.allocation_faults import (
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
)
from kaudit.broker.producer_ids.allocation_rules import Coverage, StepKind, is_complete, next_block, replay
from kaudit.broker.producer_ids.block_history import (
    BlockHistory,
    ProducerIdsRecord,
    combine,
    from_lines,
    from_records,
    from_znode,
)
from kaudit.formats.zookeeper.pid_block import parse_pid_block_lines
from kaudit.model.producer_ids import EntryKind, RegressionCause, UnallocatedReason
from kaudit.source.zookeeper import find_zookeeper_files, read_znode

DATA = Path(__file__).parents[2] / "data"
ZNODE = "/latest_producer_id_block"
MAX = 2**63 - 1


def history_of(directory: Path) -> BlockHistory:
    found = read_znode(find_zookeeper_files(directory), ZNODE)
    changes = ((sighting.change, sighting.file.name) for sighting in found.sightings[ZNODE])
    return from_znode(changes, found.observed_until_ms)


def grants(history: BlockHistory) -> list[tuple[int | None, int | None, int | None]]:
    return [(entry.broker, entry.start, entry.end) for entry in history.entries if entry.kind is EntryKind.GRANTED]


def ids(*ranges: tuple[int, int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([value for first, last in ranges for value in range(first, last + 1)], dtype=np.int64)


def batches(log: Path) -> Iterator[tuple[int, int]]:
    """Producer id and max timestamp of each batch, read with the 61-byte header alone."""
    data = log.read_bytes()
    position = 0
    while position + 61 <= len(data):
        _, length = struct.unpack_from(">qi", data, position)
        timestamp, producer_id = struct.unpack_from(">qq", data, position + 35)
        yield producer_id, timestamp
        position += 12 + length


@pytest.fixture(scope="module")
def capture(evidence) -> BlockHistory:
    return history_of(evidence.capture("zk-pid-blocks"))


def test_the_capture_grants_nine_blocks(capture: BlockHistory):
    # The list in tests/data/captures/zk-pid-blocks.md, there written "b0 0, b1 1000 (start), ...".
    blocks = [(0, 0), (1, 1000), (1, 2000), (0, 3000), (0, 4000), (1, 5000), (0, 6000), (1, 7000), (1, 8000)]
    assert grants(capture) == [(broker, start, start + 999) for broker, start in blocks]
    steps = replay(capture)
    assert [step.kind for step in steps] == [StepKind.NO_BLOCK, StepKind.FIRST, *[StepKind.NEXT] * 8]
    assert is_complete(steps)
    assert next_block(capture) == (9000, 9999)
    assert list(find_malformed(capture)) == []
    assert list(find_near_end(steps)) == []
    assert Coverage(replay(capture)).overlaps == []


def test_each_phase_of_the_capture_draws_from_the_blocks_held_then(evidence, capture: BlockHistory):
    root = evidence.capture("zk-pid-blocks")
    phases = json.loads((root / "truth.json").read_text())["pids_seen_per_phase"]
    coverage = Coverage(replay(capture))
    held = {}
    for phase, ranges in phases.items():
        holders = {coverage.holders(producer_id) for first, last in ranges for producer_id in range(first, last + 1)}
        held[phase] = sorted((grant.broker, grant.start) for (grant,) in holders)
    assert held == {
        "p1": [(0, 0), (1, 1000)],
        "p2": [(0, 0), (1, 2000)],
        "p3-only-b1": [(1, 2000)],
        "p4": [(0, 3000), (1, 2000)],
        "p5": [(0, 4000), (1, 5000)],
        "p6-exhaust": [(0, 4000), (0, 6000), (1, 5000), (1, 7000)],
        "p7": [(0, 6000), (1, 8000)],
    }


def test_every_id_in_the_logs_was_granted_by_the_time_it_was_used(evidence, capture: BlockHistory):
    coverage = Coverage(replay(capture))
    first_seen: dict[int, int] = {}
    for log in sorted((evidence.capture("zk-pid-blocks") / "logdirs").glob("b*/pids-*/*.log")):
        for producer_id, timestamp in batches(log):
            if producer_id >= 0:
                first_seen[producer_id] = min(timestamp, first_seen.get(producer_id, timestamp))
    # Phases p1 to p7 open 20 + 20 + 15 + 20 + 20 + 2100 + 20 producers (acks.json).
    assert len(first_seen) == 2215
    for producer_id, timestamp in first_seen.items():
        (grant,) = coverage.holders(producer_id)
        assert grant.at_ms is not None
        # A record is stamped when it is handed to the client, which may get its id only then.
        assert grant.at_ms - 1000 < timestamp
    seen = np.array(sorted(first_seen), dtype=np.int64)
    assert list(find_unallocated(capture, coverage, seen, None, complete=True)) == []


def test_ids_beyond_a_complete_history_are_proven_or_too_young(capture: BlockHistory):
    seen = np.array([8999, 9000, 50_000, -7], dtype=np.int64)
    end = capture.observed_until_ms
    assert end is not None
    times = np.array([0, end, end + 1, 0], dtype=np.int64)
    found = list(find_unallocated(capture, Coverage(replay(capture)), seen, times, complete=True))
    unallocated = [(item.producer_id, item.reason, item.proven, item.after_history) for item in found]
    assert unallocated == [
        (9000, UnallocatedReason.BEYOND, True, False),
        (50_000, UnallocatedReason.BEYOND, True, True),
        (-7, UnallocatedReason.NEGATIVE, True, False),
    ]
    assert found[0].nearest_below == capture.entries[-1]


def recorded(version: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads((DATA / "oracle" / version / "pid_blocks.json").read_text())["timeline"]
    return events


@pytest.fixture(scope="module", params=["1.1.1", "2.0.1", "2.8.2"])
def forged(request, evidence) -> tuple[str, BlockHistory]:
    return request.param, history_of(evidence.oracle(request.param, "zk") / "pid-data")


def test_the_forged_history_is_named_step_by_step(forged):
    steps = replay(forged[1])
    named = [
        (step.entry.version, step.kind, step.skipped, step.cause, step.exhausted)
        for step in steps
        if step.kind is not StepKind.NEXT or step.exhausted
    ]
    assert named == [
        (0, StepKind.NO_BLOCK, None, None, False),
        (1, StepKind.FIRST, None, None, False),
        (12, StepKind.JUMPED, (11_000, MAX - 3000), None, False),
        (14, StepKind.NEXT, None, None, True),
        (15, StepKind.REGRESSED, None, RegressionCause.SET_BACK, False),
        (18, StepKind.NO_BLOCK, None, None, False),
        (19, StepKind.JUMPED, (3000, 776_999), None, False),
        (None, StepKind.NO_BLOCK, None, None, False),
    ]
    # Every write was seen, so the ids that were jumped over are nobody's: the history is whole.
    assert is_complete(steps)


def test_the_forged_values_are_malformed(forged):
    malformed = [(item.entry.version, item.defects) for item in find_malformed(forged[1])]
    assert malformed == [
        (18, ("the value is not JSON (at byte 0)",)),
        (19, ("the value has version 2, brokers write 1",)),
    ]


def test_the_forged_end_is_near_and_then_reached(forged):
    near_end = [(item.entry.version, item.ids_left, item.exhausted) for item in find_near_end(replay(forged[1]))]
    assert near_end == [(12, 2000, False), (14, 0, True)]


def test_the_regressed_znode_shares_three_blocks(forged):
    version, history = forged
    coverage = Coverage(replay(history))
    granted = [
        run if "first" in run else {"first": run["producer_id"], "last": run["producer_id"], "error": run["error"]}
        for event in recorded(version)
        for run in [*event.get("runs", []), *([event["response"]] if "response" in event else [])]
    ]
    seen = np.unique(ids(*((run["first"], run["last"]) for run in granted if run["error"] == "NONE")))
    shared = list(find_shared_blocks(replay(history), coverage, seen))
    causes = [
        (item.overlap.earlier.version, item.overlap.later.version, item.overlap.first, item.overlap.last, item.cause)
        for item in shared
    ]
    assert causes == [
        (1, 15, 0, 999, RegressionCause.SET_BACK),
        (2, 16, 1000, 1999, RegressionCause.SET_BACK),
        (3, 17, 2000, 2999, RegressionCause.SET_BACK),
    ]
    # All of 0-999 and 1000-1999 were given out, of 2000-2999 by both brokers together too.
    assert [item.seen_count for item in shared] == [1000, 1000, 1000]
    assert shared[0].seen == tuple(range(10))
    # Every id a broker gave out lies in a block of that broker, but for those of the overflow.
    for event in recorded(version):
        for run in event.get("runs", []):
            if run["error"] == "NONE" and run["first"] >= 0:
                for producer_id in (run["first"], run["last"]):
                    assert event["broker"] in {grant.broker for grant in coverage.holders(producer_id)}


def test_the_overflow_after_the_last_block_is_negative_and_proven(forged):
    _, history = forged
    seen = np.array([MAX, -MAX - 1, -MAX + 2], dtype=np.int64)
    found = list(find_unallocated(history, Coverage(replay(history)), seen, None, complete=True))
    assert [(item.producer_id, item.reason, item.proven) for item in found] == [
        (-MAX - 1, UnallocatedReason.NEGATIVE, True),
        (-MAX + 2, UnallocatedReason.NEGATIVE, True),
    ]


def test_after_the_znode_was_deleted_ids_begin_again(forged):
    assert next_block(forged[1]) == (0, 999)
    assert next_block(BlockHistory(forged[1].entries[:15])) is None  # exhausted
    assert next_block(BlockHistory(forged[1].entries[:19])) is None  # garbage: no broker gets any


def test_the_watch_as_lines_grants_the_same_from_its_second_value_on(evidence, capture: BlockHistory):
    watched = json.loads((evidence.capture("zk-pid-blocks") / "acks.json").read_text())["timeline"]
    history, bad = from_lines(parse_pid_block_lines(map(json.dumps, watched)), "watch.jsonl")
    assert bad == []
    assert grants(history) == grants(capture)[1:]
    steps = replay(history)
    assert steps[0].kind is StepKind.BEGINS_LATER
    assert not is_complete(steps)
    # Ids before the first block it shows are not held against anybody, later ones are, as a suspicion.
    seen = np.array([5, 9000], dtype=np.int64)
    found = list(find_unallocated(history, Coverage(replay(history)), seen, None, complete=False))
    assert [(item.producer_id, item.proven) for item in found] == [(9000, False)]
    # Joined with ZooKeeper's files nothing is listed twice, in whatever order they are given.
    assert combine([capture, history]).entries == capture.entries
    assert grants(combine([history, capture])) == grants(capture)


def test_looking_again_and_again_is_one_write(forged):
    version, history = forged
    lines = map(json.dumps, recorded(version))
    watched, bad = from_lines(parse_pid_block_lines(lines), "pid_blocks.json")
    assert bad == []
    # The oracle looked 60 times; two writes came between two looks (versions 16 and 20).
    expected = [entry for entry in history.entries if entry.version not in {None, 0, 16, 20}]
    assert [entry.version for entry in watched.entries] == [entry.version for entry in expected]
    assert [step.kind for step in replay(watched)].count(StepKind.UNSEEN) == 2
    assert grants(combine([watched, history])) == grants(history)


def records(evidence, version: str) -> list[ProducerIdsRecord]:
    """The records as that version's own kafka-dump-log prints them."""
    text = (evidence.oracle(version, "dumps") / "cluster-metadata-pid1.txt").read_text()
    pattern = re.compile(
        r'offset: (\d+) CreateTime: (\d+) .*"PRODUCER_IDS_RECORD".*"brokerId":(-?\d+),"brokerEpoch":(-?\d+),'
        r'"nextProducerId":(\d+)'
    )
    return [ProducerIdsRecord(*map(int, match.groups())) for match in pattern.finditer(text)]


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_kraft_ids_lie_in_the_blocks_of_the_metadata_log(evidence, version: str):
    history = from_records(records(evidence, version), "metadata")
    steps = replay(history)
    assert [step.kind for step in steps] == [StepKind.FIRST, *[StepKind.NEXT] * 5]
    assert is_complete(steps)
    assert next_block(history) == (6000, 6999)
    coverage = Coverage(replay(history))
    timeline = json.loads((DATA / "oracle" / version / "pid_alloc.json").read_text())["timeline"]
    for event in timeline:
        runs = event.get("runs", [])
        spans = [(run["first"], run["last"]) for run in runs if run["error"] == "NONE"]
        if "response" in event:
            spans.append((event["response"]["producer_id"],) * 2)
        for first, last in spans:
            seen = ids((first, last))
            assert coverage.contains(seen).all()
            for producer_id in (first, last):
                (grant,) = coverage.holders(producer_id)
                assert grant.broker == 1
                # Clocks of one machine: the record is written before any of its ids is answered.
                assert grant.at_ms is not None
                assert grant.at_ms <= event["at_ms"]
