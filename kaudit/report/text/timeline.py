"""`kaudit timeline --output-format table`: a picture of each partition, a block per producer id in offset order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np

from kaudit.model.finding import Finding
from kaudit.model.result import TimelineResult
from kaudit.model.timeline import NONE, OTHER, RUN, FindingEntry, Histories
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import headline_lines, partition_of, producer_of, span
from kaudit.report.text.history_cells import HistoryCells, Numbers, cells_of, dates_of, days_of, in_calendar
from kaudit.report.text.not_checked import closing_sections, text_pieces, verdict_section
from kaudit.report.text.text_rows import Mask, Piece, number, spaces, text_of_rows, texts, where, without
from kaudit.report.text.timeline_lanes import lane_lines
from kaudit.results.scope import extent

_HEADINGS = ("offset", "event", "epoch", "sequence", "time (UTC)")
_STYLES = {
    "COMMIT": Style.GOOD,
    "ABORT": Style.WARNING,
    "missing": Style.ERROR,
    "open since ": Style.WARNING,
    "fences epoch ": Style.NOTE,
}
"""Events, and beginnings of details, in their colours."""
_GAP = "  "
_INDENT = "  "
_END = "  end state: "
_MARKS = b"\1", b"\2", b"\3", b"\4"
"""Begin titles, faint lines, rows and end states that are for a terminal."""
_COLUMN = b"\5"


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield the report as text, a block of lines at a time."""
    return text_pieces(_sections(result, options))


def _sections(result: TimelineResult, options: RenderOptions) -> Iterator[Sequence[str]]:
    console = options.console
    shown = options.for_people(result.scan.findings)
    by_fingerprint = {finding.fingerprint: finding for finding in shown}
    yield verdict_section(result.scan, console)
    listed: set[str] = set()
    empty = True
    for _, histories in groupby(result.histories, key=attrgetter("place")):
        yield from _of_replica(histories, by_fingerprint, listed, console)
        empty = False
    if empty:
        yield [f"no producer ids {extent(result.scan)}"]
    yield _others([finding for finding in shown if finding.fingerprint not in listed], console)
    yield from closing_sections(result.scan, options)


def _of_replica(
    histories: Iterable[Histories], findings: Mapping[str, Finding], listed: set[str], console: Console
) -> Iterator[Sequence[str]]:
    """Yield the blocks of a partition replica, and add the fingerprints of their findings to `listed`."""
    if console.width is not None:  # the diagram needs a width, and all producer ids
        histories = list(histories)
        yield lane_lines(histories, findings, console)
    for part in histories:
        listed.update(entry.fingerprint for entry in part.others.values() if isinstance(entry, FindingEntry))
        yield _blocks(part, findings, console)


def _others(others: Sequence[Finding], console: Console) -> list[str]:
    """Return the findings that no timeline lists, such as damage."""
    lines = [console.paint("Findings outside the timelines above:", Style.STRONG)] if others else []
    for finding in others:
        where = partition_of(finding) or visible(finding.file or "")
        at = f"{where} @ {span(finding.offset, finding.last_offset)}" if where else producer_of(finding)
        lead = f"  {at}  " if at else "  "
        lines += headline_lines(finding, console, lead=lead, indent=_INDENT * 3)
    return lines


def _blocks(histories: Histories, findings: Mapping[str, Finding], console: Console) -> list[str]:
    """Return the blocks of all producer ids, with a blank line between."""
    parts = cells_of(histories)
    lengths = np.concatenate([cells.lengths for cells in parts], axis=1)
    widths = np.maximum.reduceat(lengths, histories.starts[:-1], axis=1)
    widths = np.maximum(widths, np.array([len(heading) for heading in _HEADINGS])[:, np.newaxis])
    block = _Block(histories, widths, findings, console)
    text = "".join(map(block.text, parts)).removesuffix("\n\n")
    return [text] if console.width is None and not console.color else _for_terminal(text, console)


class _Block:
    """Makes the text of rows of histories. `widths` of the columns (shape (5, ids)).

    For a terminal the lines begin with marks of what they are, and a mark stands between columns (`_for_terminal`).
    """

    def __init__(
        self, histories: Histories, widths: Numbers, findings: Mapping[str, Finding], console: Console
    ) -> None:
        self._histories, self._widths, self._findings, self._console = histories, widths, findings, console
        marked = console.color or console.width is not None
        self._title, self._faint, self._row, self._state = _MARKS if marked else (b"",) * len(_MARKS)
        self._gap = _COLUMN if marked else _GAP.encode()
        rows = histories.rows
        owners = histories.owners
        self._owners, self._begins = owners, np.concatenate([[True], owners[1:] != owners[:-1], [True]])
        is_run, is_batch = rows["row"] == RUN, rows["row"] != OTHER
        self._epochs = _before(rows["producer_epoch"], is_batch, owners)
        self._leader_epochs = _before(rows["last_leader_epoch"], is_run, owners)
        times = rows["min_timestamp"]
        dated = in_calendar(times)
        days = days_of(times)
        self._new_day = dated & (_before(days, dated, owners) != days)

    def text(self, cells: HistoryCells) -> str:
        """Return the text of these rows."""
        here = slice(cells.first, cells.stop)
        owners, epochs, new_day = self._owners[here], self._epochs[here], self._new_day[here]
        first, last = self._begins[cells.first : cells.stop], self._begins[cells.first + 1 : cells.stop + 1]
        widths = self._widths[:, owners]
        columns = cells.columns()
        gaps = widths - cells.lengths
        row: list[Piece] = [self._row, _INDENT.encode()]
        for column, padding in zip(columns[:-1], gaps, strict=False):
            row += [*column, spaces(padding), self._gap]
        has_details = cells.has_details(epochs)
        row += [*columns[-1], *where(has_details, [spaces(gaps[-1][has_details]), self._gap])]
        row += [*cells.details(epochs, self._leader_epochs[here]), b"\n"]
        pieces = [
            *where(first, self._head(owners[first])),
            *where(new_day, [self._faint, _INDENT.encode(), dates_of(cells.times[new_day]), b"\n"]),
            *without(~cells.listed, row),
            *where(~cells.listed, [self._found(cells)]),
            *where(last, self._end(owners[last])),
        ]
        return text_of_rows(cells.stop - cells.first, pieces)

    def _head(self, owners: Numbers) -> list[Piece]:
        """Return the title of each producer id, and the headings."""
        histories, ids = self._histories, self._histories.producer_ids[owners]
        titles: list[Piece] = [self._title, visible(f"{histories.topic}-{histories.partition}").encode()]
        titles += [self._gap, b"producer ", *number(ids)]
        if histories.transactional_ids:
            names = [histories.transactional_ids.get(producer_id) for producer_id in ids.tolist()]
            named = np.array([name is not None for name in names])
            shown = texts(f"transactional id {visible(name)}" for name in names if name is not None)
            titles += where(named, [self._gap, shown])
        if histories.replica:
            titles += [self._gap, f"replica {visible(histories.replica)}".encode()]
        headings: list[Piece] = [b"\n", self._faint, _INDENT.encode()]
        for heading, width in zip(_HEADINGS[:-1], self._widths[:, owners], strict=False):
            headings += [heading.encode(), spaces(width - len(heading)), _GAP.encode()]
        return [*titles, *headings, _HEADINGS[-1].encode(), b"\n"]

    def _found(self, cells: HistoryCells) -> Piece:
        """Return the lines of the findings among these rows."""
        found = []
        for entry in cells.findings:
            finding = self._findings.get(entry.fingerprint)
            lines = [] if finding is None else headline_lines(finding, self._console, lead=_INDENT, indent=_INDENT * 3)
            found.append("".join(f"{line}\n" for line in lines))
        return texts(found)

    def _end(self, owners: Numbers) -> list[Piece]:
        """Return what a broker would remember of each producer after its last entry."""
        states = {name: column[owners] for name, column in self._histories.states.items()}
        epoch, sequence, since = (
            states[name] for name in ("producer_epoch", "last_sequence", "current_txn_start_offset")
        )
        remembered, is_open = ~_none(sequence), ~_none(since)
        return [
            self._state,
            f"{_END}epoch ".encode(),
            *where(epoch == NONE, [b"None"]),
            *where(epoch != NONE, number(epoch[epoch != NONE])),
            *where(remembered, [b", last sequence ", *number(sequence[remembered]), b" at offset "]),
            *where(remembered, number(states["last_offset"][remembered])),
            *where(~remembered, [b", no sequence remembered"]),
            *where(is_open, [b", transaction open since offset ", *number(since[is_open])]),
            *where(~is_open, [b", no open transaction"]),
            b"\n\n",
        ]


def _none(numbers: Numbers) -> Mask:
    none: Mask = (numbers == NONE) | (numbers == -1)
    return none


def _before(values: Numbers, rows_chosen: Mask, owners: Numbers) -> Numbers:
    """Return the value of the chosen row before each row of the same owner, NONE without one."""
    rows = np.arange(len(values))
    latest = np.maximum.accumulate(np.where(rows_chosen, rows, -1))
    before = np.append(-1, latest[:-1])
    found = (before >= 0) & (owners[before] == owners)
    return np.where(found, values[before], NONE)


def _for_terminal(text: str, console: Console) -> list[str]:
    """Colour and wrap the lines that begin with a mark."""
    title, faint, row, state = (mark.decode() for mark in _MARKS)
    lines: list[str] = []
    for line in text.split("\n"):
        kind, rest = line[:1], line[1:]
        if kind == title:
            folded = _folded(rest.split(_COLUMN.decode()), console.width)
            lines += [console.paint(part, Style.STRONG) for part in folded]
        elif kind == faint:
            lines.append(console.paint(rest, Style.FAINT))
        elif kind == row:
            lines += _row(rest.split(_COLUMN.decode()), console)
        elif kind == state:
            lines += console.wrap(rest.removeprefix(_END), lead=_END)
        else:
            lines.append(line)
    return lines


def _row(cells: Sequence[str], console: Console) -> list[str]:
    """Return the lines of a row: the columns, and details beside or below them."""
    text, details = _GAP.join(cells[: len(_HEADINGS)]), cells[len(_HEADINGS) :]
    lines = [text]
    for detail in details:
        if console.fits(len(text) + len(_GAP) + len(detail)):
            lines = [f"{text}{_GAP}{detail}"]
        else:
            lines = [text.rstrip(), *console.wrap(detail, lead=" " * (len(cells[0]) + len(_GAP)))]
    return [_highlighted(line, cells[1].rstrip(), console) for line in lines] if console.color else lines


def _highlighted(line: str, event: str, console: Console) -> str:
    """Colour ends of transactions, open transactions, fencing and missing offsets."""
    for word, style in _STYLES.items():
        if word == event or word.endswith(" "):
            line = line.replace(word, console.paint(word, style), 1)
    return line


def _folded(parts: Sequence[str], width: int | None) -> list[str]:
    """Put parts of a title side by side; parts that do not fit go on lines of their own below."""
    lines = [parts[0]]
    for part in parts[1:]:
        if width is None or len(lines[-1]) + len(_GAP) + len(part) <= width:
            lines[-1] += _GAP + part
        else:
            lines.append(_INDENT * 2 + part)
    return lines
