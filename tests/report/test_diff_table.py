"""`kaudit diff` as a table: rows, colours, and the sentence below."""

import pytest
from msgspec.structs import replace

from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.replicas import (
    BrokerReplicas,
    CopyChange,
    Difference,
    DiffResult,
    MissingRecords,
    OffsetRange,
    PartitionComparison,
    Relation,
    Replica,
    ReplicaBatch,
)
from kaudit.report.console import Console
from kaudit.report.machine.tables import diff_tables
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.diff import comparison_text, relation_table, render_diff
from tests.scan_results import old_duplicate, scan_result

REPLICAS = (Replica("b1", "/data/b1"), Replica("/data/b2", "/data/b2"))


def compared(relation, number=0, **changes):
    entry = PartitionComparison(
        topic="orders",
        partition=number,
        relation=relation,
        reference="b1",
        relations={"/data/b2": relation},
        missing_on=(),
        common_end_offset=100,
        first_difference=None,
        leader_epochs={"b1": [EpochEntry(0, 0)], "/data/b2": []},
        truncation_offsets={"/data/b2": None},
        only_on={},
        start_offsets={"b1": 0, "/data/b2": 3},
        end_offsets={"b1": 120, "/data/b2": 100},
    )
    return replace(entry, **changes)


def change(earlier="b1", later="/data/b2", relation=Relation.APPENDED, **more):
    return CopyChange(7, earlier, later, relation, 100, **more)


def result(*partitions, findings=(), **more):
    return DiffResult(scan_result(*findings), REPLICAS, partitions, **more)


def test_rows_of_what_differs():
    shown = render_diff(
        result(
            compared(Relation.IDENTICAL, 0),
            compared(Relation.BEHIND, 1, truncation_offsets={"/data/b2": 100}),
            compared(Relation.DIVERGED, 2, truncation_offsets={"/data/b2": 99}, common_end_offset=None),
            compared(Relation.MISSING, 3),
            compared(Relation.DIVERGED, 4, end_offsets={"b1": 120}),
        ),
        RenderOptions(),
    )
    assert shown.splitlines()[:7] == [
        "no findings in 2 segments, 1 partition, 1.2 MB; not checked: orders-3",
        "",
        "b1 = /data/b1",
        "",
        "partition  relation  identical up to  b1 ends  /data/b2 ends  broker would truncate",
        "orders-1   behind    100              120      100            -",
        "orders-2   diverged  -                120      100            /data/b2 to 99",
    ]
    assert shown.splitlines()[7] == "orders-4   diverged  100              120      -              -"
    assert (
        "\n1 partition identical, 1 partition behind, 2 partitions diverged, 1 partition on one replica only "
        "in 2 segments of 2 replicas, 1.2 MB\n"
    ) in shown


def test_copies_of_one_broker_at_different_times():
    cut = change(relation=Relation.TRUNCATED, truncated=OffsetRange(100, 119), missing=MissingRecords(1234, 0, 0))
    unknown = replace(cut, truncated=OffsetRange(100, 100), missing=None)
    found = result(
        compared(Relation.IDENTICAL, 0, copy_changes=[cut, change()], relations={}),
        compared(Relation.BEHIND, 1, copy_changes=[unknown]),
        broker_copies=[BrokerReplicas(7, None, None, ["a", "b1", "/data/b2"])],
    )
    shown = render_diff(found, RenderOptions()).split("\n\n")
    assert shown[1].splitlines()[1] == (
        "a, b1 and /data/b2 are broker 7 at different times (oldest first), not replicas of one another"
    )
    # an earlier copy has no column
    assert shown[2].splitlines() == [
        "partition  relation  identical up to  /data/b2 ends  broker would truncate",
        "orders-1   behind    100              100            -",
    ]
    assert shown[3].splitlines() == [
        "partition  change     identical up to  offsets   between         missing records",
        "orders-0   truncated  100              100..119  b1 -> /data/b2  1,234",
        "orders-1   truncated  100              100       b1 -> /data/b2  unknown",
    ]
    # what has copies only is counted as changes alone
    assert comparison_text(found) == (
        "1 partition behind, between copies of one broker: 1 appended, 2 truncated in 2 segments of 2 replicas, 1.2 MB"
    )


def test_no_partitions():
    assert comparison_text(result()) == "no partitions in 2 segments of 2 replicas, 1.2 MB"


def test_a_partition_of_one_replica_alone_is_counted():
    alone = compared(Relation.MISSING, reference=None, relations={}, end_offsets={"b1": 120})
    assert comparison_text(result(alone, compared(Relation.IDENTICAL, 1))) == (
        "1 partition identical, 1 partition on one replica only in 2 segments of 2 replicas, 1.2 MB"
    )


HEADINGS = ["partition", "relation", "identical up to", "ends"]
ROWS = [["orders-0", "behind", "12", "-"], ["orders-10", "diverged", "-", "900"]]
WIDE = [
    "partition  relation  identical up to  ends",
    "orders-0   behind    12               -",
    "orders-10  diverged  -                900",
]


@pytest.mark.parametrize(("width", "lines"), [
    (None, WIDE), (42, WIDE), (41, ["orders-0 behind: identical up to 12", "orders-10 diverged: ends 900"]),
])  # fmt: skip
def test_a_table_is_a_list_where_it_does_not_fit(width, lines):
    assert relation_table(HEADINGS, ROWS, Console(width=width)) == lines


def test_no_rows_no_table():
    assert relation_table(HEADINGS, [], Console()) == []


def test_relations_have_colours():
    names = {
        "identical": "32",
        "behind": "1;36",
        "diverged": "1;31",
        "appended": "32",
        "truncated": "1;33",
        "missing": "2",
    }
    table = relation_table(["a", "b"], [["p", name] for name in names], Console(color=True))
    assert table[0] == "\x1b[2ma  b\x1b[0m"
    assert table[1:] == [f"p  \x1b[{code}m{name}\x1b[0m" for name, code in names.items()]


@pytest.mark.parametrize(("number", "more"), [
    (200, []), (201, ["1 more partition that differ (json lists all)"]), (202, ["2 more partitions that differ (json lists all)"]),
])  # fmt: skip
def test_two_hundred_partitions_are_shown(number, more):
    table = relation_table(["a", "b"], [["p", "behind"]] * number, Console())
    assert table[201:] == more
    assert table[200] == "p  behind"


def test_findings_are_explained_but_not_in_statistics():
    found = result(compared(Relation.IDENTICAL), findings=[old_duplicate()])
    plain, counted = (render_diff(found, RenderOptions(statistics=counted)) for counted in (False, True))
    assert "kaudit explain KA102" in plain
    assert "kaudit explain" not in counted


def test_a_row_for_each_replica():
    batch = ReplicaBatch(90, 92, 1, -1, -1, -1, -1, 3, 5, 6, 7, 8, 0)
    entry = compared(
        Relation.DIVERGED,
        first_difference=Difference(90, {"b1": batch}),
        only_on={"/data/b2": OffsetRange(90, 99)},
        truncation_offsets={"/data/b2": 90},
    )
    alone = compared(Relation.MISSING, 1, reference=None, relations={}, end_offsets={"b1": 120})
    rows = diff_tables(result(entry, alone), RenderOptions()).rows["comparisons"]
    shared = {"topic": "orders", "partition": 0, "reference": "b1", "common_end_offset": 100, "first_difference": 90}
    assert list(rows) == [
        {
            **shared, "replica": "b1", "relation": None, "truncation_offset": None, "start_offset": 0, "end_offset": 120,
            "only_first_offset": None, "only_last_offset": None, "leader_epochs": rows[0]["leader_epochs"],
        },
        {
            **shared, "replica": "/data/b2", "relation": "diverged", "truncation_offset": 90, "start_offset": 3,
            "end_offset": 100, "only_first_offset": 90, "only_last_offset": 99, "leader_epochs": "[]",
        },
        {
            **shared, "partition": 1, "reference": None, "first_difference": None, "replica": "b1", "relation": "missing",
            "truncation_offset": None, "start_offset": 0, "end_offset": 120, "only_first_offset": None,
            "only_last_offset": None, "leader_epochs": rows[0]["leader_epochs"],
        },
    ]  # fmt: skip
    assert rows[0]["leader_epochs"] not in ("[]", None)
