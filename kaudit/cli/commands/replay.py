"""`kaudit replay`: what would the broker have answered to each attempt."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.options import OutputOptions, Redaction, VersionOption

_EXAMPLES = """
  kaudit replay attempts.jsonl
  kaudit replay --broker-version 2.0.1 --explain 17 attempts.jsonl
  kaudit replay --output-format html:replay.html attempts.jsonl
  kaudit replay --on /data/kafka --topic orders --partition 3 attempts.jsonl
"""


class Memory(enum.Enum):
    """What the broker remembers of the log it begins with."""

    RESTART = "restart"
    FULL = "full"


class ReplayOptions(OptionGroup, frozen=True, kw_only=True):
    """As which broker to answer, and what to show instead of answers."""

    broker_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Answer as this version, whatever the attempts name.")
    ] = "auto"
    explain: Annotated[
        int | None,
        typer.Option("--explain", metavar="INDEX", help="Explain one attempt: state before, rule, state after."),
    ] = None
    list_profiles: Annotated[
        bool, typer.Option("--list-profiles", help="List what every broker version does differently.")
    ] = False


class ReplayOutput(OptionGroup, frozen=True, kw_only=True):
    """Which formats, and where they go."""

    heading = OutputOptions.heading

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format", metavar="FORMAT[:FILE]", help="table, jsonl, json or html; repeatable with files."
        ),
    ] = None
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File of the format without one.")
    ] = None
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="With json and jsonl: add the producer's state before and after.")
    ] = False
    redaction: Redaction = Redaction()


class FirstState(OptionGroup, frozen=True, kw_only=True):
    """What the broker begins with."""

    heading = "Log to begin with"

    on: Annotated[
        Path | None, typer.Option("--on", metavar="DIR", help="Begin with a partition of this log directory.")
    ] = None
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="The topic in --on.")] = None
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="The partition in --on.")] = None
    memory: Annotated[
        Memory,
        typer.Option("--memory", metavar="MEMORY", help="With --on: the broker has just restarted, or never did."),
    ] = Memory.RESTART

    @property
    def arguments(self) -> list[str]:
        """The options as they were given."""
        if self.on is None:
            return []
        place = ["--on", str(self.on), "--topic", str(self.topic), "--partition", str(self.partition)]
        return place if self.memory is Memory.RESTART else [*place, "--memory", self.memory.value]


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def replay(
    attempts: Annotated[
        str | None, typer.Argument(metavar="ATTEMPTS.jsonl", help="Attempts, one JSON object a line; - reads stdin.")
    ] = None,
    *,
    asked: ReplayOptions,
    output: ReplayOutput,
    begin: FirstState,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Say what a broker would have answered to each attempt, and why."""
    return on_demand("replaying", "run_replay")(attempts, asked, output, begin)
