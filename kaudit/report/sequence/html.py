"""The sequence diagram as one HTML file: steps to walk through, the state beside them, and a table where scripts are off."""

from collections.abc import Callable

from kaudit.report.html.document import BASE_STYLES, BUDGET, document
from kaudit.report.sequence.page_model import SequencePage, Step

_STYLES = (*BASE_STYLES, "sequence.css")
_SCRIPTS = ("sequence/main.js",)


def fitting_page(build: Callable[[int], SequencePage], most: int) -> str:
    """Return the page that `build` makes of `most` steps, or of as many as fit into the budget."""
    text = page(build(most))
    while len(text.encode()) > BUDGET and most > 1:
        most = max(1, min(most, most * BUDGET // len(text.encode())) * 9 // 10)
        text = page(build(most))
    return text


def page(model: SequencePage) -> str:
    """Return the page of a diagram."""
    has_time = any(step.at is not None for step in model.steps)
    return document(
        "sequence.html",
        title=model.title,
        styles=_STYLES,
        scripts=_SCRIPTS,
        data={"page": model},
        context={
            "story": model.story,
            "facts": model.facts,
            "left_out": [f"Left out: {left.count:,} {left.what} ({left.how_to_see})" for left in model.left_out],
            "clock": "ms" if has_time else "time",
            "rows": [_row(model, step) for step in model.steps],
            "command": model.command,
            "made_by": model.made_by,
        },
    )


def _row(model: SequencePage, step: Step) -> dict[str, object]:
    """Return a step as a row of the table, with the decisions about it below its text."""
    lines = []
    for decision in step.decisions:
        verdict = " ".join(filter(None, (decision.outcome, decision.error)))
        lines.append(f"{verdict}: {decision.rule}")
        if decision.expected:
            lines.append(f"expected {decision.expected}, got {decision.got}")
        if decision.history:
            lines.append(decision.history)
    return {
        "step": f"{step.number:,}",
        "at": "" if step.at is None else f"{step.at:,}",
        "source": model.lanes[step.source].name,
        "target": "" if step.source == step.target else model.lanes[step.target].name,
        "text": f"lost: {step.text}" if step.tone == "lost" else step.text,
        "lines": lines,
        "tone": step.tone,
    }
