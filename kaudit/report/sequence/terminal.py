"""The sequence diagram for a terminal: a lane per participant, a line per message, the text on the right."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaudit.report.console import Console, Style, visible
from kaudit.report.sequence.decisions import reason_of
from kaudit.simulate.trace import EventKind, TraceEvent

_TIME_WIDTH = 9
_WIDEST_LANE = 13
_NARROWEST_LANE = 4
_NARROWEST_TEXT = 26
_DEFAULT_WIDTH = 100


class _Strokes(NamedTuple):
    """Characters of the drawing."""

    bar: str
    line: str
    dashed: str
    right: str
    left: str
    lost: str
    own: str


_DRAWN = _Strokes("│", "─", "╌", "►", "◄", "✗", "●")
_PLAIN = _Strokes("|", "-", ".", ">", "<", "x", "*")

_STYLES = {
    EventKind.LOST: Style.ERROR,
    EventKind.FAULT: Style.WARNING,
    EventKind.NOTE: Style.NOTE,
    EventKind.REPLICATION: Style.FAINT,
}


def diagram(rows: Sequence[TraceEvent], lanes: Sequence[str], omitted: int, console: Console) -> Iterator[str]:
    """Yield the lines of the diagram."""
    strokes = _DRAWN if console.draws else _PLAIN
    width = console.width or _DEFAULT_WIDTH
    space = width - _TIME_WIDTH - _NARROWEST_TEXT
    lane = max(_NARROWEST_LANE, min(_WIDEST_LANE, space // max(len(lanes), 1)))
    text_at = _TIME_WIDTH + lane * len(lanes)
    places = {name: index for index, name in enumerate(lanes)}
    yield from _heads(lanes, lane)
    bars = "".join(strokes.bar.ljust(lane) for _ in lanes)
    for row in rows:
        drawn = _drawn(row, places, lane, strokes)
        words = textwrap.wrap(visible(_words(row)), max(width - text_at, _NARROWEST_TEXT)) or [""]
        style = Style.ERROR if row.is_error else _STYLES.get(row.kind)
        first, *rest = [word if style is None else console.paint(word, style) for word in words]
        yield f"{row.at:>{_TIME_WIDTH - 2}}  {drawn}{first}".rstrip()
        for word in rest:
            yield f"{'':{_TIME_WIDTH}}{bars}{word}"
    if omitted:
        yield f"{'':{_TIME_WIDTH}}{omitted:,} more messages are not shown (--rows)"


def _heads(lanes: Sequence[str], lane: int) -> Iterator[str]:
    """Yield the names above the lanes, on as many lines as the longest one takes."""
    cut = [textwrap.wrap(visible(name), lane - 1) for name in lanes]
    for line in range(max((len(parts) for parts in cut), default=0)):
        head = f"{'ms':>{_TIME_WIDTH - 2}}  " if line == 0 else " " * _TIME_WIDTH
        yield (head + "".join((parts[line] if line < len(parts) else "").ljust(lane) for parts in cut)).rstrip()


def _drawn(row: TraceEvent, places: dict[str, int], lane: int, strokes: _Strokes) -> str:
    """Return a row's lanes with its arrow."""
    cells = list("".join(strokes.bar.ljust(lane) for _ in places))
    source, target = places[row.source] * lane, places[row.target] * lane
    if source == target:
        cells[source] = strokes.own
        return "".join(cells)
    low, high = sorted((source, target))
    line = strokes.dashed if row.kind in (EventKind.LOST, EventKind.REPLICATION) else strokes.line
    for at in range(low + 1, high):
        cells[at] = line
    if row.kind is EventKind.LOST:
        cells[(low + high) // 2] = strokes.lost
        return "".join(cells)
    if target > source:
        cells[target - 1] = strokes.right
    else:
        cells[target + 1] = strokes.left
    return "".join(cells)


def _words(row: TraceEvent) -> str:
    if row.kind in (EventKind.NOTE, EventKind.FAULT):
        return row.text if row.source == "controller" else f"{row.source}: {row.text}"
    reason = reason_of(row)
    text = f"{row.text}: {reason}" if reason else row.text
    return f"lost: {text}" if row.kind is EventKind.LOST and "lost" not in row.text else text
