"""What consumers are given twice, by recordings whose truth is known and by logs made for it."""

import json
from dataclasses import replace
from typing import cast

from kaudit import library
from kaudit.audits.records import sequences
from kaudit.engines.progress import SilentProgress
from kaudit.engines.repeated_records import repeated_records
from kaudit.model.duplicates import Cause, Duplicate, Relation
from kaudit.model.severity import Confidence
from kaudit.scanning.options import ScanOptions
from tests.logs import Batch, Log, data, marker


def listed(path, *, read_committed=False, **more):
    with repeated_records(ScanOptions(paths=[str(path)], **more), SilentProgress()) as listing:
        found = [found for _, found in listing.found(read_committed=read_committed) if isinstance(found, Duplicate)]
        return found, listing


def offsets(found):
    return [(duplicate.offset, duplicate.original_offset) for duplicate in found]


def test_copies_of_retries_without_idempotence(evidence):
    capture = evidence.capture("retry-dup")
    truth = json.loads((capture / "truth.json").read_text())
    for topic, recorded in ((name, recorded) for name, recorded in truth.items() if not name.startswith("_")):
        found, listing = listed(capture / "logdirs", topics=[topic])
        counts = listing.totals[0].counts
        assert counts.repeated == recorded["duplicate_records"], topic
        assert counts.given_twice_by_sequence == ({"no-producer-id": counts.repeated} if counts.repeated else {})
        assert counts.dropped_by_key == counts.repeated  # the recorder gave every record a key
        copies = {
            (offset, places[0], number)
            for places in recorded["duplicated_running_numbers"].values()
            for number, offset in enumerate(places[1:], 2)
        }
        assert {(one.offset, one.original_offset, one.copy) for one in found} == copies, topic
        assert counts.lost_by_sequence == listing.totals[0].known_keys == 0


def test_copies_that_a_restarted_application_sent_under_other_producer_ids(evidence):
    capture = evidence.capture("cross-session")
    truth = json.loads((capture / "truth.json").read_text())
    for name, recorded in truth.items():
        topic, partition = name.rsplit("-", 1)
        found, listing = listed(capture / "logdirs", topics=[topic], partitions=[int(partition)])
        expected = [
            (offset, producer_id, sequence, *places[0])
            for places in recorded["duplicated"].values()
            for offset, producer_id, sequence in places[1:]
        ]
        assert [
            (
                *(one.offset, one.producer_id, one.sequence),
                *(one.original_offset, one.original_producer_id, one.original_sequence),
            )
            for one in found
        ] == sorted(expected)
        assert {one.relation for one in found} == {Relation.OTHER_PRODUCER_ID}
        assert listing.totals[0].counts.dropped_by_key == recorded["records"] - recorded["distinct"]


def test_idempotent_producers_of_every_client_and_codec_repeat_nothing(evidence):
    found, listing = listed(evidence.capture("clients-mix") / "logdirs")
    assert sum(total.records for total in listing.totals) > 1000
    # the clients write tombstones of the same keys one after the other
    assert {each.cause for _, each in listing.ranges} == {Cause.RECURRING}
    assert sum(each.record_count for _, each in listing.ranges) == len(found)
    assert {each.confidence for _, each in listing.ranges} == {Confidence.POSSIBLE}


def write(tmp_path, *batches):
    log = Log()
    for batch in batches:
        log.append(batch)
    return log.write(tmp_path / "orders-0")


def test_each_relation(tmp_path):
    def record(producer_id, epoch, sequence, payload):
        return data(producer_id, epoch, sequence, payload=payload)

    path = write(
        tmp_path,
        record(1, 0, 0, b"a"),
        record(1, 0, 1, b"b"),
        record(1, 0, 1, b"b"),
        record(1, 0, 2, b"a"),
        record(1, 1, 0, b"b"),
        record(2, 0, 0, b"b"),
        record(-1, -1, -1, b"c"),
        record(-1, -1, -1, b"c"),
        record(2, 0, 0, b"d"),
        record(2, 0, 1, b"e"),
    )
    found, _ = listed(path)
    assert [
        (one.offset, one.original_offset, one.relation.value, one.copy, one.dropped_by_sequence) for one in found
    ] == [
        (2, 1, "same-sequence", 2, True),
        (3, 0, "other-sequence", 2, False),
        (4, 1, "other-epoch", 3, False),
        (5, 1, "other-producer-id", 4, False),
        (7, 6, "no-producer-id", 2, False),
        (8, 5, "sequence-reused", None, True),
    ]


def test_a_duplicate_says_where_it_and_the_original_are(tmp_path):
    log = Log()
    first = log.append(data(1, 0, 0, 3, payload=b"a"))
    log.append(data(2, 5, 9, payload=b"b"))
    again = log.append(data(2, 5, 10, 3, payload=b"a"))
    path = log.write(tmp_path / "orders-0", segment_starts=(3,))
    # the batch of one record before it in its segment: 61 bytes of header, and a record of 8
    records, _ = listed(path)
    assert [(one.offset, one.segment, one.position, one.sequence) for one in records] == [
        # the first record's own repeats in its batch come before those of the other
        *((number, "00000000000000000000.log", 0, number) for number in (1, 2)),
        *((number, "00000000000000000003.log", 69, number + 6) for number in (4, 5, 6)),
    ]
    assert records[2] == Duplicate(
        offset=4,
        last_offset=4,
        record_count=1,
        segment="00000000000000000003.log",
        position=69,
        timestamp=again.timestamp,
        producer_id=2,
        producer_epoch=5,
        sequence=10,
        transaction_outcome=None,
        original_offset=0,
        original_last_offset=0,
        original_timestamp=first.timestamp,
        original_producer_id=1,
        original_producer_epoch=0,
        original_sequence=0,
        original_transaction_outcome=None,
        relation=Relation.OTHER_PRODUCER_ID,
        repeats=True,
        copy=4,
        dropped_by_key=False,
        dropped_by_sequence=False,
        read_committed=True,
        key_hash=None,
    )


def test_records_that_were_batched_anew_show_one_by_one(tmp_path):
    path = write(tmp_path, data(1, 0, 0, 4, payload=b"a"), data(2, 0, 0, 2, payload=b"a"))
    assert offsets(listed(path)[0]) == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]


def test_an_aborted_record_that_is_written_again_is_given_once_to_read_committed(tmp_path):
    def sent(sequence):
        return data(1, 0, sequence, payload=b"a", transactional=True)

    path = write(
        tmp_path,
        sent(0),
        marker(1, 0, commit=False),
        sent(1),
        marker(1, 0),
        sent(2),
        marker(1, 0),
        sent(3),
    )
    found, _ = listed(path)
    assert [(one.offset, one.original_offset, one.transaction_outcome, one.read_committed) for one in found] == [
        (2, 0, "committed", False),
        (4, 2, "committed", True),
        (6, 0, "open", False),
    ]
    assert offsets(listed(path, read_committed=True)[0]) == [(4, 2)]


def test_keys_that_recur_are_counted_where_records_are_read(tmp_path):
    def keyed(sequence, payload, key=b"k"):
        return data(1, 0, sequence, payload=payload, key=key)

    path = write(tmp_path, keyed(0, b"a"), keyed(1, b"b"), keyed(2, b"a"), keyed(3, b"c", None), keyed(4, b"c", None))
    found, listing = listed(path)
    # sha256sum of the one byte k
    key_hash = "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"
    assert [(one.offset, one.original_offset, one.dropped_by_key, one.key_hash) for one in found] == [
        (2, 0, True, key_hash),
        (4, 3, False, None),
    ]
    total = listing.totals[0]
    assert (total.known_keys, total.without_key, total.counts.dropped_by_key) == (1, 2, 1)


def test_more_known_sequences_than_are_compared_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(sequences, "MOST_RECORDS", 6)
    batches = [data(1, 0, sequence, 2, payload=b"%d" % number) for number, sequence in enumerate((0, 2, 4, 0, 2))]
    found, listing = listed(write(tmp_path, *batches))
    # sequences 0 to 3 recur: six of the eight records that have them have room, two that go back are among these
    reused = [one for one in found if one.relation is Relation.SEQUENCE_REUSED]
    assert (listing.totals[0].more, offsets(reused)) == (2, [(6, 0), (7, 1)])


def test_a_batch_that_vanishes_between_the_two_readings_is_counted(tmp_path):
    path = write(tmp_path, data(1, 0, 0), data(1, 0, 1))
    with repeated_records(ScanOptions(paths=[str(path)]), SilentProgress()) as listing:
        (path / f"{0:020d}.log").write_bytes(b"")
        assert not list(listing.found(read_committed=False))
        assert listing.totals[0].unread == 1


def test_what_a_scan_reports_is_listed(tmp_path):
    sent = [data(-1, -1, -1, payload=b"sent"), data(-1, -1, -1, payload=b"lost")]
    log = Log()
    times: list[tuple[Batch, int]] = []
    for batch in [*sent, *(data(-1, -1, -1, payload=b"%d" % number) for number in range(9)), sent[1], sent[0], sent[0]]:
        again = next((time for known, time in times if known is batch), None)
        stamped = batch if again is None else replace(batch, timestamp=again)
        times.append((batch, log.append(stamped, keep_time=again is not None).timestamp))
    path = log.write(tmp_path / "orders-0")
    scan = library.scan(path)
    copies = [finding.evidence["copies"] for finding in scan.findings if finding.code == "KA702"]
    assert [pair for pairs in copies for pair in cast("list[list[int]]", pairs)] == [[1, 11], [0, 12], [0, 13]]
    found, listing = listed(path)
    assert [(one.offset, one.original_offset, one.copy) for one in found] == [(11, 1, 2), (12, 0, 2), (13, 0, 3)]
    assert listing.totals[0].counts.repeated == 3


def test_repeats_of_other_sessions_and_epochs_are_listed(tmp_path):
    log = Log()
    for batch in [data(7, 0, number, payload=b"%d" % number) for number in range(4)]:
        log.append(batch)
    log.append(data(9, 0, 0, 3, payload=b"other"))
    times = [batch.timestamp for batch in log.batches]
    for producer_id, epoch in ((7, 1), (8, 0)):
        for number in range(4):
            log.append(
                data(producer_id, epoch, number, payload=b"%d" % number)
                if producer_id == 8
                else replace(data(producer_id, epoch, number, payload=b"%d" % number), timestamp=times[number]),
                keep_time=producer_id == 7,
            )
        log.append(data(9, 0, 3 if producer_id == 7 else 6, 3, payload=b"other"))
    path = log.write(tmp_path / "orders-0")
    scan = library.scan(path, depth="records")
    reported = {
        offset
        for finding in scan.findings
        if finding.code in {"KA701", "KA704"}
        for offset in range(finding.offset or 0, (finding.last_offset or 0) + 1)
    }
    assert reported >= {*range(7, 11), *range(14, 18)}
    found, _ = listed(path)
    assert reported <= {one.offset for one in found}


def test_a_batch_that_counts_more_records_than_it_has_offsets_is_no_log_cleaners(tmp_path):
    log = Log()
    log.append(replace(data(1, 0, 0, 2), count=3))
    assert not listed(log.write(tmp_path / "orders-0"))[1].totals[0].compacted
