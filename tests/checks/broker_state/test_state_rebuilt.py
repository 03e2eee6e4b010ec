"""KA818: producer snapshots that a broker cannot read, by its own lines."""

from kaudit.checks.broker_state.logged_coordinators import state_rebuilt
from tests.checks.broker_state.lines import line, reported

CORRUPT = "Snapshot is corrupt (CRC is no longer valid). Stored crc: 2541911257. Computed crc: 989802376"


def unreadable(offset: int) -> str:
    return f"Failed to load producer snapshot from '/data/orders-0/{offset:020d}.snapshot': {CORRUPT}"


def test_the_snapshot_is_named_by_its_offset(tmp_path):
    (found,) = reported(state_rebuilt, tmp_path, server=[line(unreadable(34), level="WARN")])
    assert (found.severity.value, found.topic, found.partition) == ("note", "orders", 0)
    assert found.message.startswith(
        "a broker could not read the producer snapshot at offset 34 in orders-0: it deletes it"
    )
    lines = [line(unreadable(offset), offset, "WARN") for offset in (34, 20)]
    (found,) = reported(state_rebuilt, tmp_path, server=lines)
    assert "producer snapshots up to offset 34 in orders-0" in found.message


def test_a_snapshot_that_is_loaded_is_silent(tmp_path):
    text = "[ProducerStateManager partition=orders-0] Loading producer state from snapshot file 'SnapshotFile(offset=34, file=/data/orders-0/00000000000000000034.snapshot)'"
    assert not reported(state_rebuilt, tmp_path, server=[line(text)])
