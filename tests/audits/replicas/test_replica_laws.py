"""Ranges of offsets and windows of batches, against sets of offsets: what two copies hold is known offset by offset."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.replicas import gaps, replica_reader
from kaudit.audits.replicas import missing_records as counting
from kaudit.audits.replicas.compare import COLUMNS, Columns, Conflict, PairCompare, batch_at
from kaudit.audits.replicas.gaps import Gap, Held, replica_gaps
from kaudit.audits.replicas.missing_records import missing_records
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.audits.replicas.replica_set import merged_epochs, read_side_by_side
from kaudit.formats.sidefiles.checkpoints import parse_leader_epoch_checkpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.replicas import MissingRecords, OffsetRange
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.diff.replicas import Copy, history
from tests.diff.test_relations import run
from tests.logs import BASE_TIMESTAMP, Batch

OFFSETS = 24


@st.composite
def held(draw: st.DrawFn) -> tuple[Held, set[int]]:
    """A copy with gaps, none of which touches another, and the offsets it holds."""
    start = draw(st.integers(0, 6))
    end = draw(st.integers(start + 1, OFFSETS))
    inside = draw(st.sets(st.integers(start + 1, max(start + 1, end - 2)), max_size=6))
    lacked = {offset for offset in inside if offset < end - 1}
    firsts = sorted(offset for offset in lacked if offset - 1 not in lacked)
    lasts = sorted(offset for offset in lacked if offset + 1 not in lacked)
    gaps = [Gap(first, last, draw(st.booleans()), 0, first) for first, last in zip(firsts, lasts, strict=True)]
    return Held(start, end, gaps), set(range(start, end)) - lacked


def offsets_of(ranges: list[OffsetRange]) -> set[int]:
    assert all(one.last < other.first for one, other in pairwise(ranges))
    assert all(each.first <= each.last for each in ranges)
    return {offset for each in ranges for offset in range(each.first, each.last + 1)}


@settings(max_examples=150, deadline=None)
@given(held(), st.integers(0, OFFSETS), st.integers(0, OFFSETS))
def test_what_a_copy_holds_of_a_range(copy, first, last):
    log, own = copy
    within = log.range_of(first, last)
    asked = set(range(first, last + 1)) & set(range(log.start, log.end))
    assert (set() if within is None else offsets_of([within])) == asked
    if within is not None:
        assert offsets_of(list(log.parts(within))) == own & asked


def test_a_copy_without_batches_holds_nothing():
    assert Held(None, 7, ()).range_of(0, 9) is None


@settings(max_examples=200, deadline=None)
@given(st.lists(held(), min_size=2, max_size=3), st.integers(0, OFFSETS))
def test_what_copies_lack_and_others_hold(made, agreed):
    copies = {f"b{number}": log for number, (log, _) in enumerate(made)}
    own = {f"b{number}": offsets for number, (_, offsets) in enumerate(made)}
    expected: dict[tuple[int, int], tuple[list[str], set[str]]] = {}
    compacted = False
    for name, log in copies.items():
        for gap in (gap for gap in log.gaps if gap.cut):
            lacked = {offset for offset in range(gap.first, gap.last + 1) if offset < agreed}
            others = [other for other in copies if other != name]
            in_a_log = any(lacked & set(range(copies[other].start, copies[other].end)) for other in others)
            held_there = set().union(*(lacked & own[other] for other in others))
            compacted |= in_a_log and not held_there
            if held_there:
                lacking, holders = expected.setdefault((min(held_there), max(held_there)), ([], set()))
                lacking.append(name)
                holders |= {other for other in others if lacked & own[other]}
    found = replica_gaps(copies, lambda *_: agreed)
    assert [(gap.first_offset, gap.last_offset, gap.missing_on, set(gap.held_by)) for gap in found] == (
        [] if compacted else [(*place, *expected[place]) for place in sorted(expected)]
    )


def columns(batches: list[dict[str, int]]) -> Columns:
    return {name: np.array([batch[name] for batch in batches], dtype=np.int64) for name in COLUMNS}


def batch(base: int, last: int, **more: int) -> dict[str, int]:
    values = dict.fromkeys(COLUMNS, 0) | {"base_offset": base, "last_offset": last, "magic": 2, "crc": 1000 + base}
    return values | {"record_count": last - base + 1, "leader_epoch": 3, "producer_id": 7, "base_sequence": base} | more


BESIDE_THE_CRC = ("leader_epoch", "magic")
UNDER_THE_CRC = ("producer_id", "producer_epoch", "base_sequence")


@st.composite
def cut_offsets(draw: st.DrawFn) -> list[dict[str, int]]:
    """Batches of one to three records, some left out."""
    found, at = [], 0
    while at < OFFSETS:
        last = min(at + draw(st.integers(0, 2)), OFFSETS - 1)
        if draw(st.integers(0, 5)):
            found.append(batch(at, last))
        at = last + 1
    return found


def first_conflict(left: list[dict[str, int]], right: list[dict[str, int]]) -> int | None:
    """The first offset at which a batch of one begins inside a batch of the other, or both begin and are not the same."""
    found = set()
    for rows, others in ((left, right), (right, left)):
        for row in rows:
            for other in others:
                inside = other["base_offset"] < row["base_offset"] <= other["last_offset"]
                both = other["base_offset"] == row["base_offset"] and other != row
                if inside or both:
                    found.add(row["base_offset"])
    return min(found, default=None)


@settings(max_examples=250, deadline=None)
@given(cut_offsets(), st.data())
def test_the_first_conflict_of_two_copies_wherever_windows_end(left, data):
    right = data.draw(st.one_of(st.just(left), cut_offsets()))
    right = [dict(row) for row in right]
    for _ in range(data.draw(st.integers(0, 2)) if right else 0):
        row = data.draw(st.sampled_from(right))
        row[data.draw(st.sampled_from(("crc", *BESIDE_THE_CRC)))] += 1
    windows = [-1, *sorted(data.draw(st.sets(st.integers(0, OFFSETS - 1), max_size=3))), OFFSETS]
    compare = PairCompare(compacted=False)
    found = []
    for after, until in pairwise(windows):
        parts = [[row for row in rows if after < row["base_offset"] <= until] for rows in (left, right)]
        conflict = compare.feed(columns(parts[0]), columns(parts[1]))
        if conflict is not None:
            found.append(conflict.offset)
            for at, rows in ((conflict.left, parts[0]), (conflict.right, parts[1])):
                assert at is None or rows[at]["base_offset"] <= conflict.offset <= rows[at]["last_offset"]
    assert min(found, default=None) == first_conflict(left, right)


@pytest.mark.parametrize(("other", "compacted", "conflict"), [
    (batch(4, 6), False, None),
    (batch(4, 6, crc=1), False, Conflict(4, 0, 0)),
    # the cleaner took a record, or set the delete horizon: it sealed the batch anew
    (batch(4, 6, crc=1, record_count=2), False, None),
    (batch(4, 6, crc=1, attributes=0x40), False, None),
    # what it never changes
    *((batch(4, 6, crc=1, record_count=2, **{name: 1}), False, Conflict(4, 0, 0)) for name in BESIDE_THE_CRC),
    *((batch(4, 6, crc=1, record_count=2, **{name: 1}), False, Conflict(4, 0, 0)) for name in UNDER_THE_CRC),
    (batch(4, 7, crc=1, record_count=2), False, Conflict(4, 0, 0)),
    # the cleaner writes messages of magic 0 and 1 anew, batches of magic 2 only where it takes something
    (batch(4, 6, crc=1), True, Conflict(4, 0, 0)),
])  # fmt: skip
def test_what_the_cleaner_changes_is_no_conflict(other, compacted, conflict):
    for left, right in ((batch(4, 6), other), (other, batch(4, 6))):
        assert PairCompare(compacted=compacted).feed(columns([left]), columns([right])) == conflict


@pytest.mark.parametrize(("windows", "conflict"), [
    # each side's row, by its place in the window
    ([([batch(0, 1), batch(4, 6)], [batch(4, 6, crc=1)])], Conflict(4, 1, 0)),
    ([([batch(0, 1), batch(2, 6)], [batch(0, 1), batch(4, 8)])], Conflict(4, 1, 1)),
    ([([batch(0, 1)], [batch(0, 1)]), ([batch(2, 3)], [batch(2, 3), batch(4, 4)])], None),
    # begins inside a batch of an earlier window
    ([([batch(0, 5)], []), ([], [batch(3, 7)])], Conflict(3, None, 0)),
    ([([batch(0, 5)], []), ([], []), ([], [batch(5, 7)])], Conflict(5, None, 0)),
    ([([batch(0, 5)], []), ([], [batch(6, 7)])], None),
    ([([batch(0, 5)], []), ([batch(6, 9)], [batch(8, 9)])], Conflict(8, 0, 0)),
])  # fmt: skip
def test_which_rows_hold_the_offset(windows, conflict):
    turned = conflict if conflict is None else Conflict(conflict.offset, conflict.right, conflict.left)
    for side, expected in ((1, conflict), (-1, turned)):
        compare = PairCompare(compacted=False)
        assert [compare.feed(*map(columns, rows[::side])) for rows in windows][-1] == expected


@pytest.mark.parametrize("compacted", [False, True])
def test_messages_of_a_compacted_topic_are_written_anew(compacted):
    rows = [columns([batch(4, 4, magic=1, crc=crc)]) for crc in (1, 2)]
    assert (PairCompare(compacted=compacted).feed(*rows) is None) is compacted


def directory(log: Copy, path):
    (found,) = discover([str(log.write(path))]).partitions
    return found


def missing(tmp_path, copy: Copy, other: Copy | None, offset: int, high_watermark: int | None) -> MissingRecords:
    theirs = None if other is None else directory(other, tmp_path / "other")
    return missing_records(
        directory(copy, tmp_path / "copy"), theirs, offset, high_watermark=high_watermark, open_source=open_segment
    )


def sent(number: int, *, at: int, **more: int) -> Batch:
    """Three records sent at a time of their own; a re-send keeps it."""
    values = {"producer_id": 7, "epoch": 0, "sequence": 3 * number, "timestamp": BASE_TIMESTAMP + 1000 * number} | more
    return Batch(count=3, base_offset=at, payload=b"%d" % number, **values)  # type: ignore[arg-type]


OWN = [sent(number, at=3 * number, leader_epoch=1) for number in range(6)]
"""Offsets 0 to 17: batch `number` at three times its number."""


@pytest.mark.parametrize(("theirs", "offset", "high_watermark", "expected"), [
    # nobody else has it: three batches of three records, sent within two seconds; all but the last had been answered
    (None, 9, None, MissingRecords(9, 0, 0, 0, 2000, 6)),
    # the batch that holds the offset counts as a whole
    (None, 11, None, MissingRecords(9, 0, 0, 0, 2000, 6)),
    (None, 12, None, MissingRecords(6, 0, 0, 0, 1000, 3)),
    (None, 9, 9, MissingRecords(9, 0, 0, 0, 2000, 6)),
    # below the high watermark: records 9 and 10; 9 to 14
    (None, 9, 11, MissingRecords(9, 2, 0, 0, 2000, 4)),
    (None, 9, 15, MissingRecords(9, 6, 0, 0, 2000)),
    (None, 9, 99, MissingRecords(9, 9, 0, 0, 2000)),
    # the other one holds them all in place, under another leader epoch
    ([sent(number, at=3 * number) for number in range(6)], 0, 18, MissingRecords(0, 0, 0, 0, 0)),
    # it took batches 4 and 5 again at other offsets, batch 3 never
    ([*OWN[:3], sent(4, at=9), sent(5, at=12)], 9, 18, MissingRecords(3, 3, 6, 0, 0)),
    # a new producer id: no re-send that can be recognised
    ([*OWN[:3], sent(4, at=9, producer_id=8)], 9, None, MissingRecords(9, 0, 0, 0, 2000, 6)),
    # stamped anew: neither
    ([*OWN[:3], sent(4, at=9, timestamp=BASE_TIMESTAMP)], 9, None, MissingRecords(9, 0, 0, 0, 2000, 9)),
    # a later epoch of the same producer is the same records
    ([*OWN[:3], sent(4, at=9, epoch=1, sequence=0)], 9, None, MissingRecords(6, 0, 3, 0, 2000, 6)),
])  # fmt: skip
def test_records_that_one_copy_alone_holds(tmp_path, theirs, offset, high_watermark, expected):
    other = None if theirs is None else Copy(theirs)
    assert missing(tmp_path, Copy(OWN), other, offset, high_watermark) == expected


def test_of_an_idempotent_producer_only_the_last_batch_may_be_unanswered(tmp_path):
    """A broker reads a connection's next request once it has answered the one before; others' retries say so of all plain batches."""
    own = [sent(number, at=3 * number) for number in range(8)]
    assert missing(tmp_path / "idempotent", Copy(own), Copy(own[:1]), 3, None).not_sent_again == 18
    plain = [sent(number, at=3 * number, producer_id=-1, epoch=-1, sequence=-1) for number in range(3)]
    retried = sent(3, at=9)
    for others, expected in (
        ([], 0),
        ([retried.at(3)], 6),
        ([sent(9, at=3, producer_id=-1, epoch=-1, sequence=-1)], 6),
    ):
        path = tmp_path / f"{len(others)}-{expected}-{others[0].producer_id if others else 0}"
        assert missing(path, Copy([*plain, retried]), Copy([plain[0], *others]), 3, None).not_sent_again == expected


def test_records_that_a_client_sent_again_in_other_batches_are_there(tmp_path):
    """librdkafka makes new batches of what it retries: two batches of three records are one of six there."""
    plain: dict[str, Any] = {"producer_id": -1, "epoch": -1, "sequence": -1}
    own = [
        sent(0, at=0, **plain),
        Batch(count=3, base_offset=3, payload=b"x", **plain),
        Batch(count=3, base_offset=6, payload=b"x", **plain),
    ]
    other = [own[0], Batch(count=6, base_offset=3, payload=b"x", leader_epoch=1, **plain)]
    assert missing(tmp_path, Copy(own), Copy(other), 3, None) == MissingRecords(0, 0, 6, 0, 0)


def test_so_many_batches_of_the_other_copy_are_looked_through(tmp_path, monkeypatch):
    """Batch 3 is sent again as the third batch behind the offset, in a segment of its own."""
    again = Copy([*OWN[:3], sent(4, at=9), sent(5, at=12), sent(3, at=15)], rolls=(15,))
    for most, lost in ((3, 0), (2, 3)):
        monkeypatch.setattr(counting, "MAX_COMPARED", most)
        assert missing(tmp_path / str(most), Copy(OWN), again, 9, None).records == lost


def test_records_without_a_sequence_that_nobody_acknowledged_are_counted_apart(tmp_path):
    plain = [sent(number, at=3 * number, producer_id=-1, epoch=-1, sequence=-1) for number in range(3)]
    lost = missing(tmp_path, Copy([*plain, sent(3, at=9)]), None, 3, 7)
    # offsets 3 to 6 were acknowledged; 7 and 8 were not and have no sequence, 9 to 11 have one
    assert lost == MissingRecords(9, 4, 0, 2, 2000)


def test_batches_without_a_time_say_nothing_of_when_records_were_sent(tmp_path):
    own = [sent(0, at=0), sent(1, at=3, timestamp=-1), sent(2, at=6)]
    assert missing(tmp_path, Copy(own), None, 0, None) == MissingRecords(9, 0, 0, 0, 2000, 6)


@pytest.mark.parametrize(("first", "records", "last"), [
    (-1, 3, -1), (0, 1, 0), (0, 3, 2), (5, 3, 7), (2**31 - 1, 1, 2**31 - 1),
    # after the largest sequence comes 0: DefaultRecordBatch.incrementSequence
    (2**31 - 1, 2, 0), (2**31 - 2, 4, 1),
])  # fmt: skip
def test_the_last_sequence_of_a_batch(first, records, last):
    rows = columns([batch(0, 0), batch(40, 40 + records - 1, base_sequence=first, max_timestamp=9)])
    found = batch_at(rows, 1)
    assert (found.offset, found.last_offset, found.base_sequence, found.last_sequence) == (
        40,
        39 + records,
        first,
        last,
    )
    assert (found.timestamp, found.crc, found.leader_epoch) == (9, 1040, 3)


def entries(*pairs: tuple[int, int]) -> list[EpochEntry]:
    return [EpochEntry(epoch, start) for epoch, start in pairs]


@pytest.mark.parametrize(("checkpoint", "batches", "expected"), [
    (None, [(0, 0), (2, 5)], [(0, 0), (2, 5)]),
    ([(0, 0), (2, 5)], [], [(0, 0), (2, 5)]),
    # older than the log
    ([(0, 0)], [(0, 0), (2, 5)], [(0, 0), (2, 5)]),
    ([(0, 0), (2, 4)], [(2, 5), (3, 9)], [(0, 0), (2, 4), (3, 9)]),
    # a leader that has written nothing yet begins at the end, offset 20; beyond it none does
    ([(0, 0), (7, 20)], [(0, 0)], [(0, 0), (7, 20)]),
    ([(0, 0), (7, 21)], [(0, 0)], [(0, 0)]),
    # epochs and offsets ascend; leaders of two epochs may begin at one offset
    ([(3, 0), (2, 5), (4, 6)], [], [(3, 0), (4, 6)]),
    ([(3, 5), (4, 5)], [], [(3, 5), (4, 5)]),
    ([(3, 5), (4, 4)], [], [(3, 5)]),
    ([(3, 5), (3, 6)], [], [(3, 5)]),
    ([], [(0, 3)], [(0, 3)]),
])  # fmt: skip
def test_a_brokers_leader_epochs(checkpoint, batches, expected):
    text = "" if checkpoint is None else "".join(f"{epoch} {start}\n" for epoch, start in checkpoint)
    parsed = None if checkpoint is None else parse_leader_epoch_checkpoint(f"0\n{len(checkpoint)}\n{text}".encode())
    assert merged_epochs(entries(*batches), parsed, 20) == entries(*expected)


@pytest.mark.parametrize(("first", "checkpoint", "start"), [
    (0, None, 0), (0, 4, 4), (6, None, 6), (6, 4, 6), (6, 8, 8),
])  # fmt: skip
def test_where_a_copy_begins(tmp_path, first, checkpoint, start):
    """At its first segment, or where records were deleted up to: the later of the two."""
    log = Copy([sent(number, at=first + 3 * number) for number in range(4)])
    paths = [log.write(tmp_path / name) for name in ("b1", "b2")]
    if checkpoint is not None:
        (paths[0] / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {checkpoint}\n")
    summaries = {entry.replica: entry for entry in run(*paths).scan.partitions}
    assert summaries["b1"].log_start_offset == start
    assert (summaries["b2"].log_start_offset, summaries["b2"].log_end_offset) == (first, first + 12)
    assert (summaries["b2"].batches, summaries["b2"].records, summaries["b2"].segments) == (4, 12, 1)


# what a reader keeps of a copy: gaps, order, leader epochs


@pytest.mark.parametrize(
    ("feeds", "kept", "compacted"),
    [
        ([[(0, 1), (4, 5)], [(8, 9), (12, 13)]], [(2, 3), (6, 7), (10, 11)], False),
        ([[(0, 1), (4, 5)], [(8, 9), (12, 13), (16, 17)]], [(2, 3), (6, 7), (10, 11)], True),
        ([[(0, 1), (4, 5), (8, 9), (12, 13), (16, 17)], [(18, 19), (22, 23)]], [(2, 3), (6, 7), (10, 11)], True),
        ([[(0, 1)], [(2, 3)]], [], False),
    ],
)
def test_a_log_full_of_gaps_is_a_compacted_one(monkeypatch, feeds, kept, compacted):
    monkeypatch.setattr(gaps, "_MOST_GAPS", 3)
    found = gaps.ReplicaGaps(())
    for rows in feeds:
        found.feed(0, columns([batch(base, last) for base, last in rows]))
    assert ([(gap.first, gap.last) for gap in found.gaps], found.compacted) == (kept, compacted)


def read_copy(tmp_path, segments: dict[int, list[Batch]]) -> tuple[ReplicaReader, list[dict[str, int]]]:
    """A reader of these segments, by base offset, that has read all, and the rows it gave."""
    partition = tmp_path / "b1" / "orders-0"
    partition.mkdir(parents=True)
    for base, batches in segments.items():
        (partition / f"{base:020d}.log").write_bytes(b"".join(batch.encode() for batch in batches))
    (found,) = discover([str(tmp_path / "b1")]).partitions
    reader = ReplicaReader(found, open_segment, verify=True, log_start_offset=None)
    rows: list[dict[str, int]] = []
    while not reader.ended:
        reader.fill()
        taken = reader.take(2**62)
        rows += [{name: int(column[at]) for name, column in taken.items()} for at in range(len(taken["crc"]))]
    return reader, rows


def reader_of(tmp_path, segments: dict[int, list[Batch]]) -> ReplicaReader:
    return read_copy(tmp_path, segments)[0]


def at(base: int, count: int = 2, epoch: int = 0) -> Batch:
    return Batch(count=count, base_offset=base, leader_epoch=epoch)


@pytest.mark.parametrize(
    ("segments", "in_order"),
    [
        ({0: [at(0), at(2)], 4: [at(4), at(6)]}, True),
        ({0: [at(0)], 4: [at(6)]}, True),
        ({0: [at(0), at(2, 1)], 4: [at(4)]}, True),
        # into the segment behind it; below its own
        ({0: [at(0), at(2, 3)], 4: [at(5)]}, False),
        ({0: [at(0)], 4: [at(3, 1), at(4)]}, False),
        # what came before again; one offset of it
        ({0: [at(0), at(0), at(2)]}, False),
        ({0: [at(0), at(1), at(3)]}, False),
        ({0: [at(0), at(2)], 3: [at(3), at(5)]}, False),
    ],
)
def test_batches_that_do_not_ascend_are_damage(tmp_path, segments, in_order):
    assert reader_of(tmp_path, segments).damaged is not in_order


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=8), st.sets(st.integers(1, 7)))
def test_whatever_segments_hold_a_copys_batches_ascend(made, cuts):
    """No offset is read twice, and none before a lower one."""
    starts = [0, *sorted(cut for cut in cuts if cut < len(made))]
    parts = [made[start:stop] for start, stop in zip(starts, [*starts[1:], len(made)], strict=True)]
    segments: dict[int, list[Batch]] = {}
    for part in parts:
        segments.setdefault(part[0][0], []).extend(at(base, count) for base, count in part)
    with tempfile.TemporaryDirectory() as place:
        reader, rows = read_copy(Path(place), segments)
    assert all(one["last_offset"] < other["base_offset"] for one, other in pairwise(rows))
    ascends = [(base, base + count) for base, count in made]
    in_place = all(one[1] <= other[0] for one, other in pairwise(ascends))
    assert not (in_place and reader.damaged)


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ([0, 0, 1, 1, 3], [(0, 0), (1, 4), (3, 8)]),
        # a lower one after a higher is damage
        ([2, 1, 3, 2, 3, 4], [(2, 0), (3, 4), (4, 10)]),
        ([-1, -1, 0], [(0, 4)]),
        ([0, 1, 2, 3], [(0, 0), (1, 2), (2, 4)]),
    ],
)
def test_leader_epochs_of_a_copy_are_those_that_rise(tmp_path, monkeypatch, epochs, expected):
    monkeypatch.setattr(replica_reader, "MAX_EPOCHS", 3)
    for rolled in (False, True):
        batches = [at(2 * number, epoch=epoch) for number, epoch in enumerate(epochs)]
        segments = {0: batches[:2], 4: batches[2:]} if rolled else {0: batches}
        found = reader_of(tmp_path / str(rolled), segments).leader_epochs
        assert [(entry.epoch, entry.start_offset) for entry in found] == expected


def readers_of(tmp_path, **copies: Copy) -> dict[str, ReplicaReader]:
    readers = {}
    for name, copy in copies.items():
        (found,) = discover([str(copy.write(tmp_path / name))]).partitions
        readers[name] = ReplicaReader(found, open_segment, verify=True, log_start_offset=None)
    return readers


@pytest.mark.parametrize("rolls", [(), (2, 4, 6), (4,)])
def test_the_last_batch_shown_is_below_where_those_of_now_part_and_not_where_an_earlier_copy_did(tmp_path, rolls):
    """Batches of two records: `before` has its own from 2 on, `other` from 6 on."""
    now = history((0, 3)).append(2, 1, b"now's")
    other = history((0, 3)).append(2, 2, b"other's")
    before = history((0, 1)).append(2, 3, b"before's")
    now.rolls = other.rolls = rolls
    parted, last = read_side_by_side(
        readers_of(tmp_path, now=now, other=other, before=before), {"now", "other"}, compacted=False
    )
    assert {pair: at.offset for pair, at in parted.items()} == {
        ("now", "other"): 6,
        ("now", "before"): 2,
        ("other", "before"): 2,
    }
    assert {name: (batch.offset, batch.last_offset) for name, batch in last.items()} == {
        "now": (4, 5),
        "other": (4, 5),
        "before": (2, 3),
    }
    assert {name: batch.leader_epoch for name, batch in parted["now", "other"].batches.items()} == {
        "now": 1,
        "other": 2,
    }
    assert {name: batch.leader_epoch for name, batch in parted["now", "before"].batches.items()} == {
        "now": 0,
        "before": 3,
    }
