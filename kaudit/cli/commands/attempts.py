"""`kaudit attempts`: what producers tried, made of segments and server logs, for `kaudit replay`."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import Takes, with_option_groups
from kaudit.cli.options import CONNECTION, PARTITIONS, PROGRAM_LOGS, Paths, Quiet, Redaction, VersionOption
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit attempts --server-log server.log --topic orders /data/kafka
  kaudit attempts --server-log server.log -o attempts.jsonl /data/kafka
  kaudit attempts server.log
  kaudit attempts --broker-version 2.8.1 orders-3 | kaudit replay -
"""


class _General(VersionOption, frozen=True, kw_only=True):
    """What has to do with no command in particular."""

    quiet: Quiet = False


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def attempts(
    paths: Paths,
    *,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where the attempts go; - is stdout.")
    ] = None,
    redaction: Redaction,
    audit: Annotated[ScanOptions, Takes((*PARTITIONS, "broker-version", *PROGRAM_LOGS, "jobs", *CONNECTION))],
    general: _General,
) -> int:
    """Write what producers tried as attempts that kaudit replay answers.

    The batches of the segments are the accepted ones; server logs report refusals, restarts and elections between them.
    Logs alone give the refusals that they state.
    """
    return on_demand("reconstruction", "run_attempts")(paths, audit, output, redaction, quiet=general.quiet)
