"""Topics compared record by record: what the ledger says of logs whose truth is known."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kaudit.audits.records import reading
from kaudit.audits.records.spill import Spill
from kaudit.diff.records import assembly, bucket
from kaudit.engines import record_ledger as engine
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.ledger import MappedRange, TopicLedger, mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.scanning.options import ScanOptions
from tests.formats import encoders

Rec = tuple[bytes | None, bytes | None, int]
"""Key, value, time."""


def rec(number: int, key: bytes | None = b"k") -> Rec:
    return key, b"v%d" % number, number


def log(root: Path, name: str, batches: list[bytes], base: int = 0) -> None:
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{base:020d}.log").write_bytes(b"".join(batches))


def batches_of(records: Sequence[Rec], *, base: int = 0, each: int = 3, codec: int = 0, **header: Any) -> list[bytes]:
    found = []
    for first in range(0, len(records), each):
        rows = records[first : first + each]
        encoded = [encoders.record(at, time, key, value) for at, (key, value, time) in enumerate(rows)]
        found.append(encoders.batch(encoded, base + first, codec, **header))
    return found


@contextmanager
def compared(root: Path, *, identity: str | None = None, topics: tuple[str, ...] = (), **request: Any) -> Iterator[Any]:
    sides = Replica("source", str(root / "source")), Replica("target", str(root / "target"))
    if identity is not None:
        request |= {"reader": IdentityReader(parse_identity(identity)), "given": True}
    (root / "held").mkdir(exist_ok=True)
    asked = engine.LedgerRequest(temporary_directory=str(root / "held"), **request)
    options = ScanOptions(paths=[side.path for side in sides], topics=topics, jobs=1)
    with engine.record_ledger(options, sides, asked, SilentProgress()) as result:
        yield result
    assert not list((root / "held").iterdir())


def ledger_of(root: Path, **request: Any) -> TopicLedger:
    with compared(root, **request) as result:
        (found,) = result.ledgers
        one: TopicLedger = found
        return one


def spans(ranges: Any) -> list[tuple[int, int, int]]:
    return [(each.first, each.last, each.records) for each in ranges]


def test_a_record_is_missing_and_thirty_are_there_twice(tmp_path):
    sent = [rec(number) for number in range(200)]
    log(tmp_path / "source", "orders-0", batches_of(sent, codec=encoders.LZ4))
    copied = sent[:77] + sent[78:120] + sent[90:120] + sent[120:]
    log(tmp_path / "target", "primary.orders-0", batches_of(copied, each=7, codec=encoders.ZSTD))
    with compared(tmp_path) as result:
        (found,) = result.ledgers
        mapped = list(mapped_ranges(found.map_file))
    assert (found.source, found.target, found.matched, found.pending) == ("orders", "primary.orders", 199, 0)
    assert spans(found.missing_ranges) == [(77, 77, 1)]
    (again,) = found.repeated_ranges
    assert (again.first, again.last, again.source_first_offset, again.source_last_offset) == (119, 148, 90, 119)
    assert (again.earlier_first_offset, again.earlier_last_offset) == (89, 118)
    assert mapped == [
        MappedRange(0, 0, 76, 0, 0, 76, 77),
        MappedRange(0, 78, 119, 0, 77, 118, 42),
        MappedRange(0, 120, 199, 0, 149, 228, 80),
    ]
    assert not found.agrees


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        # what the mirror has not copied yet is no hole
        (range(10), range(8), {"matched": 8, "pending": 2}),
        (range(10), [0, 1, 2, 4, 5, 6, 7], {"matched": 7, "missing": 1, "pending": 2}),
        # what was written after the source was copied
        (range(8), range(10), {"matched": 8, "ahead": 2}),
        (range(8), [0, 1, 2, 90, 3, 4, 5, 6, 7], {"matched": 8, "only_in_target": 1}),
        (range(4), [], {"missing": 4}),
        ([], range(4), {"only_in_target": 4}),
        ([1, 1, 1, 2], [1, 1, 2], {"matched": 3, "missing": 1}),
        ([5, 6], [6, 5], {"matched": 2, "out_of_order": 1}),
        ([0, 1, 2, 3, 4], [0, 2, 3, 4, 1], {"matched": 5, "out_of_order": 1}),
        ([0, 1, 2, 3, 4], [0, 4, 1, 2, 3], {"matched": 5, "out_of_order": 1}),
        (range(3), [0, 1, 2, 0, 1, 2], {"matched": 3, "repeated": 3}),
    ],
    ids=str,
)
def test_kinds_of_differences(tmp_path, source, target, expected):
    log(tmp_path / "source", "t-0", batches_of([rec(number) for number in source]))
    log(tmp_path / "target", "t-0", batches_of([rec(number) for number in target], each=2))
    found = ledger_of(tmp_path)
    names = ("matched", "missing", "repeated", "only_in_target", "out_of_order", "pending", "ahead", "expired", "older")
    assert {name: getattr(found, name) for name in names if getattr(found, name)} == expected


@pytest.mark.parametrize(
    ("bases", "source", "target", "expected"),
    [
        ((0, 100), range(10), range(4, 10), {"matched": 6, "expired": 4}),
        ((100, 0), range(4, 10), range(10), {"matched": 6, "older": 4}),
        # the earlier of two equal records in the target is the one whose source was removed
        ((100, 0), [7, 8, 1], [6, 1, 7, 8, 1], {"matched": 3, "older": 2}),
        ((0, 0), range(10), range(4, 10), {"matched": 6, "missing": 4}),
    ],
    ids=str,
)
def test_what_retention_removed_is_no_difference(tmp_path, bases, source, target, expected):
    for side, base, numbers in zip(("source", "target"), bases, (source, target), strict=True):
        log(tmp_path / side, "t-0", batches_of([rec(number) for number in numbers], base=base), base)
    found = ledger_of(tmp_path)
    names = ("matched", "missing", "repeated", "only_in_target", "expired", "older")
    assert {name: getattr(found, name) for name in names if getattr(found, name)} == expected


def headed(records: Sequence[Rec], header: bytes | None, **more: Any) -> list[bytes]:
    """Batches of one record each, with a header if one is given."""
    headers = [] if header is None else [(b"mirrored", header)]
    return [
        encoders.batch([encoders.record(0, time, key, value, headers)], at, **more)
        for at, (key, value, time) in enumerate(records)
    ]


def test_copies_with_added_headers_are_the_same_but_for_these(tmp_path):
    sent = [rec(number) for number in range(9)]
    log(tmp_path / "source", "t-0", headed(sent, None))
    log(tmp_path / "target", "t-0", headed(sent[:4] + sent[5:] + sent[6:8], b"a"))
    found = ledger_of(tmp_path)
    assert (found.identity, found.matched, found.but_for_headers) == ("key,value,timestamp", 8, 8)
    assert (spans(found.missing_ranges), spans(found.repeated_ranges)) == ([(4, 4, 1)], [(8, 9, 2)])
    assert ledger_of(tmp_path, identity="key,value,headers,timestamp").matched == 0


def test_records_of_each_side_that_others_lack_are_compared_with_their_headers(tmp_path):
    log(tmp_path / "source", "t-0", headed([rec(number) for number in (0, 1, 2, 3)], b"a"))
    log(tmp_path / "target", "t-0", headed([rec(number) for number in (0, 9, 2, 3)], b"a"))
    found = ledger_of(tmp_path)
    assert (found.identity, found.but_for_headers) == ("key,value,headers,timestamp", 0)
    assert (found.matched, found.missing, found.only_in_target) == (3, 1, 1)


def test_headers_that_differ_under_the_brokers_times(tmp_path):
    sent = [rec(number) for number in range(3)]
    log(tmp_path / "source", "t-0", headed(sent, None))
    log(tmp_path / "target", "t-0", headed(sent, b"a", flags=8, max_timestamp=5_000))
    found = ledger_of(tmp_path)
    assert (found.identity, found.matched, found.but_for_headers) == ("key,value", 3, 3)


def test_rows_that_one_statement_wrote_are_several_records(tmp_path):
    """debezium/debezium #7531: the rows of a COPY into a table without a key have one place in the database's log."""
    rows = [b'{"op":"c","after":{"a":%d},"source":{"lsn":5}}' % number for number in range(4)]
    for side, own in (("source", rows), ("target", [rows[0], rows[2], rows[3]])):
        log(tmp_path / side, "t-0", batches_of([(None, row, 0) for row in own]))
    found = ledger_of(tmp_path, identity="debezium")
    assert (found.matched, spans(found.missing_ranges)) == (3, [(1, 1, 1)])


@pytest.mark.parametrize(
    ("base", "cause"),
    [
        # a mirror that goes on at the offset it had reached, 4, in the topic that was created again
        (0, "created again"),
        # a mirror whose offset was gone when it went on, and that began with the newest records
        (100, "paused longer than the source's retention"),
    ],
)
def test_why_a_mirror_left_out_the_first_records(tmp_path, base, cause):
    before = [rec(number) for number in range(4)]
    now = [rec(number) for number in range(10, 20)]
    log(tmp_path / "source", "orders-0", batches_of(now, base=base), base)
    log(tmp_path / "target", "orders-0", batches_of(before + now[4:]))
    with compared(tmp_path) as result:
        (missing,) = (each for each in result.scan.findings if each.code == "KA705")
        others = [each for each in result.scan.findings if each.code == "KA708"]
    assert (missing.offset, missing.last_offset) == (base, base + 3)
    assert cause in missing.explanations[0].cause
    assert f"the source begins at offset {base}" in missing.explanations[0].speaks_for[0]
    assert ["created again" in each.explanations[0].cause for each in others] == ([True] if base == 0 else [])


def test_a_mirror_that_lost_its_first_records_was_not_paused(tmp_path):
    sent = [rec(number) for number in range(10)]
    log(tmp_path / "source", "orders-0", batches_of(sent))
    log(tmp_path / "target", "orders-0", batches_of(sent[4:]))
    with compared(tmp_path) as result:
        (missing,) = (each for each in result.scan.findings if each.code == "KA705")
    assert not any("created again" in each.cause or "paused" in each.cause for each in missing.explanations)
    first = missing.explanations[0]
    assert "it had a position from before" in first.cause
    assert first.speaks_for == ("the first record of the copy of partition 0 is the source's at offset 4",)


@pytest.mark.parametrize(
    ("source_begins", "target_begins", "copied", "more"),
    [
        (60, 0, range(40), 20),  # the mirror was paused at 40
        (60, 0, range(60), None),  # it had all
        (60, 10, range(10, 40), None),  # the target has removed records too: nobody can say
        (60, 0, (), None),  # the mirror was made later
        (0, 0, (), None),
    ],
    ids=str,
)
def test_what_a_mirror_may_never_have_read_is_not_called_complete(tmp_path, source_begins, target_begins, copied, more):
    now = [rec(number) for number in range(60, 100)]
    log(tmp_path / "source", "orders-0", batches_of(now, base=source_begins), source_begins)
    log(
        tmp_path / "target",
        "orders-0",
        batches_of([*(rec(number) for number in copied), *now], base=target_begins),
        target_begins,
    )
    with compared(tmp_path) as result:
        assert result.scan.findings == []
        named = [each.reason for each in result.scan.not_audited if each.path == "orders"]
    assert [f"up to {more} more may have been gone" in reason for reason in named] == ([] if more is None else [True])


def test_order_counts_within_a_key_alone(tmp_path):
    sent = [(b"a", b"1", 0), (b"b", b"2", 0), (b"a", b"3", 0), (None, b"4", 0), (None, b"5", 0)]
    log(tmp_path / "source", "t-0", batches_of(sent))
    log(tmp_path / "target", "t-0", batches_of([sent[1], sent[2], sent[0], sent[4], sent[3]]))
    found = ledger_of(tmp_path)
    (moved,) = found.moved
    assert (found.out_of_order, moved.source_offset, moved.target_offset) == (1, 2, 1)
    assert (moved.preceding_source_offset, moved.preceding_target_offset) == (0, 2)


def test_partitions_are_found_by_what_they_hold(tmp_path):
    sent = [rec(number, b"%d" % (number % 5)) for number in range(40)]
    log(tmp_path / "source", "t-0", batches_of(sent))
    for partition in range(2):
        own = [each for each in sent if int(each[0] or b"0") % 2 == partition]
        log(tmp_path / "target", f"t-{partition}", batches_of(own))
    found = ledger_of(tmp_path)
    assert found.agrees
    assert [(each.source_partition, each.target_partition, each.records) for each in found.partitions] == [
        (0, 0, 24),
        (0, 1, 16),
    ]


@pytest.mark.parametrize("cleaned", ["source", "target"])
def test_what_the_log_cleaner_may_have_removed_is_no_difference(tmp_path, monkeypatch, cleaned):
    monkeypatch.setattr(assembly, "_GROUP_ROWS", 3)
    monkeypatch.setattr(reading, "CUT_RECORDS", 2)
    sent: list[Rec] = [(b"%d" % (number % 3), b"v%d" % number, number) for number in range(12)]
    sent[5] = (b"gone", b"v", 5)
    sent[9:9] = [(b"deleted", b"v", 40), (b"deleted", None, 41)]
    kept = [*sent[:1], *sent[7:9], *sent[11:]]  # of the key 0 also one below, which no cleaner keeps so: it is there
    for side in ("source", "target"):
        log(tmp_path / side, "t-0", batches_of(kept if side == cleaned else sent))
    (tmp_path / cleaned / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    found = ledger_of(tmp_path)
    lost = found.missing if cleaned == "target" else found.only_in_target
    # the value of the key "gone" is in no later record, and that of 5..6 has later ones
    assert (found.matched, found.cleaned, lost) == (len(kept), len(sent) - len(kept) - 1, 1)
    assert (found.pending, found.ahead, found.out_of_order) == (0, 0, 0)


def test_equal_records_of_several_partitions_pair_up_by_number(tmp_path):
    for side, partitions in (("source", (0, 1)), ("target", (1,))):
        for partition in partitions:
            log(tmp_path / side, f"t-{partition}", batches_of([rec(1), rec(2)]))
    found = ledger_of(tmp_path)
    assert [(each.source_partition, each.target_partition) for each in found.partitions] == [(1, 1)]
    assert [(each.partition, *spans([each])[0]) for each in found.missing_ranges] == [(0, 0, 1, 2)]


def test_under_the_brokers_time_timestamps_are_left_out_unless_asked_for(tmp_path):
    sent = [rec(number) for number in range(6)]
    log(tmp_path / "source", "t-0", batches_of(sent))
    log(tmp_path / "target", "t-0", batches_of(sent, flags=encoders.LOG_APPEND_TIME, max_timestamp=99))
    found = ledger_of(tmp_path)
    assert (found.agrees, found.identity) == (True, "key,value,headers")
    asked = ledger_of(tmp_path, identity="key,value,headers,timestamp")
    assert (asked.matched, asked.missing, asked.target_counts.appended_times) == (0, 6, 6)


def _transactions() -> list[bytes]:
    ids = {"producer_id": 7, "producer_epoch": 0}
    rows = [
        batches_of([rec(0), rec(1)], base=0, flags=encoders.TRANSACTIONAL, base_sequence=0, **ids),
        [encoders.marker(1, 0, base_offset=2, **ids)],
        batches_of([rec(2)], base=3, flags=encoders.TRANSACTIONAL, base_sequence=2, **ids),
        batches_of([rec(3)], base=4),
        [encoders.marker(0, 0, base_offset=5, **ids)],
        batches_of([rec(4)], base=6, flags=encoders.TRANSACTIONAL, base_sequence=3, **ids),
        batches_of([rec(5)], base=7),
    ]
    return [batch for part in rows for batch in part]


@pytest.mark.parametrize(("read_committed", "records", "missing"), [(False, 6, 3), (True, 3, 0)], ids=str)
def test_only_what_consumers_see_counts(tmp_path, read_committed, records, missing):
    # record 2 was aborted; from 4 on a transaction is open
    log(tmp_path / "source", "t-0", _transactions())
    log(tmp_path / "target", "t-0", batches_of([rec(0), rec(1), rec(3)]))
    found = ledger_of(tmp_path, read_committed=read_committed)
    assert found.source_counts.records == records
    assert found.missing + found.pending == missing


def test_topics_are_named_by_expressions(tmp_path):
    log(tmp_path / "source", "orders-0", batches_of([rec(1)]))
    log(tmp_path / "target", "copy-of-orders-0", batches_of([rec(1)]))
    log(tmp_path / "target", "other.topic-0", batches_of([rec(1)]))
    with pytest.raises(NothingToAuditError, match=r"source has orders.*target has copy-of-orders, other.topic"):
        ledger_of(tmp_path)
    assert ledger_of(tmp_path, maps=[r"(.*)=copy-of-\1"]).agrees
    with pytest.raises(UsageError, match="--map"):
        ledger_of(tmp_path, maps=["orders"])


def test_several_copies_are_not_guessed_between(tmp_path):
    for topic in ("orders", "solo"):
        log(tmp_path / "source", f"{topic}-0", batches_of([rec(1)]))
    for topic in ("a.orders", "b.orders", "solo"):
        log(tmp_path / "target", f"{topic}-0", batches_of([rec(1)]))
    with compared(tmp_path) as result:
        assert [each.source for each in result.ledgers] == ["solo"]
        (note,) = result.scan.not_audited
    with compared(tmp_path, topics=("b.orders", "solo"), maps=["orders=b.orders", "(s)olo=x"]) as result:
        assert [(each.target, each.agrees) for each in result.ledgers] == [("b.orders", True)]
    assert note.path == "orders"
    assert "a.orders, b.orders" in note.reason


def test_topics_that_are_asked_for(tmp_path):
    for topic in ("a", "b", "c"):
        for side in ("source", "target"):
            log(tmp_path / side, f"{topic}-0", batches_of([rec(1), rec(2)]))
    with compared(tmp_path, topics=("c", "b")) as result:
        assert [(each.source, each.matched) for each in result.ledgers] == [("b", 2), ("c", 2)]


def test_nothing_is_written_into_the_logs(tmp_path):
    for side in ("source", "target"):
        log(tmp_path / side, "t-0", batches_of([rec(1)]))
    request = engine.LedgerRequest(temporary_directory=str(tmp_path / "source" / "t-0"))
    sides = Replica("source", str(tmp_path / "source")), Replica("target", str(tmp_path / "target"))
    with (
        pytest.raises(UsageError, match="--temporary-directory"),
        engine.record_ledger(ScanOptions(paths=[]), sides, request, SilentProgress()),
    ):
        pass


def test_corrupt_batches_and_parts_that_are_missing_are_counted(tmp_path):
    good = batches_of([rec(number) for number in range(9)])
    broken = bytearray(encoders.batch([encoders.record(0, 0, b"k", b"v")], 9, codec=1))
    broken[-8:] = bytes(8)
    sealed = encoders.batch([bytes(broken[61:])], 9, count=1)
    log(tmp_path / "source", "t-0", [*good, sealed])
    log(tmp_path / "target", "t-0", good)
    with compared(tmp_path, identity="header:id") as result:
        (found,) = result.ledgers
        reasons = [each.reason for each in result.scan.not_audited]
        assert result.scan.incomplete
    assert (found.matched, found.source_counts.batches_undecoded, found.source_counts.compared_whole) == (9, 1, 9)
    assert any("1 batch cannot be decoded" in reason for reason in reasons)
    assert any("9 records without a part of header:id" in reason for reason in reasons)


def test_a_million_equal_records_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(bucket, "MOST_ROWS", 64)
    log(tmp_path / "source", "t-0", batches_of([rec(1)] * 90 + [rec(number) for number in range(200, 300)], each=50))
    log(tmp_path / "target", "t-0", batches_of([rec(1)] * 95 + [rec(number) for number in range(200, 299)], each=50))
    found = ledger_of(tmp_path)
    assert (found.matched, found.repeated, found.missing, found.pending) == (189, 5, 0, 1)
    assert found.counted_only == 185


@pytest.mark.parametrize("equal_of_ten", [0, 5, 9, 10])
def test_temporary_files_have_32_bytes_a_record_whatever_equals_what(tmp_path, monkeypatch, equal_of_ten):
    monkeypatch.setattr(bucket, "MOST_ROWS", 200)
    monkeypatch.setattr(engine, "_BUCKET_BYTES", 4000)
    records = [rec(1 if number % 10 < equal_of_ten else 2 + number) for number in range(4000)]
    for side in ("source", "target"):
        log(tmp_path / side, "t-0", batches_of(records, each=50))
    sizes, append = [], Spill.append

    def watched(spill, numbers, rows):
        append(spill, numbers, rows)
        files = (path for path in (tmp_path / "held").rglob("*") if path.is_file() and path.suffix != ".note")
        sizes.append(sum(path.stat().st_size for path in files))

    monkeypatch.setattr(Spill, "append", watched)
    found = ledger_of(tmp_path)
    assert (found.matched, found.counted_only) == (4000, 800 * equal_of_ten)
    # and what is written of one of 32 buckets before its rows are removed, which has not twice its share
    assert 8000 * 32 <= max(sizes) <= (8000 + 2 * 8000 // 32) * 32


def _reference(source: list[Rec], target: list[Rec]) -> dict[str, Any]:
    """The counts by the definition, for unique keys of records: dictionaries and loops alone."""
    first: dict[Rec, int] = {}
    here, there = Counter(source), Counter(target)
    for at, each in enumerate(target):
        first.setdefault(each, at)
    common = [at for at, each in enumerate(source) if each in there]
    own = [at for at, each in enumerate(target) if each in here]
    orders: dict[bytes, list[int]] = {}
    for each in source:
        if each in there and each[0] is not None:
            orders.setdefault(each[0], []).append(first[each])
    lost = [at for at, each in enumerate(source) if each not in there]
    new = [at for at, each in enumerate(target) if each not in here]
    return {
        "matched": len(common),
        "missing": sum(1 for at in lost if not common or at < common[-1]),
        "pending": sum(1 for at in lost if common and at > common[-1]),
        "repeated": sum(count - 1 for each, count in there.items() if each in here),
        "only_in_target": sum(1 for at in new if not own or at < own[-1]),
        "ahead": sum(1 for at in new if own and at > own[-1]),
        "out_of_order": sum(1 for places in orders.values() for one, other in pairwise(places) if other < one),
    }


@pytest.mark.parametrize("seed", range(12))
def test_ledgers_of_random_mirrors_equal_a_reference(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(reading, "CUT_RECORDS", 7)
    monkeypatch.setattr(reading, "_HELD_ROWS", 5)
    monkeypatch.setattr(assembly, "_GROUP_ROWS", 8)
    if seed % 2:
        monkeypatch.setattr(bucket, "MOST_ROWS", 16)
        monkeypatch.setattr(engine, "_BUCKET_BYTES", 400)
    keys = [None, *(b"%d" % number for number in range(4))]
    sent = [rec(number, rng.choice(keys)) for number in range(rng.randint(1, 80))]
    copied = [each for each in sent if rng.random() > 0.1]
    for _ in range(rng.randint(0, 3)):  # restarts send a part again, failures swap neighbours, others write too
        at = rng.randint(0, len(copied))
        copied[at:at] = copied[max(at - rng.randint(0, 9), 0) : at]
        if at + 1 < len(copied) and copied[at] != copied[at + 1]:
            copied[at], copied[at + 1] = copied[at + 1], copied[at]
        copied.insert(rng.randint(0, len(copied)), rec(1000 + at, b"0"))
    copied = copied[: rng.randint(0, 2 * len(copied))]
    codec = rng.choice((0, 1, 2, 3, 4))
    log(tmp_path / "source", "t-0", batches_of(sent, each=rng.randint(1, 9), codec=codec))
    log(tmp_path / "target", "t-0", batches_of(copied, each=rng.randint(1, 9)))
    found = ledger_of(tmp_path)
    expected = _reference(sent, copied)
    assert {name: getattr(found, name) for name in expected} == expected
    listed = [offset for each in found.missing_ranges for offset in range(each.first, each.last + 1)]
    assert len(listed) == found.missing
