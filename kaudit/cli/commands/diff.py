"""`kaudit diff`: replicas held against one another."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.exits import FailOn
from kaudit.pipeline.options import Depth
from kaudit.report.console import ColorChoice

_Replicas = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR", help="One directory a replica: a broker's log directory, or a partition's; two or more."
    ),
]
_Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name", metavar="NAME=DIR", help="What to call a replica; default: what tells its path apart. Repeatable."
    ),
]


def diff(
    context: typer.Context,
    paths: _Replicas,
    *,
    name: _Names = None,
    output_format: options.OutputFormats = None,
    output: options.OutputFile = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    severity: options.SeverityOption = None,
    fail_on: options.FailOnOption = FailOn.ERROR,
    exit_zero: options.ExitZero = False,
    baseline: options.BaselineOption = None,
    max_findings: options.MaxFindings = None,
    topic: options.Topics = None,
    partition: options.Partitions = None,
    log_start_offset: options.LogStartOffset = None,
    compacted: options.Compacted = False,
    jobs: options.Jobs = None,
    depth: options.DepthOption = Depth.CRC,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    reproducible: options.Reproducible = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> int:
    """Compare replicas of the same partitions batch by batch: which agree, which are behind, where they part.

    Healthy differences are none: other segment boundaries, an older log start, compaction. Nothing is ever written
    into DIR.
    """
    from kaudit.cli.audit import Request, run_diff
    from kaudit.cli.decisions import parse_policy
    from kaudit.cli.parsing import parse_names, parse_selection
    from kaudit.cli.settings.command import settings_of
    from kaudit.cli.targets import parse_targets
    from kaudit.pipeline.options import ScanOptions

    settings = settings_of(context)
    names = parse_names(name or (), paths)
    request = Request(
        options=ScanOptions(
            paths=paths,
            topics=topic or (),
            partitions=partition or (),
            log_start_offset=log_start_offset,
            compacted=compacted,
            compacted_topics=tuple(rule.pattern for rule in settings.topics if rule.compacted),
            jobs=jobs,
            depth=depth,
        ),
        selection=parse_selection(select or (), ignore or ()),
        targets=parse_targets(output_format or (), output, paths),
        fail_on=fail_on,
        exit_zero=exit_zero,
        color=ColorChoice.NEVER if no_color else color,
        quiet=quiet,
        verbose=verbose,
        reproducible=reproducible,
        policy=parse_policy(severity or (), baseline, max_findings, settings),
        compares=True,
    )
    # numpy only loads now, when every option is known to be right.
    from kaudit.engines import replicas

    return run_diff(request, replicas.name_replicas(paths, names), replicas.diff)
