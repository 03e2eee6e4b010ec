"""A text in any form as a file of plain lines: reads anywhere give what one pass gives, in bounded memory."""

import random
import tracemalloc

import pytest

from kaudit.formats.dump_text.partial_rows import ROW_START
from kaudit.formats.plain_text.forms import PLAIN
from kaudit.source import plain_text as module
from kaudit.source.bytes import HeldBytes
from kaudit.source.plain_text import PlainText, plain_text
from tests.formats.text_forms import ENCODINGS, JSON_SHAPES, PREFIXES, PRINTED, in_json, prefixed, printed

ROWS = "".join(
    f"baseOffset: {n} lastOffset: {n} count: 1 position: {70 * n}\n| offset: {n} CreateTime: 1 payload: v{n} \u00e9\n"
    for n in range(60)
).encode()
FORMS = {
    **ENCODINGS,
    **{name: prefixed(name) for name in PREFIXES},
    **{name: in_json(name) for name in JSON_SHAPES},
}


def held(text):
    return HeldBytes(memoryview(text))


def read(source, position, length):
    buffer = bytearray(length)
    return bytes(buffer[: source.read_into(position, memoryview(buffer))])


@pytest.mark.parametrize("block_bytes", [1 << 20, 4096, 600])
@pytest.mark.parametrize("name", FORMS)
def test_plain_lines_come_back_wherever_reading_begins(monkeypatch, name, block_bytes):
    monkeypatch.setattr(module, "_BLOCK_BYTES", block_bytes)
    text, form = plain_text(held(FORMS[name](ROWS)), ROW_START)
    assert form != PLAIN
    whole = read(text, 0, 1 << 20)
    assert whole.rstrip(b"\n") == ROWS.rstrip(b"\n")
    assert text.size() == len(whole)
    again = PlainText(held(FORMS[name](ROWS)), form)
    draw = random.Random(1)
    for _ in range(50):
        at = draw.randrange(len(whole) + 20)
        assert read(again, at, 100) == whole[at : at + 100]


@pytest.mark.parametrize("printer", PRINTED)
def test_rows_in_objects_over_several_lines_come_back(monkeypatch, printer):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 2000)
    for shape in JSON_SHAPES:
        text, _ = plain_text(held(printed(printer, shape)(ROWS)), ROW_START)
        whole = read(text, 0, 1 << 20)
        assert [line for line in whole.splitlines() if ROW_START.match(line)] == ROWS.splitlines(), shape
        assert read(text, 1000, 500) == whole[1000:1500]


def test_a_plain_text_is_read_as_it_is():
    source = held(ROWS)
    assert plain_text(source, ROW_START) == (source, PLAIN)


@pytest.mark.parametrize("form", ["quoted", "utf-16", "docker json-file"])
def test_a_line_of_megabytes_is_read_in_bounded_memory(form):
    text = FORMS[form](ROWS + b"| offset: 9 CreateTime: 1 payload: " + b"x" * (10 << 20) + b"\n" + ROWS)
    source, _ = plain_text(held(text), ROW_START)
    tracemalloc.start()
    size = source.size()
    assert read(source, size - len(ROWS), len(ROWS)).rstrip(b"\n") == ROWS.rstrip(b"\n")
    assert tracemalloc.get_traced_memory()[1] < 24 << 20
    tracemalloc.stop()
    assert size > 10 << 20
