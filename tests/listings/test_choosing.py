"""Which producer ids are listed and in what order: as a loop over them picks, for each filter and each order."""

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from kaudit.listings.activity import PRODUCER_ACTIVITY
from kaudit.listings.partition_join import AboutProducer, Joined, producer_partition
from kaudit.listings.producer_listing import Ids, Listing
from kaudit.listings.query import Query, SortKey

NOW = 1000
COLUMNS = ("ids", "batches", "records", "first_timestamp", "last_timestamp", "epochs", "partitions")


def some_ids(seed: int) -> tuple[Ids, list[dict[str, int]]]:
    """Ids with few different values, and the same as rows; `findings` has how many are about each."""
    chance = random.Random(seed)
    rows = [
        {
            "ids": 10 + 3 * number,
            "batches": chance.randint(1, 4),
            "records": chance.randint(1, 4),
            "first_timestamp": 990 + chance.randint(0, 4),
            "last_timestamp": 994 + chance.randint(0, 4),
            "epochs": chance.randint(1, 3),
            "partitions": chance.randint(1, 3),
            "findings": chance.choice((0, 0, 1, 2)),
        }
        for number in range(30)
    ]
    own: dict[str, Any] = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in COLUMNS}
    none: Any = np.empty(0, dtype=np.int64)
    joined = Joined(
        **own, is_transactional=none, topics=none, _starts=none, _held=none, _rows=none, _parts=(), _places=()
    )
    findings = {row["ids"]: [AboutProducer(row["ids"], "KA101", "f", ("t", 0, "b"))] * row["findings"] for row in rows}
    # and one that is in no log
    return Ids(joined, findings | {11: [AboutProducer(11, "KA101", "f", ("t", 0, "b"))]}, {}), rows


def listed(ids: Ids, query: Query, **options: Any) -> list[int]:
    asked: dict[str, Any] = {"producer_ids": (), "since_ms": None, "until_ms": None} | options
    listing = Listing(query, **asked, now_ms=NOW, blocks=(), remembers_markers=True)
    chosen = listing.choose(ids)
    assert chosen.keys.tolist() == sorted(chosen.keys.tolist())
    return [10 + 3 * number for number in chosen.numbers.tolist()]


@pytest.mark.parametrize(
    ("asked", "options", "belongs"),
    [
        ({}, {}, lambda row: True),
        ({"min_batches": 2}, {}, lambda row: row["batches"] >= 2),
        ({"max_batches": 2}, {}, lambda row: row["batches"] <= 2),
        ({"min_batches": 2, "max_batches": 3}, {}, lambda row: row["batches"] in (2, 3)),
        ({"min_epochs": 2}, {}, lambda row: row["epochs"] >= 2),
        ({"min_age_ms": 4}, {}, lambda row: row["last_timestamp"] <= NOW - 4),
        ({"max_age_ms": 4}, {}, lambda row: row["last_timestamp"] >= NOW - 4),
        ({"with_findings": True}, {}, lambda row: row["findings"] >= 1),
        ({}, {"since_ms": 996}, lambda row: row["last_timestamp"] >= 996),
        ({}, {"until_ms": 992}, lambda row: row["first_timestamp"] <= 992),
        (
            {},
            {"since_ms": 996, "until_ms": 992},
            lambda row: row["last_timestamp"] >= 996 and row["first_timestamp"] <= 992,
        ),
        ({}, {"producer_ids": (13, 14, 22)}, lambda row: row["ids"] in (13, 22)),
        ({"min_epochs": 2, "with_findings": True}, {}, lambda row: row["epochs"] >= 2 and row["findings"] >= 1),
    ],
)
def test_what_is_listed(asked, options, belongs):
    ids, rows = some_ids(1)
    expected = [row["ids"] for row in rows if belongs(row)]
    assert 0 < len(expected) <= len(rows)
    assert listed(ids, Query(**asked), **options) == expected


ORDERS: dict[SortKey, tuple[str, bool]] = {
    SortKey.ID: ("ids", False),
    SortKey.FIRST: ("first_timestamp", False),
    SortKey.LAST: ("last_timestamp", True),
    SortKey.BATCHES: ("batches", True),
    SortKey.RECORDS: ("records", True),
    SortKey.EPOCHS: ("epochs", True),
    SortKey.PARTITIONS: ("partitions", True),
    SortKey.FINDINGS: ("findings", True),
}


@pytest.mark.parametrize(("key", "reverse"), [*product(SortKey, (False, True))])
def test_in_what_order(key, reverse):
    """The greatest first, or the least; of equal ones the lowest id."""
    ids, rows = some_ids(2)
    column, greatest_first = ORDERS[key]
    sign = -1 if greatest_first != reverse else 1
    expected = sorted(rows, key=lambda row: (sign * row[column], row["ids"]))
    assert listed(ids, Query(sort=key, reverse=reverse)) == [row["ids"] for row in expected]


NAMES = tuple(PRODUCER_ACTIVITY.names or ())


@pytest.mark.parametrize(
    ("remembers_markers", "sequence", "timestamp"),
    [
        (True, 7, "state_timestamp"),
        (False, 7, "state_data_timestamp"),
        (False, -1, None),
        (True, -1, "state_timestamp"),
    ],
)
def test_an_id_in_a_partition_has_every_figure_of_its_row(remembers_markers, sequence, timestamp):
    """Before KAFKA-9144 a marker was no sign of life: a producer with markers alone is forgotten at the next check."""
    row = np.zeros(1, dtype=PRODUCER_ACTIVITY)
    for number, name in enumerate(NAMES, 101):
        row[name] = number % 128 if row.dtype[name].itemsize == 1 else number
    row["state_sequence"] = sequence
    own = {name: int(row[name][0]) for name in NAMES}
    about = [AboutProducer(7, "KA101", f"f{number}", ("t", number, "b")) for number in (3, 4, 3)]
    found = producer_partition(("t", 3, "b"), row[0], about, remembers_markers=remembers_markers)
    assert (found.topic, found.partition, found.replica, found.findings) == ("t", 3, "b", ("f3", "f3"))
    same = (
        "first_offset",
        "last_offset",
        "first_timestamp",
        "last_timestamp",
        "first_epoch",
        "epochs",
        "batches",
        "records",
    )
    assert {name: getattr(found, name) for name in same} == {name: own[name] for name in same}
    assert found.last_epoch == own["highest_epoch"]
    state = found.state
    assert (state.producer_epoch, state.last_sequence, state.last_offset) == (
        own["state_epoch"],
        sequence,
        own["state_offset"],
    )
    assert state.last_timestamp == (-1 if timestamp is None else own[timestamp])
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (
        own["state_coordinator_epoch"],
        own["state_txn_offset"],
    )
