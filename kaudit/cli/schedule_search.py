"""`kaudit simulate --find` and `--explain-finding`: a search, its progress on stderr, and what it found."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaudit.cli.commands.simulate import SearchOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.progress import ends_on_signals, search_progress
from kaudit.cli.streams import stdout_console, write_pieces
from kaudit.cli.targets import output_file
from kaudit.errors import UsageError
from kaudit.histories.explain import DEFAULT_TRIES as TRIES_TO_EXPLAIN
from kaudit.histories.explain import EXPLAINED, Explanation, History, explain
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.report.console import ColorChoice, Console, visible
from kaudit.report.sequence.run_text import event_lines, found_document, found_lines
from kaudit.report.text.formatting import plural
from kaudit.results.saved_scan import SavedScanError, read_saved
from kaudit.simulate.scenario.reading import parse_document
from kaudit.simulate.scenario.tables import scenario_toml
from kaudit.simulate.search.search import DEFAULT_TRIES, Found, Search

WEIGHTS = (
    "Shares are of the schedules tried: shipped scenarios, varied, and bare configurations equally often, faults at random. "
    "They say how easily a history leads here, not how often it happens to you."
)


def find_schedule(  # noqa: PLR0913 - the command's options
    text: str, name: str, options: SearchOptions, *, seed: int, form: str, file: str, output: str | None, quiet: bool
) -> ExitCode:
    """Search a scenario's schedules, write the smallest one to `output`, show it in a format, and return the exit code."""
    assert options.find is not None
    tries = DEFAULT_TRIES if options.tries is None else options.tries
    stop = threading.Event()
    with search_progress(quiet=quiet, tries=tries) as progress, ends_on_signals(stop):
        found = Search(options.find.value, seed, progress, stop.is_set).run(parse_document(text), name, tries)
    if output is not None and found.schedule is not None:
        write_pieces(output_file(output, ()), [replayable(found, name)])
    if file or not quiet:
        write_pieces(output_file(file or None, ()), [_shown(found, name, form, output)])
    if found.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if found.schedule is None else ExitCode.FINDINGS


def explain_finding(options: SearchOptions, *, seed: int, form: str, file: str, quiet: bool) -> ExitCode:
    """Explain a finding of a saved scan.

    Raises UsageError for a file that is no saved scan, a fingerprint that it lacks, and checks that cannot be explained.
    """
    assert options.explain_finding is not None
    finding, result = _saved_finding(options.explain_finding)
    if finding.code not in EXPLAINED:
        raise UsageError(f"{finding.code} {finding.name} cannot be explained; these can: {', '.join(EXPLAINED)}")
    tries = TRIES_TO_EXPLAIN if options.tries is None else options.tries
    stop = threading.Event()
    with search_progress(quiet=quiet, tries=tries) as progress, ends_on_signals(stop):
        explanation = explain(
            finding, result.broker_version, seed=seed, tries=tries, progress=progress, stopped=stop.is_set
        )
    if file or not quiet:
        if form == "json":
            shown = json.dumps(_explanation_document(finding, explanation, seed), sort_keys=True)
        else:
            shown = "\n".join(_explanation_lines(finding, explanation, stdout_console(ColorChoice.AUTO)))
        write_pieces(output_file(file or None, ()), [shown + "\n"])
    return ExitCode.INTERRUPTED if explanation.interrupted else ExitCode.OK


def _saved_finding(named: str) -> tuple[Finding, ScanResult]:
    """Return the finding that SAVED.json#FINGERPRINT names, and the scan it is of."""
    path, mark, fingerprint = named.rpartition("#")
    if not (path and mark and fingerprint):
        raise UsageError(f"--explain-finding {named}: expected SAVED.json#FINGERPRINT")
    try:
        result = read_saved(Path(path).read_text(encoding="utf-8")).result
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except SavedScanError as error:
        raise UsageError(f"{path}: {error}") from None
    for finding in result.findings:
        if finding.fingerprint == fingerprint:
            return finding, result
    raise UsageError(f"{path} has no finding with the fingerprint {fingerprint}")


def replayable(found: Found, name: str) -> str:
    """Return the scenario that gives the outcome again."""
    assert found.schedule is not None
    document = {key: value for key, value in found.schedule.document.items() if key != "story"}
    return (
        f"# kaudit simulate --find {found.outcome} {name} --seed {found.seed}\n"
        f"# {found.tried:,} schedules tried; {found.schedule.events} events, shrunk from {found.shrunk_from:,}.\n"
        f"{scenario_toml(document)}"
    )


def _shown(found: Found, name: str, form: str, output: str | None) -> str:
    if form == "json":
        toml = None if found.schedule is None else replayable(found, name)
        return json.dumps(found_document(found, name, toml), sort_keys=True) + "\n"
    console = stdout_console(ColorChoice.AUTO)
    return "\n".join(found_lines(found, name, console, output)) + "\n"


def _explanation_document(finding: Finding, explanation: Explanation, seed: int) -> dict[str, Any]:
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


def _explanation_lines(finding: Finding, explanation: Explanation, console: Console) -> Iterator[str]:
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
