"""KA014: snapshots and leader epochs that know more of a log than its segments (ProducerStateManager.takeSnapshot)."""

import pytest

from kaudit.checks.log.log_end import log_ends_early
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.logs import data

EMPTY_SNAPSHOT = bytes.fromhex("0001 edc63c71 00000000")
"""Version 1, CRC32C of the entry count, no entries."""


def log_of(directory, *, snapshot=None, epochs=(), last=None, torn=0, flipped=0):
    """Write orders-0 with offsets 0 to 9; `last`: an empty segment begins there; `flipped`: a byte so far from the end."""
    partition = directory / "orders-0"
    partition.mkdir(parents=True)
    content = b"".join(data(1, 0, offset, 5).at(offset).encode() for offset in (0, 5))
    if flipped:
        content = content[:-flipped] + bytes([content[-flipped] ^ 1]) + content[len(content) - flipped + 1 :]
    (partition / f"{0:020d}.log").write_bytes(content[: len(content) - torn])
    if last is not None:
        (partition / f"{last:020d}.log").write_bytes(b"")
    if snapshot is not None:
        (partition / f"{snapshot:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
    rows = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
    (partition / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{rows}")
    return directory


def found(directory):
    result = scan(ScanOptions([str(directory)], jobs=1), SilentProgress())
    return [
        (each.severity.value, each.offset, each.last_offset, each.impact.records_lost_at_most)
        for each in result.findings
        if each.code == "KA014"
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"snapshot": 10}, []),
        ({"snapshot": 15}, [("error", 10, 14, 5)]),
        ({"epochs": [(0, 0), (1, 10)]}, []),  # a new leader that has not written yet
        ({"epochs": [(0, 0), (1, 12)]}, [("error", 10, 11, 2)]),
        ({"snapshot": 15, "epochs": [(0, 0), (1, 12)]}, [("error", 10, 14, 5)]),
        # the empty segment says that the log reached 15: KA008 reports what is missing before it
        ({"snapshot": 15, "last": 15}, []),
        # a batch that is cut off is not in the log
        ({"snapshot": 15, "torn": 3}, [("error", 5, 14, 10)]),
        # one whose content is damaged says in its header which offsets it held: KA001 reports those
        ({"snapshot": 10, "flipped": 3}, []),
        ({"snapshot": 15, "flipped": 3}, [("error", 10, 14, 5)]),
    ],
)
def test_files_that_know_more_than_the_segments(tmp_path, files, expected):
    assert found(log_of(tmp_path, **files)) == expected


def test_a_log_without_a_batch_ends_where_its_segment_begins(tmp_path):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{20:020d}.log").write_bytes(b"")
    (partition / f"{20:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
    assert found(tmp_path) == []
    (partition / f"{30:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
    assert found(tmp_path) == [("error", 20, 29, 10)]


def test_log_ends_early_is_not_found_in_a_healthy_log():
    assert recorded_findings(log_ends_early, "samples/clean") == []
