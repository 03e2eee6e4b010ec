"""KA305 and KA5: side files that brokers wrote are silent, damaged ones are named at their byte."""

import shutil
import struct

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.engines.local import scan
from tests.conformance.test_captures import EXPECTED
from tests.conftest import ORACLE_VERSIONS
from tests.logs import Log, data, marker

CODES = ("KA305", "KA501", "KA503", "KA504", "KA505", "KA506")


def side_findings(path, **options):
    result = scan(ScanOptions([str(path)], **options), SilentProgress())
    return [found for found in result.findings if found.code in CODES]


def told(path, **options):
    return [
        (found.code, found.severity.value, found.file.rsplit("/", 1)[-1], found.position)
        for found in side_findings(path, **options)
    ]


@pytest.mark.parametrize("capture", sorted({capture for capture, *_ in EXPECTED}))
def test_side_files_of_live_stopped_and_killed_brokers_are_silent(evidence, capture):
    for name, directory, *_ in EXPECTED:
        if name == capture:
            assert told(evidence.capture(capture) / directory) == []


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_side_files_of_every_version_are_silent(evidence, version):
    """Aborts of every kind are among them, also those without data that brokers up to 2.7 index."""
    logs = evidence.oracle(version, "logdir")
    assert told(logs) == []
    assert any(path.stat().st_size for path in logs.rglob("*.txnindex"))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("snapshot-truncated", ("KA501", "warning", "00000000000000001322.snapshot", 11826)),
        ("snapshot-garbage-version", ("KA501", "warning", "00000000000000001322.snapshot", 0)),
        ("index-garbage", ("KA503", "warning", "00000000000000000662.index", 24)),
        ("missing-index", ("KA503", "note", "00000000000000000662.index", None)),
        ("missing-timeindex", ("KA504", "note", "00000000000000000662.timeindex", None)),
        ("leader-epoch-garbage", ("KA506", "error", "leader-epoch-checkpoint", 2)),
        ("txnindex-truncated", ("KA305", "error", "00000000000000000128.txnindex", 0)),
    ],
)
def test_labelled_damage_is_found_where_it_is_and_nothing_else(evidence, label, expected):
    assert told(evidence.capture("torn-writes") / "artificial" / label) == [expected]


@pytest.mark.parametrize(
    "label", ["batch-removed", "flip-base-offset", "flip-body", "flip-length", "zero-hole-4k", "empty-log"]
)
def test_indexes_of_a_damaged_segment_are_no_finding_of_their_own(evidence, label):
    assert told(evidence.capture("torn-writes") / "artificial" / label) == []


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
    assert told(rolled) == []
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
        assert told(directory) == []
    index.write_bytes(struct.pack(">hqqqq", *first) + struct.pack(">hqqqq", 0, 1, 4, 5, 6))
    (found,) = side_findings(directory)
    assert found.evidence["wrong"][0]["reason"] == "the last stable offset was 3"


def edited_index(directory, suffix, layout, change):
    path = next(
        path for path in sorted(directory.glob(f"*.{suffix}")) if path.stat().st_size >= 3 * struct.calcsize(layout)
    )
    size = struct.calcsize(layout)
    content = path.read_bytes()
    rows = [list(struct.unpack(layout, content[at : at + size])) for at in range(0, len(content), size)]
    path.write_bytes(b"".join(struct.pack(layout, *row) for row in change(rows)))
    return path


@pytest.fixture
def explosion(evidence, tmp_path):
    target = tmp_path / "b1" / "explosion-0"
    shutil.copytree(evidence.capture("cross-session") / "logdirs/b1/explosion-0", target)
    return target


def test_an_index_row_that_leads_into_a_batch_is_found(explosion):
    def change(rows):
        rows[2][1] += 7
        return rows

    path = edited_index(explosion, "index", ">ii", change)
    assert told(explosion) == [("KA503", "warning", path.name, 16)]


def test_an_index_row_of_a_later_batch_is_found(explosion):
    def change(rows):
        rows[1][1] = rows[2][1]
        return rows

    path = edited_index(explosion, "index", ">ii", change)
    assert told(explosion) == [("KA503", "warning", path.name, 8)]


def test_zeros_behind_the_last_row_are_preallocation(explosion):
    edited_index(explosion, "index", ">ii", lambda rows: [*rows, [0, 0], [0, 0]])
    edited_index(explosion, "timeindex", ">qi", lambda rows: [*rows, [0, 0]])
    assert told(explosion) == []


def test_time_indexes_never_fall_back(explosion):
    def change(rows):
        rows[1][0] = rows[0][0]
        return rows

    path = edited_index(explosion, "timeindex", ">qi", change)
    assert told(explosion) == [("KA504", "warning", path.name, 12)]


def test_time_index_rows_belong_to_the_segment(explosion):
    def change(rows):
        rows[-1][1] += 10**6
        return rows

    path = edited_index(explosion, "timeindex", ">qi", change)
    assert [entry[:3] for entry in told(explosion)] == [("KA504", "warning", path.name)]


@pytest.mark.parametrize("size", [0, 9, 20])
def test_short_snapshots_name_the_one_the_broker_falls_back_to(explosion, size):
    path = explosion / "00000000000000001322.snapshot"
    path.write_bytes(path.read_bytes()[:size])
    (found,) = side_findings(explosion)
    assert (found.code, found.evidence["older_snapshot"]) == ("KA501", "00000000000000000662.snapshot")


def two_epochs(tmp_path):
    log = Log()
    for sequence in range(10):
        log.append(data(1, 0, sequence, leader_epoch=3 if sequence < 6 else 7))
    return log.write(tmp_path / "b" / "t-0")


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ("3 0\n7 6\n", []),
        ("3 0\n5 6\n7 6\n", []),  # epoch 5 led and wrote nothing
        ("3 4\n7 6\n", []),  # cut with the log's start
        ("3 0\n7 6\n9 10\n", []),  # elected, nothing written yet
        ("3 0\n7 5\n", ["KA506"]),
        ("3 0\n7 7\n", ["KA506"]),
        ("3 0\n", ["KA506"]),
        ("4 0\n7 6\n", ["KA506"]),
        ("7 0\n3 6\n", ["KA506"]),
    ],
)
def test_leader_epochs_against_the_batches(tmp_path, rows, codes):
    directory = two_epochs(tmp_path)
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{rows.count(chr(10))}\n{rows}")
    assert [found.code for found in side_findings(directory)] == codes


@pytest.mark.parametrize(
    ("name", "offset", "codes"),
    [
        ("recovery-point-offset-checkpoint", 10, []),
        ("recovery-point-offset-checkpoint", 0, []),
        ("recovery-point-offset-checkpoint", 11, ["KA505"]),
        ("replication-offset-checkpoint", 25, ["KA505"]),
        ("cleaner-offset-checkpoint", 11, ["KA505"]),
    ],
)
def test_checkpoints_may_lag_but_not_lead(tmp_path, name, offset, codes):
    two_epochs(tmp_path)
    (tmp_path / "b" / name).write_text(f"0\n2\nt 0 {offset}\nother 3 99\n")
    found = side_findings(tmp_path / "b")
    assert [entry.code for entry in found] == codes
    for entry in found:
        assert (entry.file, entry.offset, entry.last_offset) == (name, 10, offset - 1)


def test_an_unparsable_checkpoint_is_one_finding_of_its_log_directory(tmp_path):
    two_epochs(tmp_path)
    (tmp_path / "b" / "replication-offset-checkpoint").write_text("0\n7\nt 0 5\n")
    (found,) = side_findings(tmp_path / "b")
    assert (found.code, found.topic, found.file) == ("KA505", None, "replication-offset-checkpoint")
    assert "offline" in found.evidence["broker"]


def test_cutting_into_chunks_changes_no_transaction(evidence):
    """The spans are fed chunk by chunk: aborts must not depend on where the chunks were cut."""
    import numpy as np

    from kaudit.analysis.scan.producer_grouping import merge
    from kaudit.analysis.scan.rows import MARKER, RUN
    from kaudit.analysis.transactions.transaction_spans import TransactionSpans
    from kaudit.model.columns import Columns

    random = np.random.default_rng(7)
    for _ in range(30):
        events = []
        offset = 0
        for _ in range(60):
            producer, kind = int(random.integers(1, 5)), int(random.integers(0, 3))
            events.append((producer, offset, kind))
            offset += int(random.integers(1, 4))
        results = []
        for pieces in (1, 7):
            spans = TransactionSpans()
            for piece in np.array_split(np.arange(len(events)), pieces):
                chosen = [events[index] for index in piece]
                runs = np.zeros(sum(kind == 2 for *_, kind in chosen), dtype=RUN)
                ends = np.zeros(sum(kind < 2 for *_, kind in chosen), dtype=MARKER)
                data_events = [event for event in chosen if event[2] == 2]
                end_events = [event for event in chosen if event[2] < 2]
                runs["producer_id"], runs["first_offset"] = [e[0] for e in data_events], [e[1] for e in data_events]
                runs["is_transactional"] = True
                ends["producer_id"], ends["offset"] = [e[0] for e in end_events], [e[1] for e in end_events]
                ends["type"], ends["record_count"] = [e[2] for e in end_events], 1
                runs.sort(order=["producer_id", "first_offset"])
                ends.sort(order=["producer_id", "offset"])
                columns = [
                    Columns(rows.dtype, len(rows), {n: rows[n] for n in rows.dtype.names}) for rows in (runs, ends)
                ]
                spans.feed(merge(*columns))
            results.append(
                [
                    (int(row["marker_offset"]), int(row["first_offset"]), int(row["stable_offset"]))
                    for row in spans.ended()
                    if row["type"] == 0
                ]
            )
        assert results[0] == results[1] == naive_aborts(events)


def naive_aborts(events):
    """The same by a diary: open transactions in a dict, one event after the other."""
    opened: dict[int, int] = {}
    found = []
    for producer, offset, kind in events:
        if kind == 2:
            opened.setdefault(producer, offset)
            continue
        first = opened.pop(producer, -1)
        if kind == 0:
            found.append((offset, first, min(opened.values(), default=-1)))
    return found
