"""The histories that explain a finding: how often each was behind it, what it takes, and what would show it."""

from collections.abc import Iterator
from typing import Any

from kaudit.histories.explain import Explanation, History
from kaudit.model.finding import Finding
from kaudit.report.console import Console, visible
from kaudit.report.sequence.schedule import event_lines
from kaudit.report.text.formatting import plural
from kaudit.simulate.scenario.writing import scenario_toml

WEIGHTS = (
    "Shares are of the schedules tried: shipped scenarios, varied, and bare configurations equally often, faults at random. "
    "They say how easily a history leads here, not how often it happens to you."
)


def document(finding: Finding, explanation: Explanation, seed: int) -> dict[str, Any]:
    """Return an explanation as JSON."""
    return {
        "schema": "kaudit.simulate-explain/1",
        "fingerprint": finding.fingerprint,
        "code": finding.code,
        "same_means": {name: value for name, value in explanation.trace.items() if value is not None},
        "seed": seed,
        "interrupted": explanation.interrupted,
        "schedules_tried": explanation.tried,
        "schedules_with_the_finding": explanation.same,
        "weights": WEIGHTS,
        "histories": [
            {
                "happened": [cause.happened for cause in history.causes],
                "look": [cause.look for cause in history.causes],
                "schedules": history.count,
                "share": history.count / explanation.same,
                "events": list(event_lines(history.example)),
                "toml": scenario_toml({"title": finding.name, **history.example.document}),
            }
            for history in explanation.histories
        ],
    }


def lines(finding: Finding, explanation: Explanation, console: Console) -> Iterator[str]:
    """Yield an explanation for people."""
    yield from console.wrap(visible(f"{finding.code} {finding.name}: {finding.message}"))
    yield ""
    tried = f"{explanation.tried:,} schedules tried{', then interrupted' if explanation.interrupted else ''}"
    if not explanation.same:
        yield from console.wrap(f"{tried}; none gave this finding. That is no proof that none can: try more (--tries).")
        yield from _causes_of_scan(finding, console)
        return
    yield from console.wrap(f"{tried}; {explanation.same:,} gave this finding. {WEIGHTS}")
    for number, history in enumerate(explanation.histories, 1):
        yield ""
        yield from _history(number, history, explanation.same, console)


def _causes_of_scan(finding: Finding, console: Console) -> Iterator[str]:
    """Yield what the scan itself names as causes: disks and people do what no simulated schedule does."""
    if not finding.explanations:
        return
    yield ""
    yield "The scan names as causes:"
    for number, cause in enumerate(finding.explanations, 1):
        harmless = " (then it is harmless)" if cause.innocent else ""
        yield from console.wrap(visible(f"{number}. {cause.cause}{harmless}"), "  ", "     ")


def _history(number: int, history: History, same: int, console: Console) -> Iterator[str]:
    share = round(100 * history.count / same)
    happened = "; ".join(cause.happened for cause in history.causes)
    yield from console.wrap(f"{number}. {share}% ({history.count:,} of {same:,}): {happened}", "", "   ")
    cluster = history.example.scenario.cluster
    for event in event_lines(history.example):
        yield from console.wrap(event, "     ", "       ")
    yield from console.wrap(f"Kafka {cluster.version}, {plural(cluster.brokers, 'broker')}", "     ", "       ")
    for cause in history.causes:
        yield from console.wrap(f"Look at {cause.look}", "   ", "     ")
