"""`kaudit baseline create|update|prune`: the findings a team has accepted, as a file."""

from typing import Annotated

import typer

from kaudit.cli.baseline_options import BaselineAuditOptions, Inputs, NewEntryOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit baseline create --reason "before the upgrade" /var/lib/kafka/data
  kaudit baseline update --expires 2026-12-31 scan.json
  kaudit scan --baseline kaudit-baseline.json /var/lib/kafka/data
"""


class _NewBaseline(NewEntryOptions, frozen=True, kw_only=True):
    """What a new baseline holds, and whether it may take the place of an old one."""

    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing baseline, with the reasons people wrote in it.")
    ] = False


app = typer.Typer(name="baseline", short_help="Keep known findings in a file.", epilog=_EXAMPLES)


@app.callback()
def _group() -> None:
    """Keep the findings a team knows of in a file, so that only new ones fail."""


@app.command(short_help="Write a new baseline.")
@with_option_groups
def create(context: typer.Context, paths: Inputs, *, entries: _NewBaseline, audit: BaselineAuditOptions) -> int:
    """Write a baseline of all findings there are: errors and warnings."""
    from kaudit.cli import baseline
    from kaudit.policy.baseline import Baseline

    if not entries.force:
        baseline.refuse_to_replace(audit.baseline)
    audited = baseline.audit(settings_of(context), paths, audit)
    return baseline.write_baseline(audited, audit.baseline, audited.added_to(Baseline(), entries))


@app.command(short_help="Add what is new.")
@with_option_groups
def update(context: typer.Context, paths: Inputs, *, entries: NewEntryOptions, audit: BaselineAuditOptions) -> int:
    """Add new findings to a baseline; entries that are there keep their reasons and dates, none is removed."""
    from kaudit.cli import baseline
    from kaudit.policy.baseline import read_baseline

    old = read_baseline(audit.baseline)
    audited = baseline.audit(settings_of(context), paths, audit)
    return baseline.write_baseline(audited, audit.baseline, audited.added_to(old, entries), old)


@app.command(short_help="Remove what is no longer found.")
@with_option_groups
def prune(context: typer.Context, paths: Inputs, *, audit: BaselineAuditOptions) -> int:
    """Remove entries whose findings are no longer there; what this audit could not see stays."""
    from kaudit.cli import baseline
    from kaudit.policy.baseline import read_baseline

    old = read_baseline(audit.baseline)
    audited = baseline.audit(settings_of(context), paths, audit)
    return baseline.write_baseline(audited, audit.baseline, old.without(audited.stale_in(old)), old)
