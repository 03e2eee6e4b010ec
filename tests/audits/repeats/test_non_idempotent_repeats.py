"""Copies without producer ids, and sessions that begin with another's records: recorded ones, and ones made by hand."""

import json
import re
import struct
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.repeats.non_idempotent_repeats import RepeatDetector
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Confidence, Severity
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_rows import ChunkRange
from kaudit.reading.chunk_summary import compress
from kaudit.reading.equal_batches import DISTANCE, MAX_COPIES, NEAR
from kaudit.reading.segment import ByteRange
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.bytes import LocalFile
from tests.logs import Batch, Log, data

ONCE = {"idem-drop", "idem-dup", "idem-mix", "idem-reord", "rdk-idem-mix", "franz-idem-mix", "kjs-idem-mix"}
DEPTHS = pytest.mark.parametrize("depth", [Depth.CRC, Depth.RECORDS])
REORDERED = {"nonidem-dup", "nonidem1-dup", "nonidem-mix", "nonidem-drop", "nonidem-reord"}


def run(path: Path, depth: Depth = Depth.CRC, **options: object):
    return scan(ScanOptions([str(path)], jobs=1, depth=depth, **options), SilentProgress()).findings  # type: ignore[arg-type]


def seventh(path: Path, depth: Depth = Depth.CRC):
    return [found for found in run(path, depth) if found.code.startswith("KA7")]


def covered(findings) -> set[int]:
    return {offset for found in findings for offset in range(found.offset, found.last_offset + 1)}


def test_every_copy_of_a_client_that_sends_the_same_batch_again_is_found_and_nothing_else(evidence):
    capture = evidence.capture("retry-dup")
    truth = json.loads((capture / "truth.json").read_text())
    found = defaultdict(list)
    for finding in seventh(capture / "logdirs" / "b1"):
        found[finding.code, finding.topic].append(finding)
    topics = {topic for topic in truth if not topic.startswith("_")}
    for topic in topics:
        again = {offset for offsets in truth[topic]["duplicated_running_numbers"].values() for offset in offsets[1:]}
        assert covered(found["KA702", topic]) == again, topic
        duplicated = sum(finding.impact.records_duplicated for finding in found["KA702", topic])
        assert duplicated == len(again) == truth[topic]["duplicate_records"], topic
        assert not (topic in ONCE and again)
    assert {topic for code, topic in found if code == "KA703"} == REORDERED
    assert {finding.severity for every in found.values() for finding in every} == {Severity.WARNING}
    assert {finding.confidence for finding in found["KA702", "nonidem-dup"]} == {Confidence.LIKELY}


def test_what_is_said_to_be_out_of_order_is(evidence):
    capture = evidence.capture("retry-dup")
    for topic in sorted(REORDERED):
        numbers = {}
        for dump in (capture / "dumps").glob(f"logdirs__b1__{topic}-0__*.deep.txt"):
            for match in re.finditer(r"\| offset: (\d+) .*payload: v\|[^|]*\|(\d+)\|", dump.read_text()):
                numbers[int(match[1])] = int(match[2])
        for finding in seventh(capture / "logdirs" / "b1" / f"{topic}-0"):
            if finding.code == "KA703":
                before = max(number for offset, number in numbers.items() if offset < finding.offset)
                assert min(numbers[offset] for offset in covered([finding])) < before


@DEPTHS
@pytest.mark.parametrize("logs", ["logdirs", "logdirs-live"])
def test_a_restarted_application_that_sends_again_is_found_though_it_batches_anew(evidence, logs, depth):
    capture = evidence.capture("cross-session")
    truth = json.loads((capture / "truth.json").read_text())
    found = defaultdict(list)
    for finding in seventh(capture / logs / "b1", depth):
        assert finding.code == "KA701"
        found[f"{finding.topic}-{finding.partition}"].append(finding)
    for name in ("resend-0", "resend-1", "resend-samets-0"):
        copies = {}
        for places in truth[name]["duplicated"].values():
            (first, *_), (second, producer_id, sequence) = places
            copies[second] = (first, producer_id, sequence)
        assert covered(found[name]) == set(copies)
        for finding in found[name]:
            first, producer_id, sequence = copies[finding.offset]
            assert (finding.evidence["copied_first_offset"], finding.producer_id, sequence) == (first, producer_id, 0)
            assert finding.confidence is (Confidence.LIKELY if "samets" in name else Confidence.POSSIBLE)
        assert len(found[name]) == 6
    assert set(found) == {"resend-0", "resend-1", "resend-samets-0"}


def test_the_report_says_what_was_not_compared(evidence):
    found = scan(ScanOptions([str(evidence.capture("cross-session") / "logdirs" / "b1")], jobs=1), SilentProgress())
    assert any("--depth records" in note.reason for note in found.not_audited)


HEALTHY = (
    ("clients-mix", "logdirs"),
    ("legacy-formats", "logdirs"),
    ("txn-mix-2.8.2", "logdirs"),
    ("retention-compaction-2.8.2", "logdirs"),
    ("unknown-pid-2.0.1", "logdirs"),
    ("zk-pid-blocks", "logdirs"),
    ("failover-acks1", "B2-unclean-leader-old-one-down/b2"),
    ("failover-acks1", "B3-recovered/b1"),
    ("torn-writes", "kill9-before-restart"),
)


@DEPTHS
@pytest.mark.parametrize(("capture", "directory"), HEALTHY)
def test_healthy_captures_are_silent(evidence, capture, directory, depth):
    assert seventh(evidence.capture(capture) / directory, depth) == []


@DEPTHS
@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0"])
def test_oracle_logs_are_silent(evidence, version, depth):
    assert seventh(evidence.oracle(version, "logdir"), depth) == []


def write(root: Path, log: Log, name: str = "orders-0") -> Path:
    return log.write(root / name)


def plain(log: Log, number: int, count: int = 2, **more: object) -> Batch:
    return log.append(Batch(count=count, payload=b"order %d" % number, **more))  # type: ignore[arg-type]


def varied(log: Log, *numbers: int) -> list[Batch]:
    return [plain(log, number, 1) for number in numbers]


def test_a_copy_with_others_between_is_found(tmp_path):
    log = Log()
    first, *_ = varied(log, 0, 1, 2)
    log.append(first, keep_time=True)
    plain(log, 4, 1)
    (found,) = seventh(write(tmp_path, log))
    assert (found.code, found.offset, found.last_offset) == ("KA702", 3, 3)
    assert found.evidence["copies"] == [[0, 3]]
    assert found.producer_id is None


def test_copies_in_the_opposite_order_are_a_reordered_retry(tmp_path):
    log = Log()
    one, two, _ = varied(log, 0, 1, 2)
    log.append(two, keep_time=True)
    log.append(one, keep_time=True)
    plain(log, 3, 1)
    found = seventh(write(tmp_path, log))
    assert [(finding.code, finding.offset, finding.last_offset) for finding in found] == [
        ("KA702", 3, 4),
        ("KA703", 4, 4),
    ]


def test_where_times_go_back_and_forth_anyway_no_order_is_claimed(tmp_path):
    log = Log()
    for number in range(4):
        plain(log, number, 1)
        log.clock -= 3 if number == 1 else 0
    one, two = varied(log, 10, 11)
    log.append(two, keep_time=True)
    log.append(one, keep_time=True)
    assert {finding.code for finding in seventh(write(tmp_path, log))} == {"KA702"}


def test_a_load_generator_that_sends_one_record_over_and_over_is_silent(tmp_path):
    several, single = Log(), Log()
    for number in range(40):
        for log, count in ((several, 5), (single, 1)):
            batch = Batch(count=count, payload=b"ping", timestamp=1_700_000_000_000 + number // 4)
            log.append(batch, keep_time=True)
    assert seventh(write(tmp_path, several, "several-0")) == []
    assert seventh(write(tmp_path, single, "single-0")) == []


def single_records(*sent: tuple[bytes, int]) -> Log:
    """A batch of one record for each (value, ms)."""
    log = Log()
    for value, moment in sent:
        log.append(Batch(payload=value, timestamp=1_700_000_000_000 + moment), keep_time=True)
    return log


def test_what_an_application_sends_again_after_its_start_may_be_retried_both_times(tmp_path):
    before = [(b"order %d" % number, number) for number in range(3)]
    after = [(value, moment + 5000) for value, moment in before[1:]]
    sent = [before[0], *(entry for entry in (*before[1:], *after) for _ in range(2))]
    found = seventh(write(tmp_path, single_records(*sent)))
    assert [(finding.code, finding.offset) for finding in found] == [
        ("KA702", 2),
        ("KA702", 4),
        ("KA702", 6),
        ("KA702", 8),
    ]


@pytest.mark.parametrize(
    "moments",
    [
        (0, 0, 1, 2, 3, 3),  # the record is there at other times too
        (0, 0, 5, 5, 9, 9),
        (0, 0, 0, 0, 0, 5, 5),  # more often than a client retries
    ],
)
def test_one_record_at_many_times_or_many_times_at_once_is_no_retry(tmp_path, moments):
    log = single_records(*((b"ping", moment) for moment in moments))
    assert seventh(write(tmp_path, log)) == []


def test_a_copy_that_the_broker_stamped_with_its_own_time_is_found(tmp_path):
    log = Log()
    first, *_ = varied(log, 0, 1, 2)
    data, length = bytearray(replace(first, attributes=0x08).encode()), len(first.encode())
    again = bytearray(replace(first, attributes=0x08, base_offset=1).encode())
    struct.pack_into(">q", again, 35, first.timestamp + 40_000)  # max timestamp; the base stays the client's
    struct.pack_into(">I", again, 17, crc32c(bytes(again[21:length])))
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(data + again)
    (found,) = seventh(directory)
    assert (found.code, found.offset, found.confidence) == ("KA702", 1, Confidence.LIKELY)


SOME = [b"value %d" % number for number in range(200)]


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([*SOME[:20], SOME[19], *SOME[20:40]], [(20, 20, Confidence.POSSIBLE)]),
        ([*SOME[:20], SOME[18], SOME[19], *SOME[20:40]], [(20, 21, Confidence.LIKELY)]),
        ([*SOME[:20], *SOME[1:20], *SOME[20:64]], [(20, 38, Confidence.LIKELY)]),
        # what recurs around is no evidence: a heartbeat, values that change slowly, few values, a value now and then
        ([b"ping"] * 40, []),
        ([*SOME[:20], SOME[19], *SOME[20:40], *[b"ping"] * 4, *SOME[40:60]], []),
        ([*SOME[:20], *[b"ping", b"value 7"] * 8, *SOME[20:40], SOME[39], *SOME[40:60]], []),
        ([value for value in SOME for _ in range(2)], []),
        ([*SOME[:80], SOME[1], SOME[79], *SOME[80:]], []),
        ([*SOME[:NEAR + 1], SOME[0], *SOME[NEAR + 1 :]], []),
        ([*SOME[:20], *[SOME[19]] * MAX_COPIES, *SOME[20:40]], []),
        ([*SOME[:20], *[SOME[19]] * (MAX_COPIES - 1), *SOME[20:40]], [(20, 21, Confidence.LIKELY)]),
    ],
)  # fmt: skip
def test_records_again_under_new_timestamps(tmp_path, payloads, expected):
    log = Log()
    for payload in payloads:
        log.append(Batch(payload=payload))
    found = seventh(write(tmp_path, log))
    assert [(finding.offset, finding.last_offset, finding.confidence) for finding in found] == expected


def test_no_client_sends_again_after_its_delivery_timeout(tmp_path):
    log = Log()
    for number in (*range(20), 19, *range(20, 40)):
        log.clock += 121_000
        plain(log, number, 1)
    assert seventh(write(tmp_path, log)) == []


def test_what_brokers_write_themselves_is_not_compared(tmp_path):
    log = Log()
    first = plain(log, 0)
    log.append(first, keep_time=True)
    assert seventh(write(tmp_path, log, "__consumer_offsets-0")) == []


@pytest.mark.parametrize(("between", "found"), [(DISTANCE - 1, 1), (DISTANCE, 0)])
def test_copies_are_looked_for_within_a_bound(tmp_path, between, found):
    log = Log()
    first = plain(log, 0, 1)
    for number in range(between):
        plain(log, 1 + number, 1)
    log.append(first, keep_time=True)
    assert len(seventh(write(tmp_path, log))) == found


def session(
    log: Log, producer_id: int, messages: list[bytes], epoch: int = 0, *, times: list[int] | None = None
) -> None:
    for sequence, message in enumerate(messages):
        batch = data(producer_id, epoch, sequence, payload=message)
        if times is None:
            log.append(batch)
        else:
            log.append(replace(batch, timestamp=times[sequence]), keep_time=True)


ORDERS = [b"a", b"b", b"c", b"d", b"e"]


@DEPTHS
@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ([*ORDERS[2:], b"f"], [(5, 7)]),
        ([*ORDERS[3:], b"f"], []),  # two may be chance
        ([b"f", *ORDERS], []),  # not at its beginning
        ([b"e", b"d", b"c"], []),  # not in that order
        ([b"c", b"c", b"c"], []),
    ],
)
def test_a_session_that_begins_with_three_records_of_the_last(tmp_path, again, expected, depth):
    log = Log()
    session(log, 1, ORDERS)
    session(log, 2, again)
    found = seventh(write(tmp_path, log), depth)
    assert [(finding.offset, finding.last_offset) for finding in found] == expected


@DEPTHS
def test_one_record_with_its_time_is_enough_after_an_epoch_bump(tmp_path, depth):
    # librdkafka#4953: one record written under both epochs
    log = Log()
    times = [1_700_000_000_000 + 10 * number for number in range(5)]
    session(log, 7, ORDERS, times=times)
    session(log, 7, [b"e", b"f"], epoch=1, times=[times[-1], times[-1] + 10])
    (found,) = seventh(write(tmp_path, log), depth)
    assert (found.offset, found.last_offset, found.producer_epoch) == (5, 5, 1)
    assert (found.code, found.severity, found.impact.records_duplicated) == ("KA704", Severity.WARNING, 1)


@DEPTHS
def test_equal_records_all_the_time_are_not_repeats(tmp_path, depth):
    log = Log()
    session(log, 1, [b"tick"] * 6)
    session(log, 2, [b"tick"] * 6)
    assert seventh(write(tmp_path, log), depth) == []


@DEPTHS
def test_a_transaction_written_again_is_no_repetition(tmp_path, depth):
    log = Log()
    for producer_id in (1, 2):
        for sequence, message in enumerate(ORDERS):
            log.append(data(producer_id, 0, sequence, payload=message, transactional=True))
    assert seventh(write(tmp_path, log), depth) == []


@DEPTHS
def test_a_session_that_still_writes_is_no_predecessor(tmp_path, depth):
    log = Log()
    session(log, 1, ORDERS)
    session(log, 2, ORDERS)
    log.append(data(1, 0, 5, payload=b"later"))
    assert seventh(write(tmp_path, log), depth) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=40), st.sets(st.integers(1, 39)), st.booleans())
def test_cutting_the_log_into_chunks_changes_nothing(tmp_path_factory, messages, cuts, restamped):
    log = Log()
    for number, message in enumerate(messages):
        moment = 1_700_000_000_000 + (number if restamped else message // 2)
        log.append(Batch(count=1, payload=b"m%d" % message, timestamp=moment), keep_time=True)
    directory = log.write(tmp_path_factory.mktemp("cut") / "orders-0")
    segment = directory / f"{0:020d}.log"
    with closing(LocalFile(segment)) as source:
        size = source.size()
        (piece,) = stream_batches(source, ByteRange(0, size, size), expected_offset=0)
    whole, pieces = RepeatDetector(), RepeatDetector()
    whole.feed(_rows(piece.batches))
    bounds = [0, *sorted(cut for cut in cuts if cut < len(messages)), len(messages)]
    for start, stop in pairwise(bounds):
        pieces.feed(_rows(piece.batches[start:stop]))
    assert pieces.result() == whole.result()
    if restamped:
        return
    expected = [number for number, message in enumerate(messages) if message in messages[:number]]
    assert [repeat.again.base_offset for repeat in whole.result().repeated] == expected


def _rows(batches):
    return compress(batches, ChunkRange(0, 0, 0, 0), log_start_offset=None, latest_timestamp=2_000_000_000_000)
