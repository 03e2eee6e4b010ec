"""`kaudit diff --by records` as it is called: its first line, its formats, what it refuses."""

import json
import shutil

import jsonschema
import pyarrow.parquet
import pytest

from tests.commits import commit_log
from tests.formats import encoders
from tests.replica_sample import SAMPLES
from tests.report.test_json_schemas import DOCUMENT, validator

SIDES = [str(SAMPLES / "mirror" / side) for side in ("source", "target")]


def test_the_first_line_answers(kaudit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    shown = kaudit("diff", "--by", "records", *SIDES)
    assert shown.code == 1
    assert shown.out.splitlines()[0] == (
        "orders -> primary.orders: 1 source record missing on target (source offset 11), 4 twice (target 19..22), "
        "1 out of order within a key (target 27), 1 target record missing on source (target 33)"
    )


def test_equal_topics(kaudit):
    same = str(SAMPLES / "mirror" / "source" / "orders-0")
    shown = kaudit("diff", "--by", "records", "--name", f"a={SIDES[0]}", SIDES[0], same)
    assert (shown.code, shown.out) == (
        0,
        "1 topic with every record once on both sides; 34 records of the source and 34 of the target in 5.8 kB\n",
    )


def test_json_is_what_its_schema_says(kaudit):
    shown = kaudit("diff", "--by", "records", "--output-format", "json", *SIDES)
    document = json.loads(shown.out)
    validator(DOCUMENT).validate(document)
    (ledger,) = document["ledgers"]
    assert ledger["offset_map"][0] == {
        "source_partition": 0,
        "source_first_offset": 0,
        "source_last_offset": 10,
        "target_partition": 0,
        "target_first_offset": 0,
        "target_last_offset": 10,
        "records": 11,
    }
    del document["ledgers"][0]["missing_ranges"]
    with pytest.raises(jsonschema.ValidationError):
        validator(DOCUMENT).validate(document)


def test_tables(kaudit, tmp_path):
    kaudit("diff", "--by", "records", "--output-format", "parquet", "-o", str(tmp_path / "tables"), *SIDES)
    read = {
        name: pyarrow.parquet.read_table(tmp_path / "tables" / name).to_pylist()
        for name in ("record_ranges", "offset_map")
    }
    assert [(row["difference"], row["first_offset"], row["records"]) for row in read["record_ranges"]] == [
        ("missing", 11, 1),
        ("repeated", 19, 4),
        ("only-in-target", 33, 1),
        ("pending", 33, 1),
    ]
    assert sum(row["records"] for row in read["offset_map"]) == 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "records", SIDES[0]], "two inputs"),
        (["--by", "records", "--identity", "kye", *SIDES], "did you mean key"),
        (["--by", "records", "--redact", *SIDES], "--redact"),
        (["--by", "records", "--temporary-directory", "/no/such", *SIDES], "/no/such: No such file"),
        (["--by", "records", "--temporary-directory", SIDES[0], *SIDES], "where nothing is written"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(kaudit, arguments, message):
    shown = kaudit("diff", *arguments)
    assert shown.code == 2
    assert message in shown.err


def test_a_comparison_of_replicas_names_the_command(kaudit):
    shown = kaudit("diff", *SIDES)
    assert shown.code == 3
    assert f"kaudit diff --by records {SIDES[0]} {SIDES[1]}" in shown.err


@pytest.fixture
def with_groups(tmp_path):
    """The mirror of samples/, and __consumer_offsets beside its source."""
    for side in ("source", "target"):
        shutil.copytree(SAMPLES / "mirror" / side, tmp_path / side)
    place = tmp_path / "source" / "__consumer_offsets-0"
    place.mkdir()
    commits = [
        ("billing", "orders", 0, 16, 0),
        ("audit, old", "orders", 0, 11, 0),
        ("billing", "other", 0, 5, 0),
        ("at-end", "orders", 0, 34, 0),
    ]
    (place / f"{0:020d}.log").write_bytes(commit_log(commits, [("billing", "orders", 0, 25, 0)]))
    return [str(tmp_path / side) for side in ("source", "target")]


@pytest.mark.parametrize(
    ("groups", "lines"),
    [
        # order 25 is the target's 29th, behind what is there twice; 11 is missing, 12 comes next; 33 is not copied yet
        (["billing"], ["primary.orders,0,29"]),
        (["audit, old"], ["primary.orders,0,11"]),
        (["at-end"], ["primary.orders,0,37"]),
        (["billing", "audit, old"], ['"audit, old",primary.orders,0,11', "billing,primary.orders,0,29"]),
    ],
    ids=["one", "missing", "at the end", "several"],
)
def test_groups_go_on_where_they_were(kaudit, with_groups, tmp_path, groups, lines):
    named = [word for group in groups for word in ("--translate-group", group)]
    shown = kaudit("diff", "--by", "records", *named, "--offsets-file", tmp_path / "offsets.csv", *with_groups)
    assert shown.code == 1
    assert (tmp_path / "offsets.csv").read_text().splitlines() == lines
    assert ("other: was not compared" in shown.err) == ("billing" in groups)


def test_what_is_asked_of_groups_is_there(kaudit, with_groups, tmp_path):
    for arguments, message in (
        (["--translate-group", "nobody", "--offsets-file", str(tmp_path / "o.csv")], "has no commit of it"),
        (["--translate-group", "billing"], "belong together"),
    ):
        shown = kaudit("diff", "--by", "records", *arguments, *with_groups)
        assert (shown.code, message in shown.err) == (2, True)
    assert not (tmp_path / "o.csv").exists()


def test_paths_lead_into_what_a_schema_describes(kaudit, tmp_path):
    (tmp_path / "order.avsc").write_text(
        '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"at","type":"long"}]}'
    )
    for side, schema_id in (("source", 1), ("target", 2)):
        values = [
            bytes([0, 0, 0, 0, schema_id]) + encoders.varint(number) + encoders.varint(schema_id) for number in range(3)
        ]
        place = tmp_path / side / "orders-0"
        place.mkdir(parents=True)
        records = [encoders.record(at, 0, b"k", value) for at, value in enumerate([*values, b"\0"])]
        (place / f"{0:020d}.log").write_bytes(encoders.batch(records))
    sides = [str(tmp_path / side) for side in ("source", "target")]
    shown = kaudit("diff", "--by", "records", "--identity", "value:id", "--schema", tmp_path / "order.avsc", *sides)
    assert shown.code == 0
    assert "1 record without a part of value:id" in shown.out
    without = kaudit("diff", "--by", "records", "--identity", "value:id", "--topic", "orders", *sides)
    assert without.code == 1
    refused = kaudit("diff", "--by", "records", "--schema", tmp_path / "none.avsc", *sides)
    assert refused.code == 2


def copied(tmp_path, *, later=0, headers=()):
    """A record, and its copy with another time and other headers: the two directories."""
    for side, own, at in (("source", (), 0), ("target", headers, later)):
        place = tmp_path / side / "orders-0"
        place.mkdir(parents=True)
        (place / f"{0:020d}.log").write_bytes(encoders.batch([encoders.record(0, at, b"k", b"v", own)]))
    return [str(tmp_path / side) for side in ("source", "target")]


def test_copies_with_other_headers_are_the_same_but_for_these(kaudit, tmp_path):
    sides = copied(tmp_path, headers=[(b"__replicator_id", b"1")])
    shown = kaudit("diff", "--by", "records", *sides)
    assert shown.code == 0
    assert "1 record the same but for headers" in shown.out
    document = json.loads(kaudit("diff", "--by", "records", "--output-format", "json", *sides).out)
    assert (document["ledgers"][0]["but_for_headers"], document["ledgers"][0]["identity"]) == (1, "key,value,timestamp")


def test_nothing_in_common_suggests_another_identity(kaudit, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    sides = copied(tmp_path, later=7)
    shown = kaudit("diff", "--by", "records", *sides)
    assert shown.code == 1
    assert "no record on both by key,value,headers,timestamp" in shown.out
    assert kaudit("diff", "--by", "records", "--identity", "key,value,headers", *sides).code == 0
