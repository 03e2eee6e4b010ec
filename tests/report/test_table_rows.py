"""Results as rows of tables: timelines, producers, blocks and digests, every column."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kaudit.model.digests import Digests, PartitionDigest, RangeDigests
from kaudit.model.producer_listing import GrantedBlock, ProducerState
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.report.json_documents import pretty, producers_document
from kaudit.report.machine.parquet import columns_to_ipc
from kaudit.report.machine.tables import (
    block_row,
    digest_row,
    finding_row,
    producer_row,
    producer_rows,
    producers_tables,
    scan_tables,
    timeline_columns,
)
from kaudit.report.render_options import RenderOptions
from tests import scan_results as results


def test_entries_of_timelines():
    (histories,) = results.timeline_result().histories
    columns = timeline_columns(histories)
    assert set(columns) == set(SCAN_TABLES["timelines"])
    table = pa.ipc.open_stream(columns_to_ipc("timelines", columns)).read_all()
    known = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    plain, rows = known[:-5], known[-5:]
    place = {"topic": "orders", "partition": 3, "replica": "1", "producer_id": 2000, "transactional_id": "payments-1"}
    assert all(row.items() >= place.items() for row in rows)
    assert [row["entry"] for row in rows] == [0, 1, 2, 3, 4]
    names = ("kind", "first_offset", "last_offset", "min_timestamp", "max_timestamp", "marker")
    morning = results.MORNING

    def at(ms):
        return datetime.fromtimestamp((morning + ms) / 1000, tz=UTC)

    assert [tuple(row.get(name) for name in names) for row in rows] == [
        ("run", 10, 19, at(0), at(900), None),
        ("marker", 20, 20, at(1000), at(1000), "COMMIT"),
        ("run", 21, 22, at(2000), at(2900), None),
        ("marker", 23, 23, at(3000), at(3000), "ABORT"),
        ("run", 30, 31, at(4000), at(4900), None),
    ]
    assert [(row.get("transaction_first_offset"), row.get("transaction_outcome")) for row in rows] == [
        (10, "committed"), (None, None), (21, "aborted"), (None, None), (30, "open"),
    ]  # fmt: skip
    assert [row.get("coordinator_epoch") for row in rows] == [None, 3, None, 3, None]
    assert all("transaction_outcome" not in row for row in plain)
    assert (plain[-2]["first_offset"], plain[-2]["last_offset"], plain[-2]["cause"]) == (517, 520, "compaction")
    assert "min_timestamp" not in plain[-2]
    assert "transactional_id" not in plain[0]
    assert {row["entry"] for row in plain} == set(range(len(plain)))


def test_a_producer_in_a_partition():
    state = ProducerState(4, 0, 1017, 0, -1, -1)
    part = results.place("orders", 3, 5, 1020, epochs=5, batches=7, records=11, state=state)
    assert producer_row(900, "pay", part) == {
        "producer_id": 900, "transactional_id": "pay", "producer_epoch": 4, "last_sequence": 0, "last_offset": 1020,
        "state_last_offset": 1017, "last_timestamp": 0, "coordinator_epoch": None, "current_txn_start_offset": None,
        "topic": "orders", "partition": 3, "replica": "1", "first_offset": 5, "batches": 7, "records": 11, "epochs": 5,
    }  # fmt: skip
    assert set(producer_row(900, "pay", part)) == set(SCAN_TABLES["producers"])
    rows = list(producer_rows(results.producers_result().producers))
    assert [(row["producer_id"], row["topic"], row["partition"]) for row in rows] == [
        (7, "orders", 3), (1000, "orders", 3), (1000, "orders", 4), (900_001, "payments", 0),
    ]  # fmt: skip


def test_a_block():
    assert block_row(GrantedBlock(1000, 1999, 2, 5, 77, "zk")) == {
        "first_producer_id": 1000, "last_producer_id": 1999, "broker": 2, "version": 5, "granted_at": 77, "source": "zk",
    }  # fmt: skip


DIGEST = PartitionDigest("t", 0, "1", 0, 5, 2, "a" * 64, RangeDigests(0, 1024, ["a" * 64, None]), True, False)


def test_a_digest():
    row = digest_row(DIGEST)
    assert (row["algorithm"], row["topic"], row["digest"], row["compacted"]) == (
        "kaudit.fingerprint/1",
        "t",
        "a" * 64,
        True,
    )
    assert json.loads(str(row["ranges"])) == {"first_offset": 0, "width": 1024, "digests": ["a" * 64, None]}


def test_what_has_tables_of_its_own_is_not_in_the_manifest():
    plain = scan_tables(results.many(), RenderOptions(run={"host": "h"}))
    assert set(plain.rows) == {"findings", "partitions", "segments"}
    assert [row["code"] for row in plain.rows["findings"]] == ["KA106", "KA102", "KA001", "KA203"]
    assert not {"partitions", "baseline", "digests"} & set(plain.manifest)
    assert plain.manifest["schema"] == "kaudit.tables/1"
    assert plain.manifest["run"] == {"host": "h"}
    judged = results.scan_result(digests=Digests("kaudit.fingerprint/1", [DIGEST]))
    assert [row["topic"] for row in scan_tables(judged, RenderOptions()).rows["digests"]] == ["t"]
    listed = producers_tables(results.producers_result(), RenderOptions())
    assert (len(listed.rows["producers"]), len(listed.rows["blocks"]), len(listed.rows["findings"])) == (4, 3, 2)


def test_nested_values_of_a_finding_are_json():
    row = finding_row(results.old_duplicate())
    for name in ("evidence", "explanations", "impact", "known_bugs", "next", "absent"):
        assert row[name] == json.dumps(json.loads(str(row[name])), sort_keys=True)
    assert json.loads(str(row["impact"])) == {"records_duplicated": 5, "records_duplicated_at_most": 5}
    assert (row["offset"], row["fingerprint"]) == (512, results.old_duplicate().fingerprint)


@pytest.mark.parametrize(("at_ms", "shown"), [
    (None, None), (0, "1970-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    # no calendar has it
    (253_402_300_800_000, 253_402_300_800_000),
])  # fmt: skip
def test_when_a_block_was_granted(at_ms, shown):
    granted = results.producers_result(blocks=[GrantedBlock(0, 999, 1, None, at_ms, "zk")])
    document = json.loads(pretty(producers_document(granted, RenderOptions())))
    assert [block["at"] for block in document["blocks"]] == [shown]
