"""Rows of `kaudit inspect` as tables: one header for rows of a kind that follow one another, nothing cut off."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kaudit.model.grouping import grouped
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.fitting import GAP, Fitted, aligned, fit, notice
from kaudit.report.text.formatting import span
from kaudit.report.text.inspect_cells import (
    Row,
    bytes_cell,
    control_value_cell,
    crc_cell,
    dropped_cell,
    fields_cell,
    headers_cell,
    hex_cell,
    kind_cell,
    lost_cell,
    metadata_cell,
    offsets_cell,
    partitions_cell,
    producer_cell,
    shown,
    text_cell,
    value_cell,
)
from kaudit.source.inspect_columns import INSPECT_COLUMNS, INSPECT_TABLES

_Column = tuple[str, Callable[[Row], str]]

_SAMPLE_ROWS = 500
"""Rows collected to find the widths of columns; wider later rows are shown whole."""
_HEADER = ("topic", "partition", "replica", "segment", "file", "row")
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
                header = aligned([name for name, _ in self._columns[kind]], self._widths[kind])
                yield console.paint(indent + header, Style.FAINT) + "\n"
            style, text = _style(row), indent + aligned(line, self._widths[kind])
            yield (text if style is None else console.paint(text, style)) + "\n"

    def _measure(self, rows: Sequence[Row], console: Console) -> list[list[str]]:
        """Return the cells of each row; columns grow to the widest cell, for each kind of row."""
        by_kind = grouped((str(row["row"]), row) for row in rows)
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


def _columns(*chosen: str | _Column) -> Sequence[_Column]:
    """Columns by their names, under the headings of the table of columns, and others as they are."""
    return [(_heading(column), text_cell(column)) if isinstance(column, str) else column for column in chosen]


def _heading(name: str) -> str:
    column = INSPECT_COLUMNS.get(name)
    return name.replace("_", " ") if column is None or column.heading is None else column.heading


def _all_columns(rows: Sequence[Row]) -> Sequence[_Column]:
    """Return all columns of a kind of row: those of the table of columns, then further fields of the rows."""
    found = dict.fromkeys(name for row in rows for name in row if name not in _HEADER)
    known = [name for name in INSPECT_TABLES.get(str(rows[0]["row"]), ()) if name in found]
    return [(name.replace("_", " "), text_cell(name)) for name in dict.fromkeys([*known, *found])]


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
        ("offset", offsets_cell),
        "record_count",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        ("sequence", lambda row: span(row.get("base_sequence"), row.get("last_sequence"))),
        "leader_epoch",
        ("kind", kind_cell),
        "codec",
        "magic",
        ("crc", crc_cell),
    ),
    "duplicate": _columns(
        ("offset", lambda row: span(row.get("offset"), row.get("last_offset"))),
        ("original", lambda row: span(row.get("original_offset"), row.get("original_last_offset"))),
        "timestamp",
        ("producer", producer_cell("")),
        ("sequence", text_cell("sequence")),
        ("original's producer", producer_cell("original_")),
        ("original's sequence", text_cell("original_sequence")),
        ("copy", text_cell("copy")),
        ("read_committed", text_cell("read_committed")),
        ("relation", text_cell("relation")),
        ("by key", dropped_cell("dropped_by_key")),
        ("by sequence", dropped_cell("dropped_by_sequence")),
    ),
    "record": _columns(
        "offset",
        "timestamp",
        "producer_id",
        "producer_epoch",
        "sequence",
        ("key", bytes_cell("key")),
        ("value", value_cell),
        ("headers", headers_cell),
    ),
    "damage": _columns(
        "position", "size", ("damage", text_cell("kind")), ("offsets lost", lost_cell), "detail", "broker"
    ),
    "marker": _columns(
        "offset",
        "timestamp",
        "producer_id",
        "producer_epoch",
        ("marker", text_cell("control_type")),
        "coordinator_epoch",
    ),
    "txn_state": _columns(
        "offset",
        "transactional_id",
        ("state", lambda row: "tombstone" if row.get("tombstone") else shown("status", row.get("status"))),
        "producer_id",
        "producer_epoch",
        "last_update_timestamp",
        "start_timestamp",
        "transaction_timeout_ms",
        ("partitions", partitions_cell),
    ),
    "offset_commit": _columns(
        "offset",
        "group",
        ("partition", lambda row: visible(f"{row.get('committed_topic')}-{row.get('committed_partition')}")),
        ("commits", lambda row: "tombstone" if row.get("tombstone") else shown("", row.get("committed_offset"))),
        "committed_leader_epoch",
        "commit_timestamp",
        "metadata",
    ),
    "internal_record": _columns(
        "offset", "timestamp", "name", ("key", fields_cell("identity")), ("content", fields_cell("content"))
    ),
    "control": _columns(
        "offset",
        "timestamp",
        "control_type",
        ("type id", text_cell("type_id")),
        ("key", bytes_cell("key")),
        ("value", control_value_cell),
    ),
    "metadata": _columns("offset", "timestamp", "api_key", "version", "name", ("content", metadata_cell)),
    "group_metadata": _columns(
        "offset",
        "group",
        ("generation", lambda row: "tombstone" if row.get("tombstone") else shown("", row.get("generation"))),
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
        ("hex", hex_cell),
        ("value", text_cell("value")),
        "meaning",
    ),
}
