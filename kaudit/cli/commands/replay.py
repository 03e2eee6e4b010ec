"""`kaudit replay`: what would the broker have answered to each attempt."""

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import OutputOptions
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice

if TYPE_CHECKING:
    from kaudit.broker.recorded_log import RecordedLog

_EXAMPLES = """\b
Examples:
  kaudit replay attempts.jsonl
  kaudit replay --broker-version 2.0.1 --explain 17 attempts.jsonl
  kaudit replay --output-format html:replay.html attempts.jsonl
  kaudit replay --on /data/kafka --topic orders --partition 3 attempts.jsonl
"""


class Memory(enum.Enum):
    """What the broker remembers of the log it begins with."""

    RESTART = "restart"
    FULL = "full"


class _ReplayOutput(OptionGroup, frozen=True, kw_only=True):
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
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="JSON: the producer's state before and after.")] = (
        False
    )


class _FirstState(OptionGroup, frozen=True, kw_only=True):
    """What the broker begins with."""

    heading = "Log to begin with"

    on: Annotated[
        Path | None, typer.Option("--on", metavar="DIR", help="Begin with a partition of this log directory.")
    ] = None
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="The topic in --on.")] = None
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="The partition in --on.")] = None
    memory: Annotated[
        Memory,
        typer.Option("--memory", metavar="MEMORY", help="With --on, a broker that has just restarted, or never did."),
    ] = Memory.RESTART

    @property
    def arguments(self) -> list[str]:
        """The options as they were given."""
        if self.on is None:
            return []
        place = ["--on", str(self.on), "--topic", str(self.topic), "--partition", str(self.partition)]
        return place if self.memory is Memory.RESTART else [*place, "--memory", self.memory.value]

    def recorded_log(self) -> "RecordedLog | None":
        """Return what the broker begins with. Raises UsageError for options that belong together."""
        if self.on is None:
            if self.topic is not None or self.partition is not None or self.memory is Memory.FULL:
                raise UsageError("--topic, --partition and --memory belong to --on DIR")
            return None
        if self.topic is None or self.partition is None:
            raise UsageError("--on needs --topic and --partition")
        from kaudit.replay.log_directory import NoSegmentsError, read_recorded_log

        try:
            return read_recorded_log(self.on, self.topic, self.partition, restarts=self.memory is Memory.RESTART)
        except NoSegmentsError as error:
            raise UsageError(str(error)) from None


app = typer.Typer()


@app.command(short_help="Say what a broker would have answered.", epilog=_EXAMPLES)
@with_option_groups
def replay(  # noqa: PLR0913 - typer reads the options off the signature
    attempts: Annotated[
        str | None, typer.Argument(metavar="ATTEMPTS.jsonl", help="Attempts, one JSON object a line; - reads stdin.")
    ] = None,
    *,
    broker_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Answer as this version, whatever the attempts name.")
    ] = "auto",
    explain: Annotated[
        int | None,
        typer.Option("--explain", metavar="INDEX", help="Explain one attempt: state before, rule, state after."),
    ] = None,
    list_profiles: Annotated[
        bool, typer.Option("--list-profiles", help="What every broker version does differently.")
    ] = False,
    output: _ReplayOutput,
    begin: _FirstState,
    version: options.VersionOption,  # noqa: ARG001 - its callback has answered
) -> None:
    """Say what a broker would have answered to each attempt, and why."""
    from kaudit.broker.broker import Broker
    from kaudit.broker.releases.profile import UnknownVersionError, profile_for
    from kaudit.cli.replay_output import STDIN, OutputError, deliver, opened, parse_outputs
    from kaudit.cli.stdout import stdout_console
    from kaudit.cli.targets import output_file
    from kaudit.replay.attempt_lines import AttemptError
    from kaudit.report.text.broker_rules import list_profiles as profiles
    from kaudit.report.text.explain_attempt import NoSuchAttemptError
    from kaudit.report.text.explain_attempt import explain as explain_attempt

    width = stdout_console(ColorChoice.NEVER).width
    read = [str(path) for path in (begin.on, attempts) if path not in (None, STDIN)]
    try:
        place = output_file(None if output.output is None else str(output.output), read)
        if list_profiles:
            deliver(profiles(), place, width)
            return
        if attempts is None:
            raise UsageError("ATTEMPTS.jsonl is missing; - reads stdin")
        profile = None if broker_version == "auto" else profile_for(broker_version)
        recorded = begin.recorded_log()
        if explain is not None:
            with opened(attempts) as lines:
                deliver(explain_attempt(lines, explain, profile, recorded), place, width)
            return
        targets = parse_outputs(output.output_format or ["table"], place)
        for target in targets.targets:
            output_file(None if target.file is None else str(target.file), read)
        broker = Broker(profile, recorded)
        arguments = [attempts, *([] if profile is None else ["--broker-version", broker_version]), *begin.arguments]
        with opened(attempts) as lines:
            targets.write(lines, broker, arguments, with_state=output.verbose, width=width)
        _report_unread(attempts, broker.unread_config)
    except AttemptError as error:
        raise UsageError(f"{attempts}: {error}") from None
    except (UnknownVersionError, NoSuchAttemptError, OutputError) as error:
        raise UsageError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename or attempts}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{attempts}: not UTF-8 at byte {error.start}") from error


def _report_unread(attempts: str, config: dict[str, str | None]) -> None:
    """Name the configuration that no answer depends on, and what may have been meant."""
    from kaudit.report.console import visible

    for name, meant in config.items():
        hint = "" if meant is None else f"; {meant} is"
        sys.stderr.write(f"kaudit: {attempts}: configuration {visible(name)} is not used by replay{hint}\n")
