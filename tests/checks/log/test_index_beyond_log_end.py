"""KA015: rows that a truncated log has left in an index that is still open (AbstractIndex.truncateToEntries)."""

import struct

import pytest

from kaudit.checks.log.log_end import index_beyond_log_end
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.total_impact import total_impact
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.logs import data

OFFSET_ROWS = {"index": struct.pack(">ii", 2, 0), "timeindex": struct.pack(">qi", 1, 2)}
BEYOND = {"index": struct.pack(">ii", 8, 400), "timeindex": struct.pack(">qi", 2, 8)}
"""Row 1, of offset 8."""


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (240, [("KA015", "note")]),
        (0, [("KA014", "error")]),  # the broker had closed it: nothing truncated leaves such rows
    ],
)
def test_rows_beyond_the_end_of_the_log(tmp_path, kind, room, expected):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(data(1, 0, 0, 3).encode() + data(1, 0, 3, 3).at(3).encode())
    (partition / f"{0:020d}.{kind}").write_bytes(OFFSET_ROWS[kind] + BEYOND[kind] + bytes(room))
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    found = [each for each in result.findings if each.code in ("KA014", "KA015")]
    assert [(each.code, each.severity.value) for each in found] == expected
    assert result.coverage[0].all_accounted is (room > 0)
    if room:
        assert (found[0].evidence["row"], found[0].evidence["known_end_offset"]) == (1, 9)
    else:
        assert (found[0].offset, found[0].last_offset) == (6, 8)
    assert not any(each.severity.value == "warning" for each in result.findings)


PAGE = 4096


@pytest.mark.parametrize(
    ("ends_at", "epochs", "expected"),
    [
        (PAGE + 7, (0, 0, 0), [(40, None)]),  # no append ends there: the broker did not cut it
        (PAGE, (0, 0, 0), []),  # an append that was interrupted, or copied before its end
        (PAGE + 7, (0, 0, 1), []),  # a leader epoch begins in the segment: its log may have been truncated before
    ],
    ids=["cut", "page", "epoch"],
)
def test_rows_beyond_the_end_of_a_log_that_breaks_off(tmp_path, ends_at, epochs, expected):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    content, offset = b"", 0
    while len(content) <= ends_at:
        epoch = epochs[min(offset // 20, 2)]
        whole, content = content, content + data(1, 0, offset, 10, leader_epoch=epoch).at(offset).encode()
        offset += 10
    end = offset - 10
    (partition / f"{0:020d}.log").write_bytes(content[:ends_at])
    rows = struct.pack(">iiii", 9, 0, end + 39, len(whole) + PAGE)
    (partition / f"{0:020d}.index").write_bytes(rows + bytes(80))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n0\n")
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    found = [each.impact for each in result.findings if each.code in ("KA014", "KA015")]
    assert [(each.records_lost_at_least, each.records_lost_at_most) for each in found] == expected
    # with a high watermark the most is known
    (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {end + 60}\n")
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    total = total_impact(result.findings)
    assert (total.records_lost_at_least, total.records_lost_at_most) == (60 if ends_at > PAGE else 0, 60)


def test_index_beyond_log_end_is_not_found_in_a_healthy_log():
    assert recorded_findings(index_beyond_log_end, "samples/clean") == []
