"""Rows of `kaudit inspect` as tables: one header for rows of a kind that follow one another, nothing cut off."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kaudit.report.console import Console, Style, visible
from kaudit.report.text.fitting import GAP, Fitted, fit, notice
from kaudit.report.text.formatting import date_and_clock, span
from kaudit.source.inspect_columns import INSPECT_COLUMNS, INSPECT_TABLES

Row = Mapping[str, object]
_Column = tuple[str, Callable[[Row], str]]

_SAMPLE_ROWS = 500
"""Rows collected to find the widths of columns; wider later rows are shown whole."""
_HEADER = ("topic", "partition", "replica", "segment", "file", "row")
_HEX_CHARACTERS = 23
_NESTED = "    "
_DATE = "date"
_SAME = (_DATE, "magic", "codec", "headers", "leader epoch", "epoch", "producer", "kind", "read_committed", "copy")
"""Columns that a narrow terminal shows above the table where all rows have the same value."""
_DISPENSABLE = {
    "batch": ("codec", "magic", "crc", "size", "leader epoch", "records"),
    "duplicate": ("copy", "original's sequence", "original's producer", "sequence", "read_committed"),
}
"""Columns of a kind of row that are left out next, in this order."""
_IN_BATCHES = frozenset(
    {"record", "marker", "control", "txn_state", "offset_commit", "group_metadata", "internal_record", "metadata"}
)
"""Kinds of rows that belong to the batch above them."""


_OF_MANY = frozenset({"checkpoint", "event"})
"""Kinds of rows of files whose rows are about many partitions."""


def table(rows: Iterable[Row], console: Console) -> Iterator[str]:
    """Yield the text in pieces, in the order of the rows: each file is named once, and each kind of row has one header."""
    held: list[Row] = []
    section: _Section | None = None
    for row in rows:
        if held and (len(held) >= _SAMPLE_ROWS or _group(row) != _group(held[0])):
            section = _section_of(held[0], section)
            yield from section.lines(held, console)
            held = []
        held.append(row)
    if held:
        yield from _section_of(held[0], section).lines(held, console)


def _group(row: Row) -> tuple[object, ...]:
    """Return the key of the rows that share one heading: the rows of one segment or side file, or the files of a directory."""
    if row["row"] == "file":
        return "file", _directory(row)
    if row["row"] in _OF_MANY:
        return None, None, None, row.get("file")  # its entries are of many partitions
    return (*(row.get(name) for name in ("topic", "partition", "replica")), row.get("file") or row.get("segment"))


class _Section:
    """One segment or side file: columns and widths by kind of row, and which headers have been shown."""

    def __init__(self, row: Row, *, first: bool) -> None:
        self.group = _group(row)
        self._above = "" if first else "\n"
        self._title: str | None = _title(row)
        self._columns: dict[str, Sequence[_Column]] = {}
        self._fitted: dict[str, Fitted] = {}
        self._widths: dict[str, list[int]] = {}
        self._shown: set[str] = set()
        self._has_batches = False

    def lines(self, rows: Sequence[Row], console: Console) -> Iterator[str]:
        """Yield the lines of more rows of this file."""
        cells = self._measure(rows, console)
        yield self._above
        self._above = ""
        if self._title:
            yield console.paint(self._title, Style.STRONG) + "\n"
        self._title = None
        for row, line in zip(rows, cells, strict=True):
            kind = str(row["row"])
            indent = _NESTED if self._has_batches and kind in _IN_BATCHES else ""
            if kind not in self._shown:
                self._shown.add(kind)
                above = notice(self._fitted[kind], console.width)
                if above:
                    yield from (f"{console.paint(line, Style.FAINT)}\n" for line in console.wrap(above, lead=indent))
                header = _line([name for name, _ in self._columns[kind]], self._widths[kind])
                yield console.paint(indent + header, Style.FAINT) + "\n"
            style, text = _style(row), indent + _line(line, self._widths[kind])
            yield (text if style is None else console.paint(text, style)) + "\n"

    def _measure(self, rows: Sequence[Row], console: Console) -> list[list[str]]:
        """Return the cells of each row; columns grow to the widest cell, for each kind of row."""
        by_kind: dict[str, list[Row]] = {}
        for row in rows:
            by_kind.setdefault(str(row["row"]), []).append(row)
        self._has_batches = self._has_batches or "batch" in by_kind
        for kind, own in by_kind.items():
            indent = _NESTED if self._has_batches and kind in _IN_BATCHES else ""
            columns, fitted = _fitting(_COLUMNS.get(kind) or _all_columns(own), own, console, len(indent))
            known = self._fitted.get(kind)
            if known is None or set(fitted.shown) - set(known.shown) or fitted.common.items() - known.common.items():
                self._columns[kind], self._fitted[kind] = columns, fitted
                self._widths[kind] = [len(name) for name, _ in columns]
                self._shown.discard(kind)
        cells = [[cell(row) for _, cell in self._columns[str(row["row"])]] for row in rows]
        for row, line in zip(rows, cells, strict=True):
            widths = self._widths[str(row["row"])]
            widths[:] = [max(width, len(cell)) for width, cell in zip(widths, line, strict=True)]
        return cells


def _fitting(
    columns: Sequence[_Column], rows: Sequence[Row], console: Console, indent: int
) -> tuple[Sequence[_Column], Fitted]:
    """Choose the columns that fit the terminal; `rows` show which columns are the same throughout."""
    room = None if console.width is None else console.width - indent
    if room is None:
        return columns, Fitted([name for name, _ in columns], {}, ())
    if _width(columns, rows) <= room:
        return columns, Fitted([name for name, _ in columns], {}, ())
    columns = _date_apart(columns)
    dispensable = [
        name
        for name in _DISPENSABLE.get(str(rows[0]["row"]), ())
        if name != "crc" or all(row.get("crc_valid") for row in rows)
    ]
    fitted = fit({name: [cell(row) for row in rows] for name, cell in columns}, _SAME, dispensable, room)
    return [column for column in columns if column[0] in fitted.shown], fitted


def _width(columns: Sequence[_Column], rows: Sequence[Row]) -> int:
    return sum(max(len(name), *(len(cell(row)) for row in rows)) + len(GAP) for name, cell in columns) - len(GAP)


def _date_apart(columns: Sequence[_Column]) -> Sequence[_Column]:
    """Split a single column of times into date and clock: often all rows are of one day."""
    times = [name for name, _ in columns if name == "time (UTC)"]
    if len(times) != 1:
        return columns
    split: list[_Column] = []
    for name, cell in columns:
        if name in times:
            split.append((_DATE, lambda row, cell=cell: cell(row).rpartition(" ")[0] or "-"))  # type: ignore[misc]
            split.append((name, lambda row, cell=cell: cell(row).rpartition(" ")[2]))  # type: ignore[misc]
        else:
            split.append((name, cell))
    return split


def _section_of(row: Row, section: _Section | None) -> _Section:
    return section if section is not None and section.group == _group(row) else _Section(row, first=section is None)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _title(row: Row) -> str | None:
    if row["row"] == "file":
        return visible(_directory(row)) or None
    named = row.get("topic") is not None and row["row"] not in _OF_MANY
    parts = [f"{row['topic']}-{row['partition']}"] if named else []
    parts += [str(name) for name in (row.get("replica"), row.get("file") or row.get("segment")) if name is not None]
    return visible(" ".join(parts))


def _directory(row: Row) -> str:
    return str(row.get("file")).rpartition("/")[0]


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
    if isinstance(value, list | tuple):
        return visible(", ".join(map(str, value))) or "-"
    if isinstance(value, Mapping):
        return visible(", ".join(f"{key}={item}" for key, item in value.items())) or "-"
    return visible(str(value))


def _offsets(row: Row) -> str:
    first, last = row.get("base_offset"), row.get("last_offset")
    return f"..{last}" if first is None and last is not None else span(first, last)


def _lost(row: Row) -> str:
    first, last = row.get("first_missing_offset"), row.get("last_missing_offset")
    return f"{first}.." if first is not None and last is None else span(first, last)


def _kind(row: Row) -> str:
    control = row.get("control_type")
    if row.get("is_control"):
        if control in ("COMMIT", "ABORT"):
            return f"{control} marker"
        # a dump text without records does not show the type
        return str(control or ("emptied marker" if row.get("record_count") == 0 else "control"))
    return "txn" if row.get("is_transactional") else "-"


def _crc(row: Row) -> str:
    crc = row.get("crc")
    text = f"{crc:08x}" if isinstance(crc, int) else "-"
    return f"{text} BAD" if row.get("crc_valid") is False else text


def _bytes(name: str) -> Callable[[Row], str]:
    return lambda row: _bytes_text(row.get(name))


def _control_value(row: Row) -> str:
    """Return the fields of a control record; where they are not known, as they are printed, or its bytes."""
    if row.get("content") is not None:
        return _fields("content")(row)
    return _value(row) if row.get("control") is None else _text("control")(row)


def _value(row: Row) -> str:
    """Return a record's value, and why it was not decoded, if its topic is an internal one."""
    text = _bytes_text(row.get("value"))
    return text if row.get("error") is None else f"{text} ({visible(str(row['error']))})"


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


def _partitions(row: Row) -> str:
    """Topics with their partitions, as `orders-0,3`."""
    entries = row.get("partitions")
    if not isinstance(entries, list) or not entries:
        return "-"
    return visible(" ".join(f"{entry['topic']}-{','.join(map(str, entry['partitions']))}" for entry in entries))


def _metadata(row: Row) -> str:
    """Return what kaudit decodes of a metadata record: feature levels and blocks of producer ids."""
    if row.get("feature") is not None:
        return visible(f"{row['feature']} {row['feature_level']}")
    if row.get("next_producer_id") is not None:
        return f"broker {row['broker_id']}: ids up to {row['next_producer_id']}, exclusive"
    if row.get("error") is not None:
        return visible(str(row["error"]))
    return _fields("content")(row)


def _fields(name: str) -> Callable[[Row], str]:
    """Return a cell of a record's fields: `startOffset=3 stateBatches=[0..2 ACKNOWLEDGED x1]`."""

    def cell(row: Row) -> str:
        if row.get("tombstone") and name == "content":
            return "tombstone"
        fields = row.get(name)
        return visible(_fields_text(fields)) if isinstance(fields, dict) else "-"

    return cell


def _fields_text(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_field_text(value)}" for name, value in fields.items())


def _field_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_field_text, value))}]"
    if not isinstance(value, dict):
        return "-" if value is None else str(value)
    if set(value) == _STATE_BATCH:
        return "{firstOffset}..{lastOffset} {deliveryState} x{deliveryCount}".format(**value)
    return _bytes_text(value) if set(value) == _SHOWN_BYTES else f"{{{_fields_text(value)}}}"


_STATE_BATCH = {"firstOffset", "lastOffset", "deliveryState", "deliveryCount"}
_SHOWN_BYTES = {"text", "encoding", "size", "truncated"}


def _hex(row: Row) -> str:
    """Return the bytes of a field, of a long one the first eight."""
    text = str(row.get("hex"))
    return text if len(text) <= _HEX_CHARACTERS else text[:_HEX_CHARACTERS] + "…"


def _producer(prefix: str) -> Callable[[Row], str]:
    """Producer id and epoch, as `4000/0`."""

    def cell(row: Row) -> str:
        producer_id = row.get(f"{prefix}producer_id")
        return "-" if producer_id is None else f"{producer_id}/{row.get(f'{prefix}producer_epoch')}"

    return cell


def _dropped(name: str) -> Callable[[Row], str]:
    """Return a cell that says what a consumer that deduplicates does with the duplicate."""

    def cell(row: Row) -> str:
        if not row.get(name):
            return "?" if row.get(name) is None else "twice"
        return "dropped" if row.get("repeats") else "LOST"

    return cell


def _columns(*chosen: str | _Column) -> Sequence[_Column]:
    """Columns by their names, under the headings of the table of columns, and others as they are."""
    return [(_heading(column), _text(column)) if isinstance(column, str) else column for column in chosen]


def _heading(name: str) -> str:
    column = INSPECT_COLUMNS.get(name)
    return name.replace("_", " ") if column is None or column.heading is None else column.heading


def _all_columns(rows: Sequence[Row]) -> Sequence[_Column]:
    """Return all columns of a kind of row: those of the table of columns, then further fields of the rows."""
    found = dict.fromkeys(name for row in rows for name in row if name not in _HEADER)
    known = [name for name in INSPECT_TABLES.get(str(rows[0]["row"]), ()) if name in found]
    return [(name.replace("_", " "), _text(name)) for name in dict.fromkeys([*known, *found])]


_PLACE: _Column = (
    "partition",
    lambda row: "-" if row.get("topic") is None else visible(f"{row.get('topic')}-{row.get('partition')}"),
)
_COLUMNS: Mapping[str, Sequence[_Column]] = {
    "file": _columns(
        ("file", lambda row: visible(str(row.get("file")).rpartition("/")[2])),
        "size",
        "status",
        ("offset", lambda row: span(row.get("first_offset"), row.get("last_offset"))),
        "entries",
        "detail",
    ),
    "batch": _columns(
        "position",
        "size",
        ("offset", _offsets),
        "record_count",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        ("sequence", lambda row: span(row.get("base_sequence"), row.get("last_sequence"))),
        "leader_epoch",
        ("kind", _kind),
        "codec",
        "magic",
        ("crc", _crc),
    ),
    "duplicate": _columns(
        ("offset", lambda row: span(row.get("offset"), row.get("last_offset"))),
        ("original", lambda row: span(row.get("original_offset"), row.get("original_last_offset"))),
        "timestamp",
        ("producer", _producer("")),
        ("sequence", _text("sequence")),
        ("original's producer", _producer("original_")),
        ("original's sequence", _text("original_sequence")),
        ("copy", _text("copy")),
        ("read_committed", _text("read_committed")),
        ("relation", _text("relation")),
        ("by key", _dropped("dropped_by_key")),
        ("by sequence", _dropped("dropped_by_sequence")),
    ),
    "record": _columns(
        "offset",
        "timestamp",
        "producer_id",
        "producer_epoch",
        "sequence",
        ("key", _bytes("key")),
        ("value", _value),
        ("headers", _headers),
    ),
    "damage": _columns("position", "size", ("damage", _text("kind")), ("offsets lost", _lost), "detail", "broker"),
    "marker": _columns(
        "offset", "timestamp", "producer_id", "producer_epoch", ("marker", _text("control_type")), "coordinator_epoch"
    ),
    "txn_state": _columns(
        "offset",
        "transactional_id",
        ("state", lambda row: "tombstone" if row.get("tombstone") else _shown("status", row.get("status"))),
        "producer_id",
        "producer_epoch",
        "last_update_timestamp",
        "start_timestamp",
        "transaction_timeout_ms",
        ("partitions", _partitions),
    ),
    "offset_commit": _columns(
        "offset",
        "group",
        ("partition", lambda row: visible(f"{row.get('committed_topic')}-{row.get('committed_partition')}")),
        ("commits", lambda row: "tombstone" if row.get("tombstone") else _shown("", row.get("committed_offset"))),
        "committed_leader_epoch",
        "commit_timestamp",
        "metadata",
    ),
    "internal_record": _columns(
        "offset", "timestamp", "name", ("key", _fields("identity")), ("content", _fields("content"))
    ),
    "control": _columns(
        "offset",
        "timestamp",
        "control_type",
        ("type id", _text("type_id")),
        ("key", _bytes("key")),
        ("value", _control_value),
    ),
    "metadata": _columns("offset", "timestamp", "api_key", "version", "name", ("content", _metadata)),
    "group_metadata": _columns(
        "offset",
        "group",
        ("generation", lambda row: "tombstone" if row.get("tombstone") else _shown("", row.get("generation"))),
        "protocol",
        "leader",
        "members",
    ),
    "checkpoint": _columns(_PLACE, "offset"),
    "event": _columns(
        *("line", "timestamp", "level", "event", _PLACE, "producer_id", "producer_epoch", "base_sequence", "offset"),
        *("transactional_id", "error", ("text", lambda row: visible(str(row.get("text")).partition("\n")[0]))),
    ),
    "field": _columns(
        ("", lambda row: ">" if row.get("here") else ""),
        "position",
        "length",
        "field",
        ("hex", _hex),
        ("value", _text("value")),
        "meaning",
    ),
}
