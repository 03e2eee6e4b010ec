"""Runs `kaudit simulate`: plays a scenario or searches its schedules, writes and shows the result."""

import difflib
import json
from functools import partial
from pathlib import Path

from kaudit.checks.command_line import quote
from kaudit.cli.commands.simulate import RunOptions, SearchOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.schedule_search import explain_finding, find_schedule
from kaudit.cli.streams import stdout_console, write_pieces, write_stdout
from kaudit.cli.targets import output_file
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console
from kaudit.report.sequence import html
from kaudit.report.sequence.decisions import participants
from kaudit.report.sequence.run_text import (
    mermaid_diagram,
    outcome_lines,
    record_facts,
    sweep_lines,
    terminal_diagram,
)
from kaudit.report.sequence.simulated import MOST_STEPS, simulation_page
from kaudit.simulate.output.log_directory import OccupiedError, write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import ORDER, parse_scenario, scenario_text, shipped
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.sweep import sweep
from kaudit.source.local import read_document

_FORMATS = ("terminal", "html", "mermaid", "json")


def run_simulate(  # noqa: C901, PLR0912 - one branch per option that excludes others
    scenario: str | None, run: RunOptions, search: SearchOptions, color: ColorChoice, *, quiet: bool
) -> ExitCode:
    """Do what the options ask for; return the exit code. Raises UsageError for options that exclude each other."""
    console = stdout_console(color)
    if run.list_scenarios:
        write_stdout(_list(console))
        return ExitCode.OK
    form, _, file = run.output_format.partition(":")
    if search.explain_finding is not None:
        if (
            scenario is not None
            or search.find is not None
            or run.output is not None
            or form not in ("terminal", "json")
        ):
            raise UsageError("--explain-finding takes no SCENARIO, --find or -o, and is shown as terminal or json")
        return explain_finding(search, seed=run.seed or 0, form=form, file=file, quiet=quiet)
    if scenario is None:
        raise UsageError("SCENARIO is missing: a TOML file or a shipped name; --list shows those")
    text = _text(scenario)
    if run.show_scenario:
        write_stdout(text)
        return ExitCode.OK
    if form not in _FORMATS:
        raise UsageError(f"--output-format {run.output_format!r}: expected one of {', '.join(_FORMATS)}")
    read = _read(scenario, text)
    first = read.seed if run.seed is None else run.seed
    if run.sweep is not None:
        if run.output is not None or form not in ("terminal", "json"):
            raise UsageError("--sweep counts outcomes: --output and diagrams are of one seed")
        _deliver(_sweep(read, first, run.sweep, form), file)
        return ExitCode.OK
    if search.find is not None:
        if form not in ("terminal", "json"):
            raise UsageError("--find shows what it found as terminal or json; -o FILE.toml writes it as a scenario")
        target = None if run.output is None else str(run.output)
        return find_schedule(
            text, Path(scenario).stem, search, seed=first, form=form, file=file, output=target, quiet=quiet
        )
    if search.tries is not None:
        raise UsageError("--tries is for --find and --explain-finding")

    simulation = Simulation(read, first, run.rows).run()
    truth = Truth(simulation)
    if run.output is not None:
        try:
            write_run(run.output, simulation, truth)
        except OccupiedError as error:
            raise UsageError(f"--output: {error}") from None
        except OSError as error:
            raise UsageError(f"--output {run.output} cannot be written: {error.strerror}") from error
    if file or not quiet:
        _deliver(_shown(truth, form, console, scenario), file)
    return ExitCode.OK


def _text(scenario: str) -> str:
    """Return the TOML of a file, or of a shipped scenario where no file has that name."""
    path = Path(scenario)
    if path.suffix == ".toml" or path.is_file():
        try:
            return read_document(scenario)
        except UnicodeDecodeError as error:
            raise UsageError(f"{scenario}: not UTF-8 at byte {error.start}") from None
        except OSError as error:
            raise UsageError(f"{scenario}: {error.strerror}") from error

    try:
        return scenario_text(scenario)
    except KeyError:
        near = difflib.get_close_matches(scenario, ORDER, 3, cutoff=0.4)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise UsageError(f"no file and no shipped scenario {scenario!r}{hint} (--list)") from None


def _read(name: str, text: str) -> Scenario:
    try:
        return parse_scenario(text, Path(name).stem)
    except ScenarioError as error:
        raise UsageError(f"{name}: {str(error).removeprefix(': ')}") from None


def _list(console: Console) -> str:
    width = max(map(len, ORDER)) + 2
    lines: list[str] = []
    for name in ORDER:
        lines += console.wrap(shipped(name).title, name.ljust(width))
    return "\n".join(lines) + "\n"


def _sweep(scenario: Scenario, first: int, runs: int, form: str) -> str:
    result = sweep(scenario, first, runs)
    if form == "terminal":
        return "\n".join(sweep_lines(result)) + "\n"

    document = {
        "schema": "kaudit.simulate-sweep/1",
        "scenario": scenario.name,
        "first_seed": first,
        "runs": result.runs,
        "untouched": result.untouched,
        "outcomes": {
            name: {"runs": tally.runs, "records": tally.records, "example": tally.example}
            for name, tally in result.tallies.items()
            if tally.runs
        },
    }
    return json.dumps(document, sort_keys=True) + "\n"


def _shown(truth: Truth, form: str, console: Console, named: str) -> str:
    """Return the run in a format; `named` is the scenario as it was asked for."""
    simulation = truth.simulation
    scenario, trace = simulation.scenario, simulation.trace
    if form == "json":
        return "".join(truth.text())
    rows = trace.events
    lanes = participants(rows, simulation.applications, [broker.name for broker in simulation.cluster.brokers.values()])
    summary = truth.summary()
    if form == "mermaid":
        return "\n".join(mermaid_diagram(rows, lanes, trace.omitted)) + "\n"
    if form == "html":
        facts = {"scenario": scenario.name, "seed": str(simulation.seed), **record_facts(summary)}
        command = f"kaudit simulate {quote(named)} --seed {simulation.seed}"
        return html.fitting_page(partial(simulation_page, simulation, facts, command), MOST_STEPS)
    lines = [
        *console.wrap(f"{scenario.title} (seed {simulation.seed})"),
        *terminal_diagram(rows, lanes, trace.omitted, console),
        "",
        *outcome_lines(summary, truth.hidden(), console),
    ]
    return "\n".join(lines) + "\n"


def _deliver(text: str, file: str) -> None:
    write_pieces(output_file(file or None, ()), [text])
