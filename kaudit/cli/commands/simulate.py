"""`kaudit simulate`: play a scenario, write what it leaves behind, show who sent what when."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli import options
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.schedule_search import SearchOptions, explain_finding, find_schedule
from kaudit.errors import UsageError

if TYPE_CHECKING:
    from kaudit.report.console import Console
    from kaudit.simulate.output.truth import Truth
    from kaudit.simulate.scenario.model import Scenario

_EXAMPLES = """\b
Examples:
  kaudit simulate --list
  kaudit simulate six-in-flight
  kaudit simulate acks1-leader-dies -o run && kaudit scan run/broker-2
  kaudit simulate my-cluster.toml --sweep 1000
  kaudit simulate my-cluster.toml --find acknowledged-lost -o lost.toml
  kaudit simulate --explain-finding scan.json#1f9a6c0de2b34875
"""

_FORMATS = ("terminal", "html", "mermaid", "json")


app = typer.Typer()


@app.command(short_help="Play a scenario: producers, brokers, faults.", epilog=_EXAMPLES)
@with_option_groups
def simulate(  # noqa: C901, PLR0912, PLR0913 - typer reads the options off the signature
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A scenario.toml, or the name of a shipped one.")
    ] = None,
    *,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="What chance does; the scenario has one of its own."),
    ] = None,
    sweep: Annotated[
        int | None, typer.Option("--sweep", min=1, metavar="N", help="Run N seeds and count the outcomes.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="Write log directories, attempts and truth there; with --find the scenario found.",
        ),
    ] = None,
    output_format: Annotated[
        str,
        typer.Option("--output-format", metavar="FORMAT[:FILE]", help="terminal, html, mermaid or json."),
    ] = "terminal",
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=0, help="Show so many messages at most.")] = 200,
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    show_scenario: Annotated[
        bool, typer.Option("--show", help="Print the scenario's TOML: a start for one's own.")
    ] = False,
    search: SearchOptions,
    terminal: options.TerminalOptions,
    quiet: options.Quiet = False,
    version: options.VersionOption,  # noqa: ARG001 - its callback has answered
) -> int | None:
    """Play a scenario: producers, brokers and replicas in simulated time. The same seed gives the same run."""
    from kaudit.cli.stdout import stdout_console, write_stdout

    console = stdout_console(terminal.color_choice)
    if list_scenarios:
        write_stdout(_list(console))
        return None
    form, _, file = output_format.partition(":")
    if search.explain_finding is not None:
        if scenario is not None or search.find is not None or output is not None or form not in ("terminal", "json"):
            raise UsageError("--explain-finding takes no SCENARIO, --find or -o, and is shown as terminal or json")
        return explain_finding(search, seed=seed or 0, form=form, file=file, quiet=quiet)
    if scenario is None:
        raise UsageError("SCENARIO is missing: a TOML file or a shipped name; --list shows those")
    text = _text(scenario)
    if show_scenario:
        write_stdout(text)
        return None
    if form not in _FORMATS:
        raise UsageError(f"--output-format {output_format!r}: expected one of {', '.join(_FORMATS)}")
    read = _read(scenario, text)
    first = read.seed if seed is None else seed
    if sweep is not None:
        if output is not None or form not in ("terminal", "json"):
            raise UsageError("--sweep counts outcomes: --output and diagrams are of one seed")
        _deliver(_sweep(read, first, sweep, form), file)
        return None
    if search.find is not None:
        if form not in ("terminal", "json"):
            raise UsageError("--find shows what it found as terminal or json; -o FILE.toml writes it as a scenario")
        target = None if output is None else str(output)
        return find_schedule(
            text, Path(scenario).stem, search, seed=first, form=form, file=file, output=target, quiet=quiet
        )
    if search.tries is not None:
        raise UsageError("--tries is for --find and --explain-finding")
    from kaudit.simulate.output.directory import OccupiedError, write_run
    from kaudit.simulate.output.truth import Truth
    from kaudit.simulate.simulation import Simulation

    simulation = Simulation(read, first, rows).run()
    truth = Truth(simulation)
    if output is not None:
        try:
            write_run(output, simulation, truth)
        except OccupiedError as error:
            raise UsageError(f"--output: {error}") from None
        except OSError as error:
            raise UsageError(f"--output {output} cannot be written: {error.strerror}") from error
    if file or not quiet:
        _deliver(_shown(truth, form, console, scenario), file)
    return None


def _text(scenario: str) -> str:
    """Return the TOML of a file, or of a shipped scenario where no file has that name."""
    path = Path(scenario)
    if path.suffix == ".toml" or path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{scenario}: not UTF-8 at byte {error.start}") from None
        except OSError as error:
            raise UsageError(f"{scenario}: {error.strerror}") from error
    from kaudit.simulate.scenario.shipped import ORDER, scenario_text

    try:
        return scenario_text(scenario)
    except KeyError:
        import difflib

        near = difflib.get_close_matches(scenario, ORDER, 3, cutoff=0.4)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise UsageError(f"no file and no shipped scenario {scenario!r}{hint} (--list)") from None


def _read(name: str, text: str) -> "Scenario":
    from kaudit.simulate.scenario.reading import parse_scenario
    from kaudit.simulate.scenario.tables import ScenarioError

    try:
        return parse_scenario(text, Path(name).stem)
    except ScenarioError as error:
        raise UsageError(f"{name}: {str(error).removeprefix(': ')}") from None


def _list(console: "Console") -> str:
    from kaudit.simulate.scenario.shipped import ORDER, shipped

    width = max(map(len, ORDER)) + 2
    lines: list[str] = []
    for name in ORDER:
        lines += console.wrap(shipped(name).title, name.ljust(width))
    return "\n".join(lines) + "\n"


def _sweep(scenario: "Scenario", first: int, runs: int, form: str) -> str:
    from kaudit.report.sequence.run_text import sweep_lines
    from kaudit.simulate.sweep import sweep

    result = sweep(scenario, first, runs)
    if form == "terminal":
        return "\n".join(sweep_lines(result)) + "\n"
    import json

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


def _shown(truth: "Truth", form: str, console: "Console", named: str) -> str:
    """Return the run in a format; `named` is the scenario as it was asked for."""
    from kaudit.report.sequence.decisions import participants
    from kaudit.report.sequence.run_text import mermaid_diagram, outcome_lines, record_facts, terminal_diagram

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
        from functools import partial

        from kaudit.checks.command_line import quote
        from kaudit.report.sequence import html
        from kaudit.report.sequence.simulated import MOST_STEPS, simulation_page

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
    from kaudit.cli.streams import write_pieces
    from kaudit.cli.targets import output_file

    write_pieces(output_file(file or None, ()), [text])
