"""`kaudit replay`: what would the broker have answered to each attempt."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

USAGE = 2


def replay(
    attempts: Annotated[
        str | None, typer.Argument(metavar="ATTEMPTS.jsonl", help="Attempts, one JSON object a line; - reads stdin.")
    ] = None,
    broker_version: Annotated[
        str, typer.Option("--broker-version", help="Answer as this version, whatever the attempts name.")
    ] = "auto",
    output_format: Annotated[
        list[str] | None,
        typer.Option("--output-format", metavar="FMT[:FILE]", help="table, jsonl or json; repeatable with files."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File of the format without one.")] = None,
    explain: Annotated[
        int | None, typer.Option("--explain", metavar="INDEX", help="Tell one attempt from before to after.")
    ] = None,
    list_profiles: Annotated[
        bool, typer.Option("--list-profiles", help="What every broker version does differently.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="JSON: the producer's state before and after.")
    ] = False,
) -> None:
    """Say what a broker would have answered to each attempt, and why."""
    from kaudit.replay.attempts import AttemptError
    from kaudit.replay.explain import NoSuchAttemptError
    from kaudit.replay.explain import explain as explain_attempt
    from kaudit.replay.explain import list_profiles as profiles
    from kaudit.replay.profile import UnknownVersionError, profile_for
    from kaudit.replay.sinks import OutputError, deliver, opened, parse_outputs

    try:
        if list_profiles:
            deliver((f"{line}\n" for line in profiles()), output)
            return
        if attempts is None:
            _fail("ATTEMPTS.jsonl is missing; - reads stdin")
        profile = None if broker_version == "auto" else profile_for(broker_version)
        if explain is not None:
            with opened(attempts) as lines:
                deliver((f"{line}\n" for line in explain_attempt(lines, explain, profile)), output)
            return
        targets = parse_outputs(output_format or ["table"], output)
        with opened(attempts) as lines:
            targets.write(lines, profile, with_state=verbose)
    except AttemptError as error:
        _fail(f"{attempts}: {error}")
    except (UnknownVersionError, NoSuchAttemptError, OutputError) as error:
        _fail(str(error))
    except (OSError, UnicodeDecodeError) as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    from kaudit.replay.render import plain

    typer.echo(f"kaudit replay: {plain(message)}", err=True)
    raise typer.Exit(USAGE)
