"""Every output that has findings has all of their fields, but for those that it lists as omitted."""

import json

import pytest
from msgspec.structs import replace

from kaudit.model.finding import JSON_OMITS, Finding
from kaudit.model.table_columns import AUDIT_COLUMNS, DATAFRAME_TABLES, SCAN_COLUMNS, SCAN_TABLES
from kaudit.report.html.finding_rows import PAGE_FACTS, PAGE_OMITS, PAGE_PLACES
from kaudit.report.html.page_model import FindingRow
from kaudit.report.machine.sarif import PROPERTIES, SARIF_OMITS
from kaudit.report.machine.tables import finding_row
from tests import scan_results as results

FIELDS = frozenset(Finding.__struct_fields__)
FINDING = results.old_duplicate()


@pytest.mark.parametrize(
    ("columns", "omitted"),
    [
        (set(FINDING.to_dict()), JSON_OMITS),
        (set(finding_row(FINDING)), JSON_OMITS),
        (set(SCAN_TABLES["findings"]), JSON_OMITS),
        (set(DATAFRAME_TABLES["findings"]) - set(AUDIT_COLUMNS), JSON_OMITS),
        (set(PROPERTIES), SARIF_OMITS),
        ({*PAGE_PLACES, *PAGE_FACTS}, PAGE_OMITS),
    ],
    ids=["json", "row", "parquet", "dataframe", "sarif", "page"],
)
def test_columns_and_omissions_are_the_fields_of_a_finding(columns, omitted):
    assert not columns & set(omitted)
    assert (columns | set(omitted)) - {"fingerprint"} == FIELDS


def test_a_field_of_the_page_is_a_field_of_its_row():
    assert set(PAGE_PLACES.values()) <= set(FindingRow.__struct_fields__)


def test_what_nests_is_json_in_a_table_of_text():
    row = finding_row(replace(FINDING, next=("a", "b")))
    assert row["next"] == '["a", "b"]'
    assert json.loads(str(row["evidence"])) == FINDING.to_dict()["evidence"]
    assert {SCAN_COLUMNS[name].type for name, value in FINDING.to_dict().items() if isinstance(value, dict | list)} == {
        "string"
    }
