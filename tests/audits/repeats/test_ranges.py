"""What repeats what: ranges, their cause, and what equality proves, by logs made for it and by recorded ones."""

import json
from dataclasses import replace

import pytest

from kaudit.engines.progress import SilentProgress
from kaudit.engines.repeated_records import repeated_records
from kaudit.model.duplicates import RepeatedRange
from kaudit.scanning.comparison_options import RecordOptions
from kaudit.scanning.options import ScanOptions
from tests.formats.encoders import batch, record
from tests.logs import BASE_TIMESTAMP, Log, data, marker

T = BASE_TIMESTAMP
TEXTS = [b"a", b"b", b"c", b"d", b"e"]


def ranges_of(path, identity=None, **more):
    with repeated_records(ScanOptions(paths=[str(path)]), SilentProgress(), RecordOptions(identity)) as listing:
        each = listing.found(**{"read_committed": False, **more})
        return [found for _, found in each if isinstance(found, RepeatedRange)]


def facts(found):
    return found.offset, found.original_offset, found.record_count, found.cause.value, found.confidence.value


def log_of(tmp_path, *batches):
    """`batches`: each with its timestamp, or at the log's next one."""
    log = Log()
    for each in batches:
        one, time = each if isinstance(each, tuple) else (each, None)
        log.append(one if time is None else replace(one, timestamp=time), keep_time=time is not None)
    return log.write(tmp_path / "orders-0")


def sent(producer_id, epoch, start, texts, time, apart=5, **more):
    """Batches of one record each, stamped `apart` ms one after the other."""
    return [
        (data(producer_id, epoch, start + number if start >= 0 else -1, payload=text, **more), time + number * apart)
        for number, text in enumerate(texts)
    ]


NEXT = data(99, 0, 0, payload=b"between")
MINUTE = 60_000
CASES = {
    "restart": ([*sent(1, 0, 0, TEXTS, T), *sent(2, 0, 0, TEXTS[2:], T + 700)], [(5, 2, 3, "restart", "likely")]),
    "two-alike": ([*sent(1, 0, 0, TEXTS, T), *sent(2, 0, 0, TEXTS[3:], T + 700)], [(5, 3, 2, "restart", "possible")]),
    "epoch": ([*sent(1, 0, 0, TEXTS, T), *sent(1, 1, 0, TEXTS[2:], T + 10)], [(5, 2, 3, "retry", "certain")]),
    "epoch-stamped": ([*sent(1, 0, 0, TEXTS, T), *sent(1, 1, 0, TEXTS[2:], T + 99)], [(5, 2, 3, "retry", "likely")]),
    "same-sequence": ([*sent(1, 0, 0, TEXTS, T), *sent(1, 0, 4, TEXTS[4:], T + 20)], [(5, 4, 1, "retry", "certain")]),
    "mirror": ([*sent(1, 0, 0, TEXTS, T), *sent(2, 0, 0, TEXTS[1:], T + 5)], [(5, 1, 4, "mirror", "certain")]),
    "replay": ([*sent(1, 0, 0, TEXTS, T, 5 * MINUTE), *sent(2, 0, 0, TEXTS, T + 60 * MINUTE)],
               [(5, 0, 5, "reprocessing", "possible")]),
    "again": ([*sent(1, 0, 0, TEXTS, T), *sent(1, 0, 5, TEXTS, T + MINUTE)], [(5, 0, 5, "reprocessing", "possible")]),
    "typed-twice": ([*sent(-1, -1, -1, TEXTS[:1] * 2, T, MINUTE)], [(1, 0, 1, "unknown", "possible")]),
    "no-ids": ([*sent(-1, -1, -1, TEXTS[:2], T), *sent(-1, -1, -1, TEXTS[:2], T)], [(2, 0, 2, "retry", "certain")]),
    "no-ids-alone": ([*sent(-1, -1, -1, TEXTS[:1], T), NEXT, *sent(-1, -1, -1, TEXTS[:1], T)], [(2, 0, 1, "retry", "likely")]),
    "no-ids-stamped": ([*sent(-1, -1, -1, TEXTS[:3], T), *sent(-1, -1, -1, TEXTS[:3], T + 500)],
                       [(3, 0, 3, "retry", "likely")]),
    "no-ids-late": ([*sent(-1, -1, -1, TEXTS[:3], T), *sent(-1, -1, -1, TEXTS[:3], T + 10 * MINUTE)],
                    [(3, 0, 3, "reprocessing", "possible")]),
    # a heartbeat every three seconds, and a load generator's within a millisecond: equality proves nothing
    "heartbeats": (sent(1, 0, 0, [b"up"] * 6, T, 3000), [(offset, 0, 1, "recurring", "possible") for offset in range(1, 6)]),
    "same-ms": ([(data(1, 0, 0, 5, payload=b"x"), T)], [(offset, 0, 1, "recurring", "possible") for offset in range(1, 5)]),
    "status-twice": ([*sent(1, 0, 0, [b"up", b"down", b"up"], T, MINUTE)], [(2, 0, 1, "unknown", "possible")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_cause_and_what_equality_proves(tmp_path, case):
    batches, expected = CASES[case]
    assert [facts(found) for found in ranges_of(log_of(tmp_path, *batches))] == expected


def test_an_aborted_transaction_is_sent_again_by_right(tmp_path):
    def of(epoch, start, time):
        return sent(1, epoch, start, TEXTS[:2], time, transactional=True)

    path = log_of(tmp_path, *of(0, 0, T), marker(1, 0, commit=False), *of(0, 2, T + 500), marker(1, 0))
    assert [facts(found) for found in ranges_of(path)] == [(3, 0, 2, "retry", "likely")]
    assert ranges_of(path, read_committed=True) == []


def test_records_of_others_may_lie_between_and_two_writers_at_once(tmp_path):
    one, two = sent(1, 0, 0, TEXTS, T), sent(3, 0, 0, [text * 2 for text in TEXTS], T)
    again, others = sent(2, 0, 0, TEXTS, T + 900), sent(4, 0, 0, [text * 2 for text in TEXTS], T + 900)
    mixed = [each for pair in zip(again, others, strict=True) for each in pair]
    found = ranges_of(log_of(tmp_path, *one, *two, *mixed))
    assert [(each.offset, each.last_offset, each.original_offset, each.record_count) for each in found] == [
        (10, 18, 0, 5),
        (11, 19, 5, 5),
    ]


def written(tmp_path, *batches):
    directory = tmp_path / "cdc-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    return directory


def numbered(make, numbers, base, producer_id):
    """A batch with a record of each number; `make` returns key, value and headers of one."""
    records = [record(delta, 0, *make(number)) for delta, number in enumerate(numbers)]
    return batch(records, base, producer_id=producer_id, producer_epoch=0, base_sequence=0, base_timestamp=T + base)


def event(number, **more):
    key, value = (
        json.dumps({"id": number}),
        {"op": "c", "after": {"id": number}, "source": {"lsn": 1000 + number}, **more},
    )
    return key.encode(), json.dumps(value).encode()


@pytest.mark.parametrize("envelope", [False, True])
def test_debezium_repeats_an_event_under_another_time(tmp_path, envelope):
    def at(ts_ms):
        def make(number):
            key, value = event(number, ts_ms=ts_ms)
            return key, b'{"schema": null, "payload": %s}' % value if envelope else value

        return make

    found = ranges_of(written(tmp_path, numbered(at(1), range(10), 0, 1), numbered(at(2), range(6, 12), 10, 2)))
    path = "payload." if envelope else ""
    assert [(*facts(each), each.differs_in, each.recognisable_by) for each in found] == [
        (10, 6, 4, "restart", "certain", f"value:{path}ts_ms", f"{path}source.lsn, key"),
    ]


def test_a_second_snapshot_repeats_the_rows_of_the_first(tmp_path):
    def rows(lsn):
        return lambda number: event(number, op="r", source={"lsn": lsn}, ts_ms=lsn)

    found = ranges_of(written(tmp_path, numbered(rows(7), range(5), 0, 1), numbered(rows(9), range(5), 5, 2)))
    assert [(*facts(each), each.differs_in) for each in found] == [
        (5, 0, 5, "re-snapshot", "certain", "value:source.lsn, value:ts_ms")
    ]


def test_rows_that_one_statement_wrote_have_one_place_and_are_no_repeats(tmp_path):
    """debezium/debezium #7531: the rows of a COPY have one lsn; a table may have no key, and equal rows."""

    def row(number):
        return None, json.dumps({"op": "c", "after": {"a": number % 7}, "source": {"lsn": 5}, "ts_ms": 1}).encode()

    assert ranges_of(written(tmp_path, numbered(row, range(7), 0, 1))) == []
    (tmp_path / "more").mkdir()
    found = ranges_of(written(tmp_path / "more", numbered(row, range(8), 0, 1)))
    assert [facts(each) for each in found] == [(7, 0, 1, "unknown", "possible")]


@pytest.mark.parametrize("depth", [50, 900, 5000])
def test_values_that_are_nested_deeply(tmp_path, depth):
    def made(mark):
        deep = b'{"a":' * depth + b"%d" % mark + b"}" * depth
        return lambda number: (b"%d" % number, b'{"op":"c","source":{"lsn":%d},"ts_ms":%s}' % (number + 1, deep))

    found = ranges_of(written(tmp_path, numbered(made(1), range(4), 0, 1), numbered(made(2), range(4), 4, 2)), "key")
    assert [each.record_count for each in found] == [4]
    assert str(found[0].differs_in).startswith("value")


def test_a_mirror_that_began_again_without_producer_ids(tmp_path):
    """Connect's producers have none by default before 3.x; the timestamps span more than a client may retry."""
    first = sent(-1, -1, -1, TEXTS, T, MINUTE)
    assert [facts(found) for found in ranges_of(log_of(tmp_path, *first, *first))] == [(5, 0, 5, "mirror", "certain")]


def test_a_real_mirror_that_was_killed_and_began_again():
    """tests/data/mirrors/killed: MirrorMaker 2 wrote the source's first 73, 87 and 160 records again, without producer ids."""
    found = ranges_of("tests/data/mirrors/killed.tar.xz!/backup")
    there = [each for each in found if each.record_count > 50]
    assert [facts(each)[:3] for each in there] == [(147, 74, 73), (173, 86, 87), (320, 160, 160)]
    assert {(each.cause.value, each.confidence.value) for each in there} == {("mirror", "certain")}


def outbox(number, trace=b"1"):
    return b"order", b"paid %d" % number, ((b"id", b"evt-%d" % number), (b"traceparent", trace))


def test_an_outbox_is_recognised_by_its_ids(tmp_path):
    path = written(
        tmp_path,
        numbered(outbox, range(9), 0, 1),
        numbered(lambda number: outbox(number, b"2"), range(7, 10), 9, 2),
    )
    assert [(*facts(each), each.differs_in, each.recognisable_by) for each in ranges_of(path)] == [
        (9, 7, 2, "restart", "certain", "header:traceparent", "header id")
    ]
    assert ranges_of(path, "key,value,headers") == []


def test_ids_that_are_no_ids_of_events_prove_nothing(tmp_path):
    """A header called id that says to whom the record belongs recurs with other contents."""
    path = written(
        tmp_path, numbered(lambda number: (b"k", b"%d" % number, ((b"id", b"%d" % (number % 3)),)), range(20), 0, 1)
    )
    assert ranges_of(path) == []


def test_a_cloud_event(tmp_path):
    def made(time):
        return lambda number: (
            None,
            b"%d" % time,
            ((b"ce_id", b"%d" % number), (b"ce_source", b"/shop"), (b"ce_time", b"%d" % time)),
        )

    path = written(tmp_path, numbered(made(1), range(4), 0, 1), numbered(made(2), range(3, 6), 4, 2))
    assert [(*facts(each), each.differs_in, each.recognisable_by) for each in ranges_of(path)] == [
        (4, 3, 1, "restart", "certain", "header:ce_time, value", "id and source of the CloudEvent")
    ]


def test_the_identity_asked_for(tmp_path):
    path = written(tmp_path, numbered(lambda number: (b"%d" % (number % 4), b"%d" % number), range(6), 0, 1))
    assert ranges_of(path) == []
    assert [(*facts(each), each.differs_in) for each in ranges_of(path, "key")] == [
        (4, 0, 2, "unknown", "certain", "value")
    ]
