"""The state a broker would hold after a log, at the end of a timeline."""

import pytest

from kaudit.engines.local import timeline
from kaudit.engines.progress import SilentProgress
from kaudit.model.timeline import STATE
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Log, data, marker
from tests.timelines import timelines_of


def state(producer_epoch, last_sequence, last_offset, last_timestamp, coordinator_epoch=None, open_since=None):
    """The last timestamp counts batches: they are a millisecond apart."""
    return {
        "producer_epoch": producer_epoch,
        "last_sequence": last_sequence,
        "last_offset": last_offset,
        "last_timestamp": BASE_TIMESTAMP + last_timestamp,
        "coordinator_epoch": coordinator_epoch,
        "current_txn_start_offset": open_since,
    }


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([data(7, 2, 0, 3)], state(2, 2, 2, 1)),
        ([data(7, 2, 0, 3), data(7, 3, 0, 2)], state(3, 1, 4, 2)),
        ([data(7, 2, 0, 3, transactional=True)], state(2, 2, 2, 1, open_since=0)),
        ([data(7, 2, 0, 3, transactional=True), marker(7, 2, coordinator_epoch=5)], state(2, 2, 2, 2, 5)),
        # the coordinator fences a producer with a newer epoch, under which nothing was written
        ([data(7, 2, 0, 3, transactional=True), marker(7, 3, commit=False, coordinator_epoch=6)],
         state(3, None, None, 2, 6)),
        ([data(7, 2, 0, 1, transactional=True), marker(7, 3, commit=False, coordinator_epoch=6),
          data(7, 3, 0, 2, transactional=True)], state(3, 1, 3, 3, 6, 2)),
        ([data(7, 2, 0, 1, transactional=True), marker(7, 2, coordinator_epoch=0),
          data(7, 3, 0, 1, transactional=True), marker(7, 3, coordinator_epoch=1)], state(3, 0, 2, 4, 1)),
        ([marker(7, 4, commit=False, coordinator_epoch=2)], state(4, None, None, 1, 2)),
        # a marker that compaction emptied says nothing any more
        ([data(7, 2, 0, 3, transactional=True), marker(7, 3, kept=0)], state(2, 2, 2, 1, open_since=0)),
    ],
)  # fmt: skip
def test_the_state_after_a_log(tmp_path, batches, expected):
    log = Log()
    for batch in batches:
        log.append(batch)
    log.write(tmp_path / "t-0")
    (found,) = timelines_of(timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress()).histories)
    assert dict(zip(STATE, found.state, strict=True)) == expected


PRINTED = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: {1} lastSequence: {1} producerId: 7 producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: true isControl: {2} deleteHorizonMs: OptionalLong.empty position: {3} "
    "CreateTime: 1700000000000 size: 78 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
)
"""A line that kafka-dump-log prints of a batch without --print-data-log: nothing of a control batch's record."""


def test_a_marker_that_was_printed_without_its_content_has_no_coordinator_epoch(tmp_path):
    text = "Starting offset: 0\n" + PRINTED.format(0, 0, "false", 0) + PRINTED.format(1, -1, "true", 78)
    path = tmp_path / "dump.txt"
    path.write_text(text)
    (found,) = timelines_of(timeline(ScanOptions([str(path)]), SilentProgress()).histories)
    assert [(each.kind, each.to_dict().get("coordinator_epoch")) for each in found.entries] == [
        ("run", None),
        ("marker", None),
    ]
