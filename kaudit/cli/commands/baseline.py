"""`kaudit baseline create|update|prune`: the findings a team has accepted, as a file."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import ConfigurationOptions, Quiet, SelectionOptions
from kaudit.cli.settings import settings_of
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """\b
Examples:
  kaudit baseline create --reason "before the upgrade" /var/lib/kafka/data
  kaudit baseline update --expires 2026-12-31 scan.json
  kaudit scan --baseline kaudit-baseline.json /var/lib/kafka/data
"""

_CREATED = """
  kaudit baseline create --reason "before the upgrade" /var/lib/kafka/data
  kaudit baseline create --expires 2026-12-31 /var/lib/kafka/data
  kaudit baseline create --baseline known.json scan.json
"""

_PRUNED = """
  kaudit baseline prune --baseline known.json scan.json
  kaudit baseline prune --select KA1 /var/lib/kafka/data
  kaudit baseline prune --broker-version 2.8.2 /var/lib/kafka/data
"""

_Inputs = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="The same as for scan, or one saved scan (.json)."),
]


class BaselineAudit(OptionGroup, frozen=True, kw_only=True):
    """The baseline, and the audit whose findings it is compared with."""

    heading = "Audit"

    baseline: Annotated[str, typer.Option("--baseline", metavar="FILE", help="The baseline.")] = "kaudit-baseline.json"
    selection: SelectionOptions
    audit: Annotated[ScanOptions, Takes(("broker-version",))]
    quiet: Quiet = False
    configuration: ConfigurationOptions


class NewEntries(OptionGroup, frozen=True, kw_only=True):
    """Which findings become entries of the baseline, why, and until when."""

    heading = "Entries"

    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why these findings are accepted.")] = None
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="The last day they are accepted: 2026-12-31.")] = (
        None
    )
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Accept notes too.")] = False


class _NewBaseline(NewEntries, frozen=True, kw_only=True):
    """What a new baseline holds, and whether it may take the place of an old one."""

    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing baseline, with the reasons people wrote in it.")
    ] = False


app = typer.Typer(name="baseline", epilog=_EXAMPLES)


@app.callback()
def _group() -> None:
    """Keep the findings a team knows of in a file, so that only new ones fail."""


@app.command(short_help="Write a new baseline.", epilog=_CREATED)
@with_option_groups
def create(context: typer.Context, paths: _Inputs, *, entries: _NewBaseline, audit: BaselineAudit) -> int:
    """Write a baseline of all errors and warnings that are found."""
    return on_demand("baselines", "run_create")(settings_of(context), paths, entries, audit, force=entries.force)


@app.command(short_help="Add what is new.", epilog=_CREATED.replace("create", "update"))
@with_option_groups
def update(context: typer.Context, paths: _Inputs, *, entries: NewEntries, audit: BaselineAudit) -> int:
    """Add new findings to a baseline. Its entries keep their reasons and dates; none is removed."""
    return on_demand("baselines", "run_update")(settings_of(context), paths, entries, audit)


@app.command(short_help="Remove what is no longer found.", epilog=_PRUNED)
@with_option_groups
def prune(context: typer.Context, paths: _Inputs, *, audit: BaselineAudit) -> int:
    """Remove entries whose findings are no longer there; entries that this audit does not cover stay."""
    return on_demand("baselines", "run_prune")(settings_of(context), paths, audit)
