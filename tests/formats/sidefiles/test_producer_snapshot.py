import re
import struct
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot, producer_snapshot
from kaudit.model.side_files import SnapshotEntry
from tests.formats.archives import files
from tests.formats.fuzz import damaged, outcome, quick

int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int16 = st.integers(-(2**15), 2**15 - 1)
entries = st.builds(SnapshotEntry, int64, int16, int32, int64, int32, int64, int32, int64)


def encode(rows, version=1, crc=None, count=None, tail=b""):
    body = struct.pack(">i", len(rows) if count is None else count)
    for r in rows:
        body += struct.pack(">qhi", r.producer_id, r.producer_epoch, r.last_sequence)
        body += struct.pack(">qi", r.last_offset, r.offset_delta)
        body += struct.pack(">qiq", r.timestamp, r.coordinator_epoch, r.current_txn_first_offset)
    body += tail
    return struct.pack(">hI", version, crc32c.crc32c(body) if crc is None else crc) + body


@given(st.lists(entries, max_size=5))
@quick
def test_round_trip(rows):
    assert list(parse_producer_snapshot(encode(rows)).entries()) == rows


ROW = SnapshotEntry(7, 0, 5, 6, 0, 9, -1, -1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (encode([])[:9], Reason.TRUNCATED),
        (encode([ROW])[:-1], Reason.TRUNCATED),
        (encode([ROW], count=2**31 - 1), Reason.TRUNCATED),
        (encode([ROW], version=2), Reason.VERSION),
        (encode([ROW], crc=1), Reason.CRC),
        (encode([ROW], count=-1), Reason.COUNT),
        (encode([ROW], tail=b"\x00"), Reason.LENGTH),
        (encode([ROW], count=0), Reason.LENGTH),
    ],
)
def test_each_fault_has_its_reason(data, reason):
    with pytest.raises(WireError) as caught:
        parse_producer_snapshot(data)
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("label", "reason"), [("snapshot-truncated", Reason.TRUNCATED), ("snapshot-garbage-version", Reason.VERSION)]
)
def test_the_labelled_damage(evidence, label, reason):
    path = evidence.capture("torn-writes") / "artificial" / label / "explosion-0" / "00000000000000001322.snapshot"
    with pytest.raises(WireError) as caught:
        parse_producer_snapshot(path.read_bytes())
    assert caught.value.reason is reason


def _dumped(line):
    """The entry that a dump line shows; a producer known by its marker alone has no batch to print."""
    fields = {name: re.sub(r"[^-\d]", "", value) for name, value in re.findall(r"(\w+): (\S*)", line)}
    return SnapshotEntry(
        int(fields["producerId"]),
        int(fields["producerEpoch"]),
        int(fields.get("lastSequence", -1)),
        int(fields.get("lastOffset", -1)),
        int(fields.get("offsetDelta", 0)),
        int(fields.get("lastTimestamp") or fields["timestamp"]),  # one field in the file, printed twice from 2.4 on
        int(fields["coordinatorEpoch"]),
        int(fields["currentTxnFirstOffset"] or -1),
    )


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0"])
def test_every_snapshot_equals_that_versions_own_dump(evidence, version):
    root = evidence.oracle(version, "logdir") / "main"
    dumped: dict[Path, list[SnapshotEntry]] = {}
    path = root
    for line in (evidence.oracle(version, "dumps") / "snapshots.txt").read_text().splitlines():
        if line.startswith("Dumping "):
            path = root / line.removeprefix("Dumping ")
            dumped[path] = []
        else:
            dumped[path].append(_dumped(line))
    present = {path: rows for path, rows in dumped.items() if path.exists()}  # not all that was dumped is kept
    assert sum(map(len, present.values())) > 12
    for path, rows in present.items():
        assert list(parse_producer_snapshot(path.read_bytes()).entries()) == rows


def test_every_snapshot_there_is(evidence):
    """All but the labelled ones are whole, hold only what lies before their own offset, and each id once."""
    valid = 0
    for path in files(evidence, "*.snapshot", without=["snapshot-truncated", "snapshot-garbage-version"]):
        snapshot = parse_producer_snapshot(path.read_bytes())
        assert len(snapshot.rows) * 46 + 10 == path.stat().st_size
        assert (snapshot.rows["last_offset"] < int(path.stem)).all()
        assert len(set(snapshot.rows["producer_id"].tolist())) == len(snapshot.rows)
        valid += 1
    assert valid > 1500


SAMPLES = [encode([]), encode([ROW]), encode([ROW] * 5)]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    snapshot, error = outcome(parse_producer_snapshot, data)
    assert error is None or 0 <= error.position <= len(data)
    assert snapshot is None or len(list(snapshot.entries())) == (len(data) - 10) // 46


@given(st.lists(entries, max_size=5))
@quick
def test_what_is_written_are_the_bytes_of_the_format(rows):
    assert producer_snapshot(rows) == encode(rows)
