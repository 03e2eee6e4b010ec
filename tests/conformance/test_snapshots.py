"""State rebuilt from logs against the producer snapshots real brokers wrote beside them, entry by entry."""

import re

import pytest

from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import LogReader, snapshot_entry
from kaudit.broker.releases.profile import profile_for
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot

ORACLE = [
    *((version, "logdir") for version in ("1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0")),
    ("3.9.1", "logdir-failover"),
]
CAPTURES = {  # torn-writes is left out: its logs and snapshots were damaged on purpose
    "clients-mix": "3.9.1",
    "cross-session": "3.9.1",  # its producers expired after 6 s
    "failover-acks1": "3.9.1",
    "legacy-formats": "2.8.2",
    "retention-compaction-2.8.2": "2.8.2",
    "retry-dup": "3.9.1",
    "txn-mix-2.8.2": "2.8.2",
    "unknown-pid-2.0.1": "2.0.1",
    "zk-pid-blocks": "2.0.1",
}


def snapshots(root):
    """Producer snapshots below `root`; the metadata log's files of the same name are something else."""
    for path in sorted(root.rglob("*.snapshot")):
        if re.fullmatch(r"\d{20}\.snapshot", path.name) and not path.parent.name.startswith("__cluster_metadata"):
            yield path


DEFAULT, SIX_SECONDS = None, 6000


def unexplained(path, profile, expiration_ms):
    """Yield the entries that differ though the log beside the snapshot holds all that is needed to know them."""
    segments = [memoryview(log.read_bytes()) for log in sorted(path.parent.glob("*.log"))]
    batches = list(LogReader(segments))
    state = ProducerStateManager(profile)
    offsets = (batch.offset if isinstance(batch, MarkerBatch) else batch.base_offset for batch in batches)
    end = int(path.stem)
    state.replicate(batch for batch, offset in zip(batches, offsets, strict=True) if offset < end)
    written_at = (path.stat().st_mtime + 1) * 1000  # the archive keeps whole seconds
    ours = {producer_id: snapshot_entry(producer_id, entry) for producer_id, entry in state.states.items()}
    theirs = {entry.producer_id: entry for entry in parse_producer_snapshot(path.read_bytes()).entries()}
    lying_there = {(batch.producer_id, batch.last_offset) for batch in batches if hasattr(batch, "last_offset")}
    for producer_id in sorted(ours.keys() | theirs.keys()):
        mine, recorded = ours.get(producer_id), theirs.get(producer_id)
        if mine == recorded:
            continue
        if (
            recorded is None
            and mine is not None
            and written_at - mine.timestamp >= (expiration_ms or profile.expiration_default_ms)
        ):
            continue  # expired by its records' time
        if (
            recorded is not None
            and recorded.last_offset >= 0
            and (producer_id, recorded.last_offset) not in lying_there
        ):
            continue  # its last batch was compacted or deleted since
        yield producer_id, mine, recorded


def check(root, version, expiration_ms=DEFAULT):
    found = list(snapshots(root))
    assert found
    profile = profile_for(version)
    wrong = [(str(path), entry) for path in found for entry in unexplained(path, profile, expiration_ms)]
    assert wrong == []


@pytest.mark.parametrize(("version", "archive"), ORACLE)
def test_recorded_log_directories(evidence, version, archive):
    check(evidence.oracle(version, archive), version)


@pytest.mark.parametrize(("capture", "version"), CAPTURES.items())
def test_captures(evidence, capture, version):
    check(evidence.capture(capture), version, SIX_SECONDS if capture == "cross-session" else DEFAULT)
