"""Text of many rows at once: numbers, choices and rows that lack a piece, against Python's own formatting."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.engines.local import timeline
from kaudit.engines.progress import SilentProgress
from kaudit.listings import timeline as timelines
from kaudit.model import timeline as model
from kaudit.report.console import Console
from kaudit.report.machine import history_json
from kaudit.report.render_options import RenderOptions
from kaudit.report.text import concise, history_cells
from kaudit.report.text import timeline as timeline_blocks
from kaudit.report.text.text_rows import by_value, digits_of, number, spaces, text_of_rows, texts, where, without
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data, marker
from tests.rendered import timeline_text

INT64 = st.integers(-(2**63), 2**63 - 1)
EDGES = st.sampled_from([sign * (10**power + add) for power in range(19) for add in (-1, 0, 1) for sign in (-1, 1)])


def lines(length, *pieces):
    return text_of_rows(length, [*pieces, b"\n"]).splitlines()


@given(st.lists(INT64 | EDGES, min_size=1, max_size=20))
def test_numbers_are_those_of_str(numbers):
    values = np.array(numbers, dtype=np.int64)
    written = [str(value) for value in numbers]
    assert lines(len(numbers), *number(values)) == written
    assert digits_of(values).tolist() == [len(text) for text in written]
    assert lines(len(numbers), by_value(values, "{:,}".format)) == [f"{value:,}" for value in numbers]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=20))
def test_pieces_stand_in_their_rows_only(rows):
    mask = np.array([chosen for chosen, _ in rows])
    counts = np.array([count for _, count in rows])
    names = texts(f"é{count}" for _, count in rows)
    pieces = [*where(mask, [b"in ", names[mask]]), *without(mask, [b"out ", names]), spaces(counts), b"|"]
    expected = [f"{'in' if chosen else 'out'} é{count}{' ' * count}|" for chosen, count in rows]
    assert lines(len(rows), *pieces) == expected


@pytest.mark.parametrize(("form", "console"), [
    ("table", Console()), ("table", Console(color=True, width=60)), ("concise", Console()),
    ("json", Console()), ("jsonl", Console()),
])  # fmt: skip
def test_a_text_is_the_same_however_many_rows_are_written_together(tmp_path, monkeypatch, form, console):
    log = Log()
    for number_ in range(120):
        log.append(data(number_ % 7, 0, number_ if number_ % 5 else 0, transactional=number_ % 7 == 3, payload=b"x"))
        if number_ % 14 == 3:
            log.append(marker(3, 0, commit=number_ % 4 == 3))
        log.skip(number_ % 3)
    log.write(tmp_path / "t-0")

    def text():
        made = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
        return timeline_text(form, made, RenderOptions(console=console))

    at_once = text()
    assert len(re.findall(r'producer(?:_id":)? 6', at_once)) >= 1
    sizes = []

    def counting(length, pieces):
        sizes.append(length)
        return text_of_rows(length, pieces)

    for module in (concise, history_json, timeline_blocks):
        monkeypatch.setattr(module, "text_of_rows", counting)
    for module in (model, history_cells, timelines):
        monkeypatch.setattr(module, "AT_ONCE", 5)
    monkeypatch.setattr(history_json, "_AT_ONCE", 5)
    assert text() == at_once
    assert max(sizes) <= 10
    assert len(sizes) > 20
