"""`kaudit diff --by records` as it is called: its first line, its formats, what it refuses."""

import json

import jsonschema
import pyarrow.parquet
import pytest

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
        (["--by", "records", "--engine", "spark", *SIDES], "--engine spark"),
        (["--by", "records", "--fingerprint", *SIDES], "neither fingerprints"),
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
