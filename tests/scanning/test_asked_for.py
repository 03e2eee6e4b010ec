"""What was asked for and is not there, by hand-made layouts."""

import numpy as np
import pytest

from kaudit.model.result import NotAudited
from kaudit.scanning.not_covered import (
    empty_inputs,
    inputs_without_choice,
    missing_from_inputs,
    missing_partitions,
    missing_producers,
)
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory, SegmentFile, Unreadable


def directory(topic, partition, log_dir="/d"):
    path = f"{log_dir}/{topic}-{partition}"
    segment = SegmentFile(f"{path}/0.log", "0.log", 0, 10, 0)
    return PartitionDirectory(topic, partition, "", log_dir, path, f"{topic}-{partition}", [segment])


def asked(path, reason):
    return NotAudited(path, reason, asked_for=True)


FOUND = [directory("orders", 0), directory("orders", 2), directory("payments", 1)]


@pytest.mark.parametrize(
    ("topics", "partitions", "expected"),
    [
        ([], [], []),
        (["orders"], [0, 2], []),
        (["orders", "payments"], [0, 1, 2], []),
        ([], [1], []),
        (["order"], [], [asked("--topic order", "no such topic; did you mean orders?")]),
        (["x"], [], [asked("--topic x", "no such topic; topics there: orders, payments")]),
        # where no topic that was asked for is there, none of its partitions can be
        (["x"], [7], [asked("--topic x", "no such topic; topics there: orders, payments")]),
        (["orders"], [1], [asked("--partition 1", "no such partition; there: 0, 2")]),
        ([], [3, 0, 4], [asked(f"--partition {each}", "no such partition; there: 0, 1, 2") for each in (3, 4)]),
    ],
)
def test_topics_and_partitions_that_are_not_there(topics, partitions, expected):
    options = ScanOptions(["/d"], topics=topics, partitions=partitions)
    assert list(missing_partitions(options, FOUND)) == expected
    layout = Layout(FOUND[:1], unchosen=FOUND[1:])
    assert list(missing_from_inputs(options, layout)) == expected


@pytest.mark.parametrize(("topics", "more"), [(10, ""), (11, " and 1 more"), (1010, " and 1,000 more")])
def test_of_many_topics_ten_are_named(topics, more):
    found = [directory(f"t{number:04}", 0) for number in range(topics)]
    (missing,) = missing_partitions(ScanOptions(["/d"], topics=["x"]), found)
    assert missing.reason == f"no such topic; topics there: {', '.join(f't000{n}' for n in range(10))}{more}"


@pytest.mark.parametrize(
    ("ids", "wanted", "reasons"),
    [
        ([[1, 5], [9]], [1, 5, 9], {}),
        ([], [7], {7: "no such producer id: there are none in these logs"}),
        ([[], []], [7, 7], {7: "no such producer id: there are none in these logs"}),
        ([[1], [5, 1], [9]], [7], {7: "no such producer id; there: 1, 5, 9"}),
        ([[1], [5]], [6, 0], {0: "no such producer id; there: 1, 5", 6: "no such producer id; there: 1, 5"}),
        (
            [[10, 20, 30], [40]],
            [5, 25, 99],
            {
                5: "no such producer id; nearest: 10, 20, 30 (4 ids from 10 to 40)",
                # of two as far away the lesser
                25: "no such producer id; nearest: 10, 20, 30 (4 ids from 10 to 40)",
                99: "no such producer id; nearest: 20, 30, 40 (4 ids from 10 to 40)",
            },
        ),
        ([range(2000)], [2000], {2000: "no such producer id; nearest: 1997, 1998, 1999 (2,000 ids from 0 to 1999)"}),
    ],
)
def test_producer_ids_that_are_not_there(ids, wanted, reasons):
    options = ScanOptions(["/d"], producer_ids=wanted)
    arrays = [np.array(each, dtype=np.int64) for each in ids]
    expected = [asked(f"--producer-id {each}", reason) for each, reason in reasons.items()]
    assert list(missing_producers(options, arrays, [])) == expected
    # one that is known from elsewhere, as by the transaction coordinator, is there
    assert list(missing_producers(options, arrays, [None, *wanted])) == []


def test_of_no_ids_asked_for_none_is_looked_for():
    ids = iter([np.array([1])])
    assert list(missing_producers(ScanOptions(["/d"]), ids, [])) == []
    assert len(list(ids)) == 1


def test_inputs_of_which_nothing_was_chosen():
    chosen, others = [directory("orders", 0, "/a")], [directory("payments", 0, "/a"), directory("payments", 1, "/b")]
    options = ScanOptions(["/a", "/b", "/c"])
    assert list(inputs_without_choice(options, chosen, others)) == [
        asked("/b", "holds no partition that was asked for")
    ]
    assert list(inputs_without_choice(options, [*chosen, *others], [])) == []


def test_an_input_without_a_log_may_hold_the_blocks_of_producer_ids(tmp_path):
    for name in ("empty", "logs", "snapshots"):
        (tmp_path / name / "version-2").mkdir(parents=True)
    (tmp_path / "logs/version-2/log.1").write_bytes(b"ZKLG")
    (tmp_path / "snapshots/version-2/snapshot.0").write_bytes(b"ZKSN")
    paths = [*(str(tmp_path / name) for name in ("empty", "logs", "snapshots", "gone")), "s3://bucket/nothing"]
    layout = Layout([], empty_inputs=[Unreadable(path, "holds no segment") for path in paths])
    expected = [asked(path, "holds no segment") for path in (paths[0], *paths[3:])]
    assert list(empty_inputs(layout)) == expected
    assert list(missing_from_inputs(ScanOptions(paths), layout)) == expected
