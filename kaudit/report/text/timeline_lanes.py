"""A diagram of a partition for the terminal: a lane per producer id and epoch, offsets from left to right."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.severity import Severity
from kaudit.model.timeline import (
    OUTCOMES,
    RUN,
    TYPES,
    Entry,
    EventEntry,
    FindingEntry,
    Histories,
    HistoryRow,
    MissingEntry,
)
from kaudit.report.console import Console, Style, visible
from kaudit.report.lanes import with_epochs
from kaudit.report.text.formatting import SEVERITY_STYLE, date_and_clock, plural, span

_MOST_LANES = 10
_FEWEST_MARKS = 3
"""With fewer runs, markers, gaps and findings the list below says enough."""
_HEADINGS = ("producer", "epoch")
_INDENT = "  "
_GAP = "  "
_NO_BREAK = "\xa0"
_BESIDE_AXIS = 12
"""Least columns between two offsets on the axis."""


class _Mark(NamedTuple):
    """A character of the picture: drawn, in ASCII, what the legend calls it, and its colour."""

    drawn: str
    plain: str
    name: str
    style: Style | None = None


_LIFE = _Mark("─", "-", "")
_DATA = _Mark("━", "=", "data")
_BEGIN = _Mark("┣", "[", "run begins")
_ABORTED = _Mark("┅", "~", "aborted data", Style.WARNING)
_MISSING = _Mark("░", ":", "missing", Style.ERROR)
_COMMIT = _Mark("C", "C", "commit", Style.GOOD)
_ABORT = _Mark("A", "A", "abort", Style.WARNING)
_CLEANED = _Mark("M", "M", "other marker")
_REFUSED = _Mark("x", "x", "refused", Style.WARNING)
_OPEN = _Mark("O", "O", "open transaction", Style.WARNING)
_FOUND = {
    Severity.NOTE: _Mark("i", "i", "note", SEVERITY_STYLE[Severity.NOTE]),
    Severity.WARNING: _Mark("!", "!", "warning", SEVERITY_STYLE[Severity.WARNING]),
    Severity.ERROR: _Mark("X", "X", "error", SEVERITY_STYLE[Severity.ERROR]),
}
_MARKERS = [{"COMMIT": _COMMIT, "ABORT": _ABORT}.get(kind or "", _CLEANED) for kind in TYPES]
_BELOW_TO_ABOVE = (
    _LIFE,
    _DATA,
    _ABORTED,
    _BEGIN,
    _MISSING,
    _CLEANED,
    _COMMIT,
    _ABORT,
    _OPEN,
    _REFUSED,
    *_FOUND.values(),
)
"""Of two marks in one column the later one of these is drawn."""
_HEIGHT = {mark: height for height, mark in enumerate(_BELOW_TO_ABOVE)}


class _Lane(Struct):
    """One producer id in `epochs` (first and last): marks at offsets, timestamps in ms, worst severity found (0: none)."""

    producer_id: int
    epochs: tuple[int, int]
    marks: list[tuple[int, int, _Mark]] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    worst: int = 0

    @property
    def first_offset(self) -> int:
        return min(first for first, _, _ in self.marks)

    @property
    def last_offset(self) -> int:
        return max(last for _, last, _ in self.marks)


class _Scale(NamedTuple):
    """Offsets `first` to `last`, both inclusive, on `width` columns."""

    first: int
    last: int
    width: int

    def columns(self, first: int, last: int) -> range:
        """Return the columns of these offsets, at least one; offsets outside the scale go to its edge."""
        return range(self._column(first), max(self._column(last + 1), self._column(first) + 1))

    def _column(self, offset: int) -> int:
        clipped = min(max(offset, self.first), self.last + 1)
        return min((clipped - self.first) * self.width // (self.last + 1 - self.first), self.width)


def lane_lines(histories: Sequence[Histories], findings: Mapping[str, Finding], console: Console) -> list[str]:
    """Return the diagram of one partition replica; nothing where the terminal's width is unknown or there are few marks.

    `histories` are the partition's, `findings` those that are shown, by fingerprint. It has at most ten lanes, preferring those
    with findings. Epochs share their producer's lane where there are more.
    """
    lanes = [] if console.width is None else _lanes(histories, findings)
    if console.width is None or sum(len(lane.marks) for lane in lanes) < _FEWEST_MARKS:
        return []
    shown = _chosen(lanes)
    names = [(str(lane.producer_id), span(*lane.epochs)) for lane in shown]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *names, strict=True)]
    left = len(_INDENT) + sum(widths) + 2 * len(_GAP)
    scale = _Scale(
        min(lane.first_offset for lane in shown), max(lane.last_offset for lane in shown), max(console.width - left, 20)
    )
    lines = console.wrap(_title(histories[0], scale, shown), indent=_INDENT * 2)
    lines = [console.paint(line, Style.STRONG) for line in lines]
    headings = _GAP.join(text.rjust(width) for text, width in zip(_HEADINGS, widths, strict=True))
    lines.append(console.paint(_INDENT + headings, Style.FAINT))
    seen: set[_Mark] = set()
    for lane, name in zip(shown, names, strict=True):
        cells = _cells(lane, scale)
        seen.update(cell for cell in cells if cell is not None)
        label = _GAP.join(text.rjust(width) for text, width in zip(name, widths, strict=True))
        lines.append((_INDENT + label + _GAP + _painted(cells, console)).rstrip())
    lines.append(console.paint(" " * left + _axis(scale, console), Style.FAINT))
    if len(lanes) > len(shown):
        lines.append(f"{_INDENT}... {_more(lanes, shown)}")
    return lines + [line.replace(_NO_BREAK, " ") for line in console.wrap(_legend(seen, console), lead=_INDENT)]


def _lanes(histories: Sequence[Histories], findings: Mapping[str, Finding]) -> list[_Lane]:
    """Return a lane per producer id and epoch, or per producer id where those are too many."""

    def lanes(key: Callable[[int | None], int | None]) -> list[_Lane]:
        each = (timeline for part in histories for timeline in part.timelines())
        return [lane for producer_id, entries in each for lane in _lanes_of(producer_id, list(entries), findings, key)]

    by_epoch = lanes(lambda epoch: epoch)
    return by_epoch if len(by_epoch) <= _MOST_LANES else lanes(lambda _: None)


def _lanes_of(
    producer_id: int, entries: Sequence[Entry], findings: Mapping[str, Finding], key: Callable[[int | None], int | None]
) -> Iterable[_Lane]:
    """Return the lanes of one producer id: epochs of one `key` share one. Missing offsets go with what precedes them."""
    lanes: dict[int | None, _Lane] = {}
    lane: _Lane | None = None
    for entry, epoch in with_epochs(entries):
        if epoch is None or not isinstance(entry, HistoryRow | MissingEntry):
            continue
        lane = lanes.setdefault(key(epoch), _Lane(producer_id, (epoch, epoch)))
        lane.epochs = min(lane.epochs[0], epoch), max(lane.epochs[1], epoch)
        lane.marks += _marks(entry)
        times = () if isinstance(entry, MissingEntry) else (entry.min_timestamp, entry.max_timestamp)
        lane.timestamps += [time for time in times if time != NO_TIMESTAMP]
    if lane is None:
        return ()
    for entry in entries:
        if isinstance(entry, EventEntry) and entry.is_refusal and (offset := entry.offset) is not None:
            begun = [one for one in lanes.values() if one.first_offset <= offset] or [min(lanes.values(), key=_begins)]
            max(begun, key=_begins).marks.append((offset, offset, _REFUSED))
        finding = findings.get(entry.fingerprint) if isinstance(entry, FindingEntry) else None
        if finding is not None and finding.offset is not None:
            place = lanes.get(key(finding.producer_epoch), lane)
            place.marks.append((finding.offset, finding.offset, _FOUND[finding.severity]))
            place.worst = max(place.worst, _HEIGHT[_FOUND[finding.severity]])
    return lanes.values()


def _begins(lane: _Lane) -> int:
    return lane.first_offset


def _marks(entry: HistoryRow | MissingEntry) -> Iterator[tuple[int, int, _Mark]]:
    """Yield what is drawn for an entry."""
    if isinstance(entry, MissingEntry):
        yield entry.first_offset, entry.last_offset, _MISSING
    elif entry.row != RUN:
        yield entry.first_offset, entry.first_offset, _MARKERS[entry.type]
    else:
        outcome = OUTCOMES[entry.transaction_outcome] if entry.is_transactional else None
        yield entry.first_offset, entry.last_offset, _ABORTED if outcome == "aborted" else _DATA
        if outcome == "open":
            yield entry.first_offset, entry.first_offset, _OPEN


def _chosen(lanes: Sequence[_Lane]) -> list[_Lane]:
    """Return the lanes that are drawn, by first offset: those with the worst findings, then those with most marks."""
    ranked = sorted(lanes, key=lambda lane: (-lane.worst, -len(lane.marks), lane.first_offset))
    return sorted(ranked[:_MOST_LANES], key=lambda lane: (lane.first_offset, lane.producer_id, lane.epochs))


def _cells(lane: _Lane, scale: _Scale) -> list[_Mark | None]:
    """Return the lane's columns, None before its first offset and after its last."""
    cells: list[_Mark | None] = [None] * scale.width

    def put(columns: Iterable[int], mark: _Mark) -> None:
        for column in columns:
            below = cells[column]
            if below is None or _HEIGHT[below] < _HEIGHT[mark]:
                cells[column] = mark

    put(scale.columns(lane.first_offset, lane.last_offset), _LIFE)
    for first, last, mark in lane.marks:
        columns = scale.columns(first, last)
        if mark in {_DATA, _ABORTED, _MISSING}:
            put(columns, mark)
            if len(columns) > 2 and mark is _DATA:
                put(columns[:1], _BEGIN)
        else:
            put(columns[:1], mark)
    return cells


def _painted(cells: Sequence[_Mark | None], console: Console) -> str:
    """Return the columns as text; neighbours of one colour are painted together."""
    parts: list[tuple[str, Style | None]] = []
    for cell in cells:
        text = " " if cell is None else (cell.drawn if console.draws else cell.plain)
        style = None if cell is None else cell.style
        if parts and parts[-1][1] is style:
            parts[-1] = (parts[-1][0] + text, style)
        else:
            parts.append((text, style))
    return "".join(text if style is None else console.paint(text, style) for text, style in parts)


def _axis(scale: _Scale, console: Console) -> str:
    """Return the axis: offsets under the lanes, each after a stroke at its column."""
    stroke = "│" if console.draws else "|"
    step = max((scale.last - scale.first + 1) * _BESIDE_AXIS // scale.width, 1)
    magnitude = 10 ** (len(str(step)) - 1)
    step = next(size * magnitude for size in (1, 2, 5, 10) if size * magnitude >= step)
    line = ""
    for offset in [scale.first, *range((scale.first // step + 1) * step, scale.last + 1, step)]:
        column, text = scale.columns(offset, offset)[0], f"{stroke}{offset}"
        if column + len(text) <= scale.width and (not line or column > len(line)):
            line = line.ljust(column) + text
    return line


def _title(place: Histories, scale: _Scale, shown: Iterable[_Lane]) -> str:
    replica = f", replica {visible(place.replica)}" if place.replica else ""
    text = f"{visible(place.topic)}-{place.partition}{replica}: offsets {scale.first} to {scale.last}"
    times = [time for lane in shown for time in lane.timestamps]
    if not times:
        return text
    (day, clock), (last_day, last_clock) = date_and_clock(min(times)), date_and_clock(max(times))
    until = last_clock if day == last_day else f"{last_day} {last_clock}"
    return f"{text}, {f'{day} {clock}'.strip()} to {until} UTC"


def _more(lanes: Sequence[_Lane], shown: Sequence[_Lane]) -> str:
    """Return what is not drawn: `77 more producer ids, 3 of them with findings`."""
    hidden = len(lanes) - len(shown)
    found = sum(lane.worst > 0 for lane in lanes) - sum(lane.worst > 0 for lane in shown)
    text = plural(hidden, "more producer id")
    return f"{text}, {f'{found:,} with findings' if found else 'without findings'}, below"


def _legend(seen: Iterable[_Mark], console: Console) -> str:
    ordered = sorted((mark for mark in seen if mark.name), key=_HEIGHT.__getitem__)
    items = (f"{mark.drawn if console.draws else mark.plain} {mark.name}" for mark in ordered)
    return "   ".join(item.replace(" ", _NO_BREAK) for item in items)
