"""The sequence diagram as one self-contained HTML page: an SVG with a lane per participant, the outcome above."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from msgspec import Struct

from kaudit.report.console import visible
from kaudit.simulate.trace import EventKind, TraceEvent

_LANE = 210
_LEFT = 70
_TOP = 46
_STEP = 30
_SLANT = 9

_STYLE = """
:root { --ground: #ffffff; --ink: #1b1f24; --faint: #8b949e; --lane: #c8ced6; --bad: #c0262d; --warn: #9a6200;
  --note: #0b6e75; --line: #3b5bdb; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --ink: #e6e9ed; --faint: #8b949e; --lane: #39414b;
  --bad: #ff7b72; --warn: #e3b341; --note: #5cc8d0; --line: #8ea8ff; } }
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .4rem; }
p { max-width: 46rem; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: .15rem 1rem .15rem 0; text-align: left; font-weight: normal; }
td { font-variant-numeric: tabular-nums; text-align: right; }
.scroll { overflow-x: auto; }
svg { display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .words { paint-order: stroke; stroke: var(--ground); stroke-width: 4px; stroke-linejoin: round; }
svg .at { fill: var(--faint); text-anchor: end; font-variant-numeric: tabular-nums; }
svg .who { font-weight: 600; text-anchor: middle; }
svg .lane { stroke: var(--lane); stroke-width: 1.5; }
svg line.request, svg line.response { stroke: var(--line); stroke-width: 1.6; }
svg line.response { stroke-dasharray: 6 3; }
svg line.replication { stroke: var(--faint); stroke-dasharray: 2 3; }
svg line.lost { stroke: var(--bad); stroke-width: 1.6; stroke-dasharray: 4 4; }
svg line.refused { stroke: var(--bad); }
svg text.lost, svg text.refused { fill: var(--bad); }
svg text.replication { fill: var(--faint); }
svg text.fault { fill: var(--warn); font-weight: 600; }
svg text.note { fill: var(--note); }
svg circle.fault { fill: var(--warn); }
svg circle.note { fill: var(--note); }
"""


class Run(Struct, frozen=True):
    """A simulated run: `facts` are shown in a table, in order; `omitted` counts the messages left out of `rows`."""

    title: str
    story: str
    facts: Mapping[str, str]
    rows: Sequence[TraceEvent]
    lanes: Sequence[str]
    omitted: int = 0


def page(run: Run) -> Iterator[str]:
    """Yield the page in pieces."""
    title, story = run.title, " ".join(run.story.split())
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    yield f"<h1>{_text(title)}</h1>\n<p>{_text(story)}</p>\n<table>\n"
    for name, value in run.facts.items():
        yield f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>\n"
    yield '</table>\n<div class="scroll" tabindex="0">\n'
    yield from _drawing(run.rows, run.lanes)
    yield "</div>\n"
    if run.omitted:
        yield f"<p>{run.omitted:,} more messages are not shown.</p>\n"
    yield "</body>\n</html>\n"


def _drawing(rows: Sequence[TraceEvent], lanes: Sequence[str]) -> Iterator[str]:
    places = {name: _LEFT + _LANE // 2 + index * _LANE for index, name in enumerate(lanes)}
    width = _LEFT + _LANE * len(lanes) + _LANE // 2
    height = _TOP + _STEP * (len(rows) + 1)
    label = f"{len(rows)} messages between {len(lanes)} participants"
    yield f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n'
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>\n'
    )
    for name, x in places.items():
        yield f'<text class="who" x="{x}" y="20">{_text(name)}</text>\n'
        yield f'<line class="lane" x1="{x}" y1="{_TOP - 16}" x2="{x}" y2="{height - 8}"/>\n'
    for index, row in enumerate(rows):
        yield from _row(row, places, _TOP + _STEP * (index + 1))
    yield "</svg>\n"


def _row(row: TraceEvent, places: Mapping[str, int], y: int) -> Iterator[str]:
    source, target = places[row.source], places[row.target]
    kind = row.kind.value + (" refused" if row.is_error else "")
    yield f'<text class="at" x="{_LEFT - 8}" y="{y + 4}">{row.at} ms</text>\n'
    if source == target:
        yield f'<circle class="{kind}" cx="{source}" cy="{y}" r="5"/>\n'
        yield f'<text class="words {kind}" x="{source + 12}" y="{y + 4}">{_text(row.text)}</text>\n'
        return
    top = y - (_SLANT if row.at > row.sent_at else 0)
    end_x, end_y, head = target, y, ' marker-end="url(#head)"'
    if row.kind is EventKind.LOST:
        end_x, end_y, head = (source + target) // 2, (top + y) // 2, ""
    yield f'<line class="{kind}" x1="{source}" y1="{top}" x2="{end_x}" y2="{end_y}"{head}/>\n'
    if row.kind is EventKind.LOST:
        yield f'<text class="words lost" x="{end_x - 4}" y="{end_y + 5}">✗</text>\n'
    middle = (source + target) // 2
    yield (
        f'<text class="words {kind}" x="{middle}" y="{(top + y) // 2 - 5}" text-anchor="middle">'
        f"{_text(row.text)}</text>\n"
    )


def _text(text: str) -> str:
    return escape(visible(text))
