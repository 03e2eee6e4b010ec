"""`kaudit diff`: replicas held against one another."""

from typing import Annotated

import typer

from kaudit.cli.audit_options import DiffOptions, DisplayOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit diff /backup/broker1 /backup/broker2 /backup/broker3
  kaudit diff --topic orders --name old=/mnt/b1/kafka --name new=/data/kafka \\
      /mnt/b1/kafka /data/kafka
  kaudit diff b1/orders-3 b2/orders-3
  kaudit diff before-restart/b1 after-restart/b1
"""

_Replicas = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR", help="One directory a replica: a broker's log directory, or a partition's; two or more."
    ),
]
_Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME=DIR",
        help="What to call a replica; default: the shortest path suffix that is unique. Repeatable.",
    ),
]


app = typer.Typer()


@app.command(short_help="Compare replicas batch by batch.", epilog=_EXAMPLES)
@with_option_groups
def diff(
    context: typer.Context,
    paths: _Replicas,
    *,
    name: _Names = None,
    comparison: DiffOptions,
    display: DisplayOptions,
) -> int:
    """Compare replicas of the same partitions batch by batch: which agree, which are behind, where they part.

    Normal differences are ignored: other segment boundaries, an older log start, compaction. Copies of one broker made at
    different times (by meta.properties) are not replicas: shown is what it appended or truncated in between. Nothing is
    ever written into DIR.
    """
    from kaudit.cli.audit import run_diff
    from kaudit.cli.parsing import parse_names

    names = parse_names(name or (), paths)
    request = comparison.request(settings_of(context), paths, display)
    # numpy only loads now, when every option is known to be right.
    from kaudit.engines import local, replicas

    return run_diff(request, replicas.name_replicas(paths, names), replicas.diff, local.record)
