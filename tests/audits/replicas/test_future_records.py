"""Records dated after their files were written."""

import os
from pathlib import Path

import pytest

import kaudit
from kaudit.audits.replicas.future_records import MARGIN_MS, future_records
from kaudit.model.batch_fields import LOG_APPEND_TIME_FLAG
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import BASE_TIMESTAMP, Batch, Log

WRITTEN = BASE_TIMESTAMP + 1000
"""When the files were written last."""
LATE = WRITTEN + MARGIN_MS + 5000


def found(tmp_path: Path, *times: int, clock=-1, written=WRITTEN, attributes=0):
    """Batches of three records with these timestamps, two in each segment."""
    log = Log()
    for time in times:
        log.clock = time - 1
        log.append(Batch(-1, -1, -1, 3, attributes=attributes))
    starts = tuple(batch.base_offset for batch in log.batches[::2])
    directory = log.write(tmp_path / "t-0", segment_starts=starts)
    for file in directory.iterdir():
        os.utime(file, (written / 1000, written / 1000))
    (partition,) = discover([str(tmp_path)]).partitions
    return future_records(partition, clock, open_segment)


def test_what_is_dated_after_its_file_is_counted(tmp_path):
    records = found(tmp_path, WRITTEN, LATE, WRITTEN, LATE + 7, WRITTEN)
    assert records is not None
    assert (records.records, records.first_offset, records.last_offset) == (6, 3, 11)
    assert (records.segment, records.segments, records.newest_ms, records.written_by_ms) == (0, 2, LATE + 7, WRITTEN)
    assert records.kept_bytes == sum(file.stat().st_size for file in sorted((tmp_path / "t-0").iterdir())[:2])


def test_a_broker_whose_clock_was_ahead_is_known_by_what_one_stamped_later(tmp_path):
    records = found(tmp_path, WRITTEN, LATE, LATE + 1, WRITTEN + 2, attributes=LOG_APPEND_TIME_FLAG)
    assert records is not None
    assert (records.records, records.first_offset, records.last_offset, records.broker_ahead) == (6, 3, 8, True)
    (told,) = (each for each in kaudit.scan(str(tmp_path)).findings if each.code == "KA616")
    assert (told.offset, told.last_offset) == (3, 8)
    assert [each.cause for each in told.explanations] == ["the clock of the broker was ahead"]


@pytest.mark.parametrize(
    ("time", "more"),
    [
        pytest.param(WRITTEN + MARGIN_MS, {}, id="a-day"),
        pytest.param(LATE, {"clock": LATE}, id="brokers-were-there"),
        pytest.param(LATE, {"written": 315_532_800_000}, id="no-time-of-a-file"),
        pytest.param(LATE, {"attributes": LOG_APPEND_TIME_FLAG}, id="broker-stamped"),
    ],
)
def test_what_may_have_been_written_then_is_not(tmp_path, time, more):
    assert found(tmp_path, WRITTEN, time, **more) is None
