"""The run as a Mermaid sequence diagram, for pages that render it."""

from collections.abc import Iterator, Sequence

from kaudit.report.console import visible
from kaudit.report.sequence.decisions import reason_of
from kaudit.simulate.trace import EventKind, TraceEvent

_ARROWS = {EventKind.REQUEST: "->>", EventKind.RESPONSE: "-->>", EventKind.LOST: "-x", EventKind.REPLICATION: "-)"}


def diagram(rows: Sequence[TraceEvent], lanes: Sequence[str], omitted: int) -> Iterator[str]:
    """Yield the lines of the diagram."""
    yield "sequenceDiagram"
    names = {name: f"P{index}" for index, name in enumerate(lanes)}
    for name, alias in names.items():
        yield f"    participant {alias} as {_escaped(name)}"
    for row in rows:
        source, target = names[row.source], names[row.target]
        reason = reason_of(row)
        text = f"{row.at} ms: {_escaped(f'{row.text}: {reason}' if reason else row.text)}"
        if row.source == row.target:
            yield f"    Note over {source}: {text}"
        else:
            yield f"    {source}{_ARROWS.get(row.kind, '->>')}{target}: {text}"
    if omitted and lanes:
        yield f"    Note over {names[lanes[0]]}: {omitted} more messages are not shown"


def _escaped(text: str) -> str:
    """Spell what Mermaid would obey: # begins an entity, ; ends a statement, < and > are markup."""
    spelled = visible(text).replace("#", "#35;")
    return spelled.replace("; ", ", ").replace("<", "#lt;").replace(">", "#gt;").replace("\\", "/")
