"""`kaudit baseline create|update|prune`: the findings a team knows of, as a file."""

from datetime import date
from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.settings.command import ConfiguredCommand
from kaudit.cli.settings.settings import Settings
from kaudit.cli.typed import typed

_EXAMPLES = """\b
Examples:
  kaudit baseline create --reason "before the upgrade" /var/lib/kafka/data
  kaudit baseline update --expires 2026-12-31 scan.json
  kaudit scan --baseline kaudit-baseline.json /var/lib/kafka/data
"""

Inputs = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="What scan takes, or one saved scan: a .json that scan wrote."),
]
File = Annotated[str, typer.Option("--baseline", metavar="FILE", help="The baseline.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why these findings are accepted.")]
Expires = Annotated[str | None, typer.Option(metavar="DATE", help="The last day they are: 2026-12-31.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a baseline that is there, with what people wrote in it.")]
Notes = Annotated[bool, typer.Option("--verbose", "-v", help="Take notes into the baseline too.")]
_DEFAULT = "kaudit-baseline.json"

baseline = typer.Typer(name="baseline", rich_markup_mode=None, pretty_exceptions_enable=False, epilog=_EXAMPLES)


@baseline.callback()
def _group() -> None:
    """Keep the findings a team knows of in a file, so that only new ones fail."""


@baseline.command(cls=ConfiguredCommand, short_help="Write a new baseline.")
@typed
def create(
    settings: Settings,
    paths: Inputs,
    *,
    baseline: File = _DEFAULT,
    reason: Reason = None,
    expires: Expires = None,
    force: Force = False,
    select: options.Select = None,
    ignore: options.Ignore = None,
    broker_version: options.BrokerVersion = "auto",
    verbose: Notes = False,
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
) -> int:
    """Write a baseline of all findings there are: errors and warnings."""
    from kaudit.cli.known import audit, refuse_to_replace, write_baseline
    from kaudit.policy.baseline import Baseline

    if not force:
        refuse_to_replace(baseline)
    day = _day(expires)
    seen = audit(settings, paths, baseline, select or (), ignore or (), broker_version, quiet=quiet)
    return write_baseline(
        seen, baseline, Baseline().adding(seen.worth_keeping(notes=verbose), reason=reason, expires=day)
    )


@baseline.command(cls=ConfiguredCommand, short_help="Add what is new.")
@typed
def update(
    settings: Settings,
    paths: Inputs,
    *,
    baseline: File = _DEFAULT,
    reason: Reason = None,
    expires: Expires = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    broker_version: options.BrokerVersion = "auto",
    verbose: Notes = False,
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
) -> int:
    """Add new findings to a baseline; entries that are there keep their reasons and dates, none is removed."""
    from kaudit.cli.known import audit, write_baseline
    from kaudit.policy.baseline import read_baseline

    old, day = read_baseline(baseline), _day(expires)
    seen = audit(settings, paths, baseline, select or (), ignore or (), broker_version, quiet=quiet)
    return write_baseline(
        seen, baseline, old.adding(seen.worth_keeping(notes=verbose), reason=reason, expires=day), old
    )


@baseline.command(cls=ConfiguredCommand, short_help="Remove what is seen no more.")
@typed
def prune(
    settings: Settings,
    paths: Inputs,
    *,
    baseline: File = _DEFAULT,
    select: options.Select = None,
    ignore: options.Ignore = None,
    broker_version: options.BrokerVersion = "auto",
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
) -> int:
    """Remove entries whose findings are seen no more; what this audit could not see stays."""
    from kaudit.cli.known import audit, write_baseline
    from kaudit.policy.baseline import read_baseline

    old = read_baseline(baseline)
    seen = audit(settings, paths, baseline, select or (), ignore or (), broker_version, quiet=quiet)
    return write_baseline(seen, baseline, old.without(seen.stale_in(old)), old)


def _day(expires: str | None) -> date | None:
    from kaudit.policy.baseline import parse_day

    return None if expires is None else parse_day(expires, "--expires")


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(baseline, short_help="Keep known findings in a file.")
