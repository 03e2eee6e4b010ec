import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason
from kaudit.formats.sidefiles.indexes import AbortedTxn, parse_transaction_index
from tests.formats.archives import files
from tests.formats.fuzz import damaged, quick

int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(int64, int64, int64, int64), max_size=6), st.binary(max_size=33))
@quick
def test_round_trip(rows, tail):
    data = b"".join(struct.pack(">hqqqq", 0, *row) for row in rows)
    index = parse_transaction_index(data + tail)
    assert index.rows == tuple(
        AbortedTxn(row[0], row[1], row[2], row[3], 34 * number) for number, row in enumerate(rows)
    )
    detail = f"{len(tail)} bytes of a row of 34"
    assert [(d.position, d.end, d.reason, d.detail) for d in index.damage] == (
        [(len(data), len(data + tail), Reason.TRUNCATED, detail)] if tail else []
    )


def test_a_row_of_another_version_does_not_hide_the_next():
    index = parse_transaction_index(struct.pack(">hqqqqhqqqq", 1, 1, 2, 3, 4, 0, 5, 6, 7, 8))
    assert index.rows == (AbortedTxn(5, 6, 7, 8, 34),)
    assert [(damage.position, damage.end, damage.reason, damage.detail) for damage in index.damage] == [
        (0, 34, Reason.VERSION, "row version 1, only 0 exists")
    ]


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0"])
def test_every_row_equals_that_versions_own_dump(evidence, version):
    root = evidence.oracle(version, "logdir") / "main"
    dumped: dict[Path, list[tuple[int, ...]]] = {}
    path = root
    for line in (evidence.oracle(version, "dumps") / "txnindex.txt").read_text().splitlines():
        if line.startswith("Dumping "):
            path = root / line.removeprefix("Dumping ")
            dumped[path] = []
        else:
            dumped[path].append(tuple(map(int, re.findall(r"-?\d+", line)[1:])))
    present = {path: rows for path, rows in dumped.items() if path.exists()}  # not all that was dumped is kept
    assert sum(map(len, present.values())) > 8
    for path, rows in present.items():
        index = parse_transaction_index(path.read_bytes())
        assert index.damage == ()
        assert [(r.producer_id, r.first_offset, r.last_offset, r.last_stable_offset) for r in index.rows] == rows


def test_every_txnindex_there_is(evidence):
    rows = 0
    for path in files(evidence, "*.txnindex", without=["txnindex-truncated"]):
        index = parse_transaction_index(path.read_bytes())
        assert index.damage == ()
        last = [row.last_offset for row in index.rows]
        assert last == sorted(set(last))
        assert all(offset >= int(path.stem) for offset in last)
        rows += len(last)
    assert rows > 100


def test_the_labelled_torn_index(evidence):
    root = evidence.capture("torn-writes") / "artificial/txnindex-truncated/tx-roll-0"
    index = parse_transaction_index((root / "00000000000000000128.txnindex").read_bytes())
    whole = evidence.capture("txn-mix-2.8.2") / "logdirs/b0/tx-roll-0/00000000000000000128.txnindex"
    assert index.rows == parse_transaction_index(whole.read_bytes()).rows[: len(index.rows)]
    assert [damage.reason for damage in index.damage] == [Reason.TRUNCATED]


@given(damaged([struct.pack(">hqqqqhqqqq", 0, 1, 2, 3, 4, 0, 5, 6, 7, 8)]))
@quick
def test_fuzz(data):
    index = parse_transaction_index(data)
    torn = [damage for damage in index.damage if damage.reason is Reason.TRUNCATED]
    assert len(index.rows) + len(index.damage) - len(torn) == len(data) // 34
    assert len(torn) == bool(len(data) % 34)
