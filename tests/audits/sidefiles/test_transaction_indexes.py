"""Rows of a transaction index against the aborts of its segment, and checkpoints against the log's end."""

import struct
from typing import Any

import crc32c
import numpy as np
import pytest
from msgspec.structs import replace

from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.audits.sidefiles.partition_files import (
    Abort,
    ExpectedRows,
    compare_rows,
    compare_side_files,
    compare_transaction_indexes,
)
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.formats.sidefiles.indexes import AbortedTxn, TransactionIndex
from kaudit.model.damage import DamageKind
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.source.bytes import LocalFile
from kaudit.source.layout import PartitionDirectory, SegmentFile
from tests.partition.test_continuity import placed
from tests.scanning.test_not_covered import NOTHING_WRONG

ABORT = 0
TWO = [Abort(7, 20, 30, None), Abort(8, 25, 40, 33)]


def row(producer_id, first, last, stable, position=0):
    return AbortedTxn(
        position=position, producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
    )


GOOD = [row(7, 20, 30, 31), row(8, 25, 40, 33)]


def compared(rows, aborts=TWO, start=0, complete=True):
    found = compare_rows("x.txnindex", 3, TransactionIndex(tuple(rows), ()), ExpectedRows(aborts, start, complete))
    if found is None:
        return None
    assert (found.file, found.segment, found.torn) == ("x.txnindex", 3, None)
    return [each.reason for each in found.wrong], [
        (each.producer_id, each.first_offset, each.last_offset) for each in found.missing
    ]


@pytest.mark.parametrize(
    ("rows", "wrong", "missing"),
    [
        ([], [], [(7, 20, 30), (8, 25, 40)]),
        (GOOD[:1], [], [(8, 25, 40)]),
        ([*GOOD, row(9, 41, 45, 46)], ["no abort marker lies at its last offset"], []),
        (GOOD[::-1], ["its marker offset does not rise above 40"], []),
        ([GOOD[0], *GOOD], ["its marker offset does not rise above 30"], []),
        ([row(9, 20, 30, 31), GOOD[1]], ["the marker is producer 7's"], []),
        ([row(7, 21, 30, 31), GOOD[1]], ["the transaction began at 20"], []),
        ([row(7, 30, 30, 31), GOOD[1]], ["the transaction has data from 20 on"], []),
        # with no other transaction open everything up to the marker is stable, or what began behind it in one append
        ([row(7, 20, 30, 30), GOOD[1]], ["the last stable offset was 31"], []),
        ([row(7, 20, 30, 35), GOOD[1]], [], []),
        ([GOOD[0], row(8, 25, 40, 32)], ["the last stable offset was 33"], []),
        ([GOOD[0], row(8, 25, 40, 34)], ["the last stable offset was 33"], []),
    ],
)  # fmt: skip
def test_rows_against_aborts(rows, wrong, missing):
    assert compared(GOOD) is None
    assert (compared(rows) or ([], [])) == (wrong, missing)


def test_an_abort_without_data_may_have_a_row_as_brokers_to_2_7_write_it():
    empty = [Abort(7, None, 30, None)]
    assert compared([], empty) is None
    assert compared([row(7, 30, 30, 31)], empty) is None
    assert compared([row(7, 29, 30, 31)], empty) == (["the transaction began at 30"], [])


@pytest.mark.parametrize(
    ("one", "start", "wrong"),
    [
        # what lies below the log's start the log does not know
        (row(7, 19, 30, 31), 20, []),
        (row(7, 19, 30, 31), 19, ["the transaction began at 20"]),
        (row(7, 20, 30, 20), 21, []),
        (row(7, 20, 30, 20), 20, ["the last stable offset was 31"]),
        (row(1, 1, 29, 30), 30, []),
        (row(1, 1, 29, 30), 29, ["no abort marker lies at its last offset"]),
    ],
)
def test_below_the_log_start_nothing_is_known(one, start, wrong):
    found = compared([one], [Abort(7, 20, 30, None)] if one.last_offset == 30 else [], start)
    assert (found or ([], []))[0] == wrong


def test_a_stable_offset_below_the_start_is_none_above_what_the_log_says():
    held = [Abort(8, 25, 40, 33)]
    assert compared([row(8, 25, 40, 32)], held, 33) is None
    assert compared([row(8, 25, 40, 34)], held, 35) == (["the last stable offset was 33"], [])


def test_of_a_log_that_is_not_whole_only_the_form_of_rows_is_compared():
    assert compared([row(9, 1, 2, 3)], [], complete=False) is None
    assert compared(GOOD[::-1], [], complete=False) == (["its marker offset does not rise above 40"], [])


SEGMENTS = [SegmentFile(f"/{base:020d}.log", f"{base:020d}.log", base, 9, 0) for base in (0, 50)]


def facts(directory, ended, **more: Any):
    rows = np.zeros(len(ended), dtype=ENDED_TRANSACTION)
    for number, (producer_id, first, marker, stable, kind, segment) in enumerate(ended):
        for name, value in {"producer_id": producer_id, "first_offset": first, "marker_offset": marker,
                            "stable_offset": stable, "type": kind, "segment": segment}.items():  # fmt: skip
            rows[name][number] = value
    return replace(LogFacts(directory, (), (), False, 0, 100, False, False, np.empty(0, dtype=[]), rows, False), **more)


def directory_of(segments=SEGMENTS, side_files=(), **more: Any):
    return PartitionDirectory("orders", 0, "b1", "/d", "/d/orders-0", "", segments, side_files=side_files, **more)


def files(tmp_path, **contents):
    found = {}
    for name, data in contents.items():
        path = tmp_path / name
        path.write_bytes(data)
        found[name] = SegmentFile(str(path), name, 0, len(data), 0)
    return found


READER = SideFileReader(lambda file: LocalFile(file.path))


def test_each_segment_has_the_aborts_of_its_own_markers(tmp_path):
    own = [(7, 20, 30, -1, ABORT, 0), (8, 51, 60, -1, ABORT, 1), (9, 52, 61, -1, 1, 1), (3, -1, 62, -1, ABORT, 1)]
    log = facts(directory_of(), own)
    found = list(compare_transaction_indexes(READER, log, {}))
    assert [(each.file, each.segment, [one.last_offset for one in each.missing]) for each in found] == [
        (f"{0:020d}.txnindex", 0, [30]), (f"{50:020d}.txnindex", 1, [60]),
    ]  # fmt: skip
    good = struct.pack(">hqqqq", 0, 7, 20, 30, 31)
    index = files(tmp_path, **{f"{0:020d}.txnindex": good, f"{50:020d}.txnindex": good[:-1]})
    (torn,) = compare_transaction_indexes(READER, log, index)
    assert (torn.segment, torn.torn is not None, len(torn.missing)) == (1, True, 1)
    # a segment that retention deleted, an index that is gone, a log of which the markers are not known
    deleted = facts(directory_of([replace(SEGMENTS[0], deleted=True), SEGMENTS[1]]), own)
    assert [each.segment for each in compare_transaction_indexes(READER, deleted, {})] == [1]
    (tmp_path / f"{50:020d}.txnindex").unlink()
    assert list(compare_transaction_indexes(READER, log, index)) == []
    for unknown in ({"unread": True}, {"compacted": True}, {"damages": ["?"]}, {"ended": None}):
        assert list(compare_transaction_indexes(READER, replace(log, **unknown), {})) == []


@pytest.mark.parametrize(
    ("segments", "expected"),
    [(SEGMENTS, [1, 1, 0]), (SEGMENTS[:1], [0, 0, 0]), ([], [None, None, None])],
)
def test_a_snapshot_that_does_not_parse_names_its_segment_and_the_valid_one_before(tmp_path, segments, expected):
    valid = b"\0\1" + struct.pack(">I", crc32c.crc32c(bytes(4))) + bytes(4)
    names = [f"{offset:020d}.snapshot" for offset in (50, 70, 0, 60)]
    side = files(tmp_path, **dict(zip(names, (b"x", b"\0", b"", valid), strict=True)))
    side |= files(tmp_path, **{"odd.snapshot": b"x"})
    found: Any = compare_side_files(READER, facts(directory_of(segments, list(side.values())), [])).faults
    by_name = {each.file: each for each in found if each.file.endswith(".snapshot")}
    assert sorted(by_name) == sorted(names[:3])
    assert [by_name[name].segment for name in names[:3]] == expected
    assert [by_name[name].older_snapshot for name in names[:3]] == [None, names[3], None]
    assert [by_name[name].size for name in names[:3]] == [1, 1, 0]
    assert all(each.position <= max(each.size - 1, 0) for each in by_name.values())


CHECKPOINT = "0\n3\norders 0 100\norders 1 500\norders 0 101\n"


def test_rows_of_checkpoints_beyond_the_end(tmp_path):
    checkpoints = list(files(tmp_path, **{"recovery-point-offset-checkpoint": CHECKPOINT.encode()}).values())
    directory = directory_of(checkpoints=checkpoints)
    part = replace_audit(directory)
    audit = CheckpointAudit(READER)
    assert [(each.file, each.offset, each.log_end_offset) for each in audit.compare(part)] == [
        ("recovery-point-offset-checkpoint", 101, 100)
    ]
    assert audit.offsets([directory], "recovery-point-offset-checkpoint") == {("orders", 0, "b1"): 101}
    assert audit.offsets([directory], "replication-offset-checkpoint") == {}
    assert audit.offsets([replace(directory, partition=2)], "recovery-point-offset-checkpoint") == {}
    # where the log's end is not known nothing is beyond it: a text that leaves it out, one that cannot be read, no batch
    left_out = replace(placed(1), damage=replace(placed(1).damage, kind=DamageKind.LEFT_OUT))
    for more in ({"damages": [left_out]}, {"unreadable": ["?"]}, {"log_end_offset": None}):
        assert list(CheckpointAudit(READER).compare(replace_audit(directory, **more))) == []
    assert len(list(CheckpointAudit(READER).compare(replace_audit(directory, damages=[placed(0)])))) == 1
    assert audit.unparsable == []


def replace_audit(directory, **more: Any):
    return replace(NOTHING_WRONG, directory=directory, **more)


def test_a_checkpoint_that_does_not_parse_is_said_once(tmp_path):
    checkpoints = list(files(tmp_path, **{"recovery-point-offset-checkpoint": b"0\n2\norders 0 100\n"}).values())
    audit = CheckpointAudit(READER)
    for partition in (0, 1):
        directory = replace(directory_of(checkpoints=checkpoints), partition=partition)
        assert list(audit.compare(replace_audit(directory))) == []
    (found,) = audit.unparsable
    assert (found.log_dir, found.file) == ("/d", "recovery-point-offset-checkpoint")
