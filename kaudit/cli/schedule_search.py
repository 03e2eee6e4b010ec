"""`kaudit simulate --find` and `--explain-finding`: a search, its progress on stderr, and what it found."""

import enum
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli.exits import ExitCode
from kaudit.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from rich import progress as bars

    from kaudit.model.finding import Finding
    from kaudit.model.result import ScanResult
    from kaudit.simulate.search.schedule import Schedule
    from kaudit.simulate.search.search import Found, SearchProgress


class OutcomeChoice(enum.Enum):
    """What --find can look for; a test holds it against OUTCOMES of the truth."""

    ACKNOWLEDGED_LOST = "acknowledged-lost"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    HANGING = "hanging"


class SearchOptions(OptionGroup, frozen=True, kw_only=True):
    """What schedules are looked for."""

    heading = "Search"
    find: Annotated[
        OutcomeChoice | None,
        typer.Option(
            "--find",
            metavar="OUTCOME",
            help="Look for a schedule with this outcome and shrink it: acknowledged-lost, duplicate, reordered or "
            "hanging. -o FILE writes it as a scenario. Exit code 1 if there is one, 0 if none was found.",
        ),
    ] = None
    explain_finding: Annotated[
        str | None,
        typer.Option(
            "--explain-finding",
            metavar="FINDING",
            help="Look for schedules whose logs give this finding, SAVED.json#FINGERPRINT of a saved scan: what may have "
            "happened, how often it did among those tried, and what would show it.",
        ),
    ] = None
    tries: Annotated[
        int | None,
        typer.Option("--tries", metavar="N", min=1, help="Try so many schedules at most (default 1000)."),
    ] = None


def find_schedule(  # noqa: PLR0913 - the command's options
    text: str, name: str, options: SearchOptions, *, seed: int, form: str, file: str, output: str | None, quiet: bool
) -> ExitCode:
    """Search a scenario's schedules, write the smallest one to `output`, show it in a format, and return the exit code."""
    from kaudit.cli.interruption import ends_on_signals
    from kaudit.cli.streams import write_pieces
    from kaudit.cli.targets import output_file
    from kaudit.simulate.scenario.reading import parse_document
    from kaudit.simulate.search.search import DEFAULT_TRIES, Search

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
    from kaudit.cli import history_output
    from kaudit.cli.interruption import ends_on_signals
    from kaudit.cli.stdout import stdout_console
    from kaudit.cli.streams import write_pieces
    from kaudit.cli.targets import output_file
    from kaudit.errors import UsageError
    from kaudit.histories.explain import DEFAULT_TRIES, EXPLAINED, explain
    from kaudit.report.console import ColorChoice

    assert options.explain_finding is not None
    finding, result = _saved_finding(options.explain_finding)
    if finding.code not in EXPLAINED:
        raise UsageError(f"{finding.code} {finding.name} cannot be explained; these can: {', '.join(EXPLAINED)}")
    tries = DEFAULT_TRIES if options.tries is None else options.tries
    stop = threading.Event()
    with search_progress(quiet=quiet, tries=tries) as progress, ends_on_signals(stop):
        explanation = explain(
            finding, result.broker_version, seed=seed, tries=tries, progress=progress, stopped=stop.is_set
        )
    if file or not quiet:
        if form == "json":
            shown = json.dumps(history_output.document(finding, explanation, seed), sort_keys=True)
        else:
            shown = "\n".join(history_output.lines(finding, explanation, stdout_console(ColorChoice.AUTO)))
        write_pieces(output_file(file or None, ()), [shown + "\n"])
    return ExitCode.INTERRUPTED if explanation.interrupted else ExitCode.OK


def _saved_finding(named: str) -> "tuple[Finding, ScanResult]":
    """Return the finding that SAVED.json#FINGERPRINT names, and the scan it is of."""
    from pathlib import Path

    from kaudit.errors import UsageError
    from kaudit.results.saved_scan import SavedScanError, read_saved

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


def replayable(found: "Found", name: str) -> str:
    """Return the scenario that gives the outcome again."""
    from kaudit.simulate.scenario.writing import scenario_toml

    assert found.schedule is not None
    document = {key: value for key, value in found.schedule.document.items() if key != "story"}
    return (
        f"# kaudit simulate --find {found.outcome} {name} --seed {found.seed}\n"
        f"# {found.tried:,} schedules tried; {found.schedule.events} events, shrunk from {found.shrunk_from:,}.\n"
        f"{scenario_toml(document)}"
    )


def _shown(found: "Found", name: str, form: str, output: str | None) -> str:
    from kaudit.cli.stdout import stdout_console
    from kaudit.report.console import ColorChoice
    from kaudit.report.sequence import schedule

    if form == "json":
        toml = None if found.schedule is None else replayable(found, name)
        return json.dumps(schedule.found_document(found, name, toml), sort_keys=True) + "\n"
    console = stdout_console(ColorChoice.AUTO)
    return "\n".join(schedule.found_lines(found, name, console, output)) + "\n"


@contextmanager
def search_progress(*, quiet: bool, tries: int) -> "Iterator[SearchProgress]":
    """Show on a terminal how many schedules were tried."""
    if quiet or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("searching"),
        bars.BarColumn(),
        bars.TextColumn("{task.completed:,} schedules{task.fields[found]}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        yield _Bar(progress, tries)


class _Silent:
    def tried(self, schedules: int, smallest: "Schedule | None") -> None:
        """Show nothing."""


class _Bar:
    def __init__(self, progress: "bars.Progress", tries: int) -> None:
        self._progress = progress
        self._task = progress.add_task("searching", total=tries, found="")
        self._drawn = 0.0

    def tried(self, schedules: int, smallest: "Schedule | None") -> None:
        """Move the bar, at most ten times a second."""
        from kaudit.cli.progress import REDRAW_SECONDS

        if time.monotonic() - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = time.monotonic()
        found = "" if smallest is None else f", one with {smallest.events} events"
        self._progress.update(self._task, completed=schedules, found=found)
        self._progress.refresh()
