"""Stores that die in the middle of a read, read by data sources: an error that names the path and the byte, and no rows for all."""

import pytest

from kaudit.errors import UnreadableInputError
from tests.source.dying import DEATHS, SEGMENT, dying
from tests.spark.in_process import load


@pytest.mark.parametrize(("store", "death"), DEATHS)
@pytest.mark.parametrize(
    "table", ["batches", "records", "runs", "findings", "timelines", "producers", "dedup", "diff", "ledger"]
)
def test_a_source_gives_an_error(store, death, table, request, tmp_path, monkeypatch):
    with dying(store, death, request, tmp_path, monkeypatch) as (url, said):
        copy = tmp_path / "root"
        paths = [url, copy] if table == "diff" else [url]
        more = {"target": str(copy)} if table == "ledger" else {}
        with pytest.raises((OSError, UnreadableInputError)) as caught:
            load(table, *paths, **more)
    text = str(caught.value)
    assert SEGMENT in text
    assert f"{said} (read from byte 0 on)" in text
    assert "\n" not in text
