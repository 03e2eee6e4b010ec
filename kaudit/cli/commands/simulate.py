"""`kaudit simulate`: play a scenario, write what it leaves behind, show who sent what when."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.options import Quiet, TerminalOptions, VersionOption

_EXAMPLES = """
  kaudit simulate --list
  kaudit simulate six-in-flight
  kaudit simulate acks1-leader-dies -o run && kaudit scan run/broker-2
  kaudit simulate my-cluster.toml --sweep 1000
  kaudit simulate my-cluster.toml --find acknowledged-lost -o lost.toml
  kaudit simulate --explain-finding scan.json#1f9a6c0de2b34875
"""


class RunOptions(OptionGroup, frozen=True, kw_only=True):
    """Which runs of a scenario are played, and where they go."""

    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Seed of all random choices; default: the scenario's own."),
    ] = None
    sweep: Annotated[
        int | None, typer.Option("--sweep", min=1, metavar="N", help="Run N seeds and count the outcomes.")
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="Write log directories, attempts and truth there; with --find the scenario found.",
        ),
    ] = None
    output_format: Annotated[
        str,
        typer.Option("--output-format", metavar="FORMAT[:FILE]", help="terminal, html, mermaid or json."),
    ] = "terminal"
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=0, help="Show at most N messages.")] = 200
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False
    show_scenario: Annotated[
        bool, typer.Option("--show", help="Print the scenario's TOML, as a start for your own.")
    ] = False


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
        typer.Option("--tries", metavar="N", min=1, help="Try at most N schedules (default 1000)."),
    ] = None


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def simulate(  # noqa: PLR0913 - typer reads the options off the signature
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A scenario.toml, or the name of a shipped one.")
    ] = None,
    *,
    run: RunOptions,
    search: SearchOptions,
    terminal: TerminalOptions,
    quiet: Quiet = False,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> int | None:
    """Play a scenario: producers, brokers and replicas in simulated time. The same seed gives the same run."""
    return on_demand("simulation", "run_simulate")(scenario, run, search, terminal.color_choice, quiet=quiet)
