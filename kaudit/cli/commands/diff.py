"""`kaudit diff`: replicas compared with one another."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import AuditOptions, Compared, TableOutput
from kaudit.cli.settings import settings_of

_EXAMPLES = """\b
Examples:
  kaudit diff /backup/broker1 /backup/broker2 /backup/broker3
  kaudit diff --topic orders --name old=/mnt/b1/kafka --name new=/data/kafka \\
      /mnt/b1/kafka /data/kafka
  kaudit diff b1/orders-3 b2/orders-3
  kaudit diff before-restart/b1 after-restart/b1
  kaudit diff --fingerprint /data/kafka > site-a.json
  kaudit diff site-a.json /data/kafka
  kaudit diff report.json /data/kafka
"""


class DiffOptions(AuditOptions, frozen=True, kw_only=True):
    """What `diff` compares, and how."""

    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME=DIR",
            help="What to call a replica; default: the shortest path suffix that is unique. Repeatable.",
        ),
    ] = None
    fingerprint: Annotated[
        bool,
        typer.Option(
            "--fingerprint",
            help="Write digests of the batches in one DIR, as JSON, for another site to compare with its own; with a "
            "fingerprint besides DIR, narrower ones where the two differ.",
        ),
    ] = False
    audit: Compared
    output: TableOutput


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def diff(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR",
            help="One directory a replica: a broker's log directory, or a partition's; two or more. Or a fingerprint "
            "(.json, or - for stdin) and a directory, or two fingerprints; or a report of 'kaudit scan --digests' and "
            "directories.",
        ),
    ],
    *,
    options: DiffOptions,
) -> int:
    """Compare replicas of the same partitions batch by batch: which agree, which lag, where they diverge.

    Normal differences are ignored: other segment boundaries, an older log start, compaction. Copies of one broker made at
    different times (by meta.properties) are not replicas: diff shows what the broker appended or truncated in between. Nothing is
    ever written into DIR.
    """
    return on_demand("comparison", "run_diff")(settings_of(context), paths, options)
