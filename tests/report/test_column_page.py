"""docs/columns.md is as generated, and the table of columns is consistent."""

from pathlib import Path

from kaudit.model.table_columns import DUPLICATE_COLUMNS, DUPLICATE_TABLES, SCAN_COLUMNS, SCAN_TABLES
from kaudit.report.text import generated_pages
from kaudit.source.inspect_columns import INSPECT_COLUMNS, INSPECT_TABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_every_column_is_described_and_used():
    for tables, columns in (
        (SCAN_TABLES, SCAN_COLUMNS),
        (INSPECT_TABLES, INSPECT_COLUMNS),
        (DUPLICATE_TABLES, DUPLICATE_COLUMNS),
    ):
        assert {name for names in tables.values() for name in names} == set(columns)
        assert all(len(set(names)) == len(names) for names in tables.values())


def test_the_page_about_tables_names_every_table():
    text = (DOCS / "tables.md").read_text(encoding="utf-8")
    assert all(f"| `{table}/` |" in text for table in SCAN_TABLES)


def test_the_schema_has_every_field_of_a_finding():
    schema = Path(generated_pages.__file__).parents[1] / "machine/schemas/json.schema.json"
    text = schema.read_text(encoding="utf-8")
    assert generated_pages.schema_with_finding(text) == text
