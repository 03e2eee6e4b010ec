"""The groups of options that the baseline commands share."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.option_groups import OptionGroup

DEFAULT_FILE = "kaudit-baseline.json"

Inputs = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="What scan takes, or one saved scan: a .json that scan wrote."),
]


class BaselineAuditOptions(OptionGroup, frozen=True, kw_only=True):
    """The baseline, and the audit whose findings it is compared with."""

    heading = "Audit"

    baseline: Annotated[str, typer.Option("--baseline", metavar="FILE", help="The baseline.")] = DEFAULT_FILE
    select: options.Select = None
    ignore: options.Ignore = None
    broker_version: options.BrokerVersion = "auto"
    quiet: options.Quiet = False
    configuration: options.ConfigurationOptions


class NewEntryOptions(OptionGroup, frozen=True, kw_only=True):
    """Which findings become entries of the baseline, why, and until when."""

    heading = "Entries"

    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why these findings are accepted.")] = None
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="The last day they are accepted: 2026-12-31.")] = (
        None
    )
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Accept notes too.")] = False
