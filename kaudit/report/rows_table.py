"""Rows of `kaudit inspect` as tables: one header for rows of a kind that follow one another, nothing cut off."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kaudit.report.console import Console, Style, visible
from kaudit.report.moment import date_and_clock
from kaudit.report.phrases import span

Row = Mapping[str, object]
_Column = tuple[str, Callable[[Row], str]]

_SAMPLE_ROWS = 500
"""Rows held back to find the widths of columns; later ones may be wider and are then shown whole."""
_PLACE = ("topic", "partition", "replica", "segment", "file", "row")
_GAP = "  "


def table(rows: Iterable[Row], console: Console) -> Iterator[str]:
    """Yield the text in pieces, in the order of the rows."""
    held: list[Row] = []
    widths: list[int] = []
    heading: object = None
    for row in rows:
        if held and (len(held) >= _SAMPLE_ROWS or _group(row) != _group(held[0])):
            yield from _block(held, widths, console, with_header=_group(held[0]) != heading)
            heading = _group(held[0])
            if _group(row) != heading:
                widths = []
            held = []
        held.append(row)
    if held:
        yield from _block(held, widths, console, with_header=_group(held[0]) != heading)


def _group(row: Row) -> tuple[object, ...]:
    if row["row"] == "file":
        return ("file",)
    return (row["row"], *(row.get(name) for name in ("topic", "partition", "replica", "segment", "file")))


def _block(rows: Sequence[Row], widths: list[int], console: Console, *, with_header: bool) -> Iterator[str]:
    columns = _COLUMNS.get(str(rows[0]["row"])) or _plain_columns(rows)
    cells = [[cell(row) for _, cell in columns] for row in rows]
    if not widths:
        widths += [len(name) for name, _ in columns]
    widths[:] = [max(width, *(len(line[index]) for line in cells)) for index, width in enumerate(widths)]
    if with_header:
        place = _place(rows[0])
        if place:
            yield console.paint(place, Style.STRONG) + "\n"
        header = _GAP.join(name.ljust(width) for (name, _), width in zip(columns, widths, strict=True))
        yield console.paint(header.rstrip(), Style.FAINT) + "\n"
    for row, line in zip(rows, cells, strict=True):
        text = _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        style = _style(row)
        yield (text if style is None else console.paint(text, style)) + "\n"


def _place(row: Row) -> str:
    if row["row"] == "file":
        return ""
    parts = [f"{row['topic']}-{row['partition']}"] if row.get("topic") is not None else []
    parts += [str(name) for name in (row.get("replica"), row.get("file") or row.get("segment")) if name is not None]
    return visible(f"{' '.join(parts)}: {str(row['row']).replace('_', ' ')}")


def _style(row: Row) -> Style | None:
    if row["row"] == "damage" or row.get("crc_valid") is False or row.get("status") in ("damaged", "unreadable"):
        return Style.ERROR
    return Style.STRONG if row.get("here") else None


def _text(name: str) -> Callable[[Row], str]:
    return lambda row: _shown(name, row.get(name))


def _shown(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name.endswith("timestamp") and isinstance(value, int):
        return " ".join(date_and_clock(value)).strip()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(str(value))


def _offsets(row: Row) -> str:
    first, last = row.get("base_offset"), row.get("last_offset")
    return f"..{last}" if first is None and last is not None else span(first, last)


def _kind(row: Row) -> str:
    control = row.get("control_type")
    if row.get("is_control"):
        return f"{control or 'emptied'} marker"
    return "txn" if row.get("is_transactional") else "-"


def _crc(row: Row) -> str:
    crc = row.get("crc")
    text = f"{crc:08x}" if isinstance(crc, int) else "-"
    return f"{text} BAD" if row.get("crc_valid") is False else text


def _bytes(name: str) -> Callable[[Row], str]:
    return lambda row: _bytes_text(row.get(name))


def _bytes_text(shown: object) -> str:
    if not isinstance(shown, Mapping):
        return "null"
    size = shown["size"]
    if shown["text"] is None:
        return f"({size} bytes)"
    text = visible(str(shown["text"]))
    if shown["encoding"] == "hex":
        text = f"0x{text}"
    return f"{text}… ({size} bytes)" if shown["truncated"] else text or "''"


def _headers(row: Row) -> str:
    headers = row.get("headers")
    if not isinstance(headers, list) or not headers:
        return "-"
    return ", ".join(f"{visible(str(header['key']))}={_bytes_text(header['value'])}" for header in headers)


def _here(row: Row) -> str:
    return ">" if row.get("here") else ""


def _plain_columns(rows: Sequence[Row]) -> list[_Column]:
    names = dict.fromkeys(name for row in rows for name in row if name not in _PLACE)
    return [(name.replace("_", " "), _text(name)) for name in names]


_COLUMNS: Mapping[str, Sequence[_Column]] = {
    "file": [
        ("file", _text("file")),
        ("kind", _text("kind")),
        ("size", _text("size")),
        ("status", _text("status")),
        ("first offset", _text("first_offset")),
        ("last offset", _text("last_offset")),
        ("entries", _text("entries")),
        ("detail", _text("detail")),
    ],
    "batch": [
        ("byte", _text("position")),
        ("size", _text("size")),
        ("offset", _offsets),
        ("records", _text("record_count")),
        ("time (UTC)", _text("max_timestamp")),
        ("producer", _text("producer_id")),
        ("epoch", _text("producer_epoch")),
        ("sequence", lambda row: span(row.get("base_sequence"), row.get("last_sequence"))),
        ("leader epoch", _text("leader_epoch")),
        ("kind", _kind),
        ("codec", _text("codec")),
        ("magic", _text("magic")),
        ("crc", _crc),
    ],
    "record": [
        ("offset", _text("offset")),
        ("time (UTC)", _text("timestamp")),
        ("producer", _text("producer_id")),
        ("epoch", _text("producer_epoch")),
        ("sequence", _text("sequence")),
        ("key", _bytes("key")),
        ("value", _bytes("value")),
        ("headers", _headers),
    ],
    "field": [
        ("", _here),
        ("byte", _text("position")),
        ("length", _text("length")),
        ("field", _text("field")),
        ("hex", _text("hex")),
        ("value", _text("value")),
        ("meaning", _text("meaning")),
    ],
}
