"""KA305: transaction indexes against the aborts of a real and of a written log."""

import shutil
import struct

import pytest

from tests.checks.sidefiles.findings import side_file_reports, side_findings
from tests.logs import Log, data, marker


@pytest.fixture
def rolled(evidence, tmp_path):
    """A real partition of 2.8.2 with aborts over several segments and its indexes, to be edited."""
    target = tmp_path / "b0" / "tx-roll-0"
    shutil.copytree(evidence.capture("txn-mix-2.8.2") / "logdirs/b0/tx-roll-0", target)
    return target


def rows_of(path):
    content = path.read_bytes()
    return [content[at : at + 34] for at in range(0, len(content), 34)]


def test_the_real_partition_is_silent(rolled):
    assert side_file_reports(rolled) == []
    assert sum(len(rows_of(path)) for path in rolled.glob("*.txnindex")) >= 2


def indexed(rolled):
    return next(path for path in sorted(rolled.glob("*.txnindex")) if path.stat().st_size)


def test_an_abort_without_its_row_is_found(rolled):
    path = indexed(rolled)
    _, producer, first, last, _ = struct.unpack(">hqqqq", rows_of(path)[0])
    path.unlink()
    (found,) = side_findings(rolled)
    assert (found.code, found.file.rsplit("/", 1)[-1]) == ("KA305", path.name)
    assert (found.producer_id, found.offset, found.last_offset) == (producer, first, last)


@pytest.mark.parametrize(("field", "reason"), [(1, "producer"), (2, "began"), (3, "no abort marker"), (4, "stable")])
def test_every_column_of_a_row_is_compared(rolled, field, reason):
    path = indexed(rolled)
    rows = rows_of(path)
    values = list(struct.unpack(">hqqqq", rows[-1]))
    values[field] += 1
    if field == 4:
        values[4] -= 2  # a later one may name a transaction that began behind the marker
    path.write_bytes(b"".join([*rows[:-1], struct.pack(">hqqqq", *values)]))
    (found,) = side_findings(rolled)
    assert reason in found.evidence["wrong"][0]["reason"]
    assert found.position == 34 * (len(rows) - 1)


def test_a_row_too_many_is_found(rolled):
    path = indexed(rolled)
    rows = rows_of(path)
    last = struct.unpack(">hqqqq", rows[-1])
    path.write_bytes(b"".join([*rows, struct.pack(">hqqqq", 0, 9, last[3] + 1, last[3] + 3, last[3] + 4)]))
    (found,) = side_findings(rolled)
    assert (found.evidence["wrong_rows"], found.evidence["missing_rows"]) == (1, 0)


def test_rows_of_empty_aborts_may_be_there_or_not(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 0, commit=False))
    log.append(marker(1, 0, commit=False))
    log.append(data(2, 0, 0, transactional=True))
    log.append(data(1, 0, 1, transactional=True))
    log.append(marker(1, 0, commit=False))
    directory = log.write(tmp_path / "b" / "t-0")
    (directory / "00000000000000000000.index").touch()
    (directory / "00000000000000000000.timeindex").touch()
    index = directory / "00000000000000000000.txnindex"
    first, empty, third = (0, 1, 0, 1, 2), (0, 1, 2, 2, 3), (0, 1, 4, 5, 3)
    for rows in ((first, third), (first, empty, third)):
        index.write_bytes(b"".join(struct.pack(">hqqqq", *row) for row in rows))
        assert side_file_reports(directory) == []
    index.write_bytes(struct.pack(">hqqqq", *first) + struct.pack(">hqqqq", 0, 1, 4, 5, 6))
    (found,) = side_findings(directory)
    assert found.evidence["wrong"][0]["reason"] == "the last stable offset was 3"
