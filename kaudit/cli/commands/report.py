"""`kaudit report`: a saved scan in another format."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.exits import FailOn
from kaudit.report.console import ColorChoice


def report(
    context: typer.Context,
    saved: Annotated[str, typer.Argument(metavar="SAVED.json", help="What scan wrote with json; - reads stdin.")],
    *,
    output_format: options.OutputFormats = None,
    output: options.OutputFile = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    severity: options.SeverityOption = None,
    fail_on: options.FailOnOption = FailOn.ERROR,
    exit_zero: options.ExitZero = False,
    baseline: options.BaselineOption = None,
    max_findings: options.MaxFindings = None,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    reproducible: options.Reproducible = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    from kaudit.cli.audit import Request
    from kaudit.cli.decisions import parse_policy
    from kaudit.cli.parsing import parse_selection
    from kaudit.cli.rendering import run_report
    from kaudit.cli.settings.command import settings_of
    from kaudit.cli.targets import parse_targets
    from kaudit.pipeline.options import ScanOptions

    request = Request(
        options=ScanOptions(paths=[saved]),
        selection=parse_selection(select or (), ignore or ()),
        targets=parse_targets(output_format or (), output, [saved]),
        fail_on=fail_on,
        exit_zero=exit_zero,
        color=ColorChoice.NEVER if no_color else color,
        quiet=quiet,
        verbose=verbose,
        reproducible=reproducible,
        policy=parse_policy(severity or (), baseline, max_findings, settings_of(context)),
    )
    return run_report(request, saved)
