"""`kaudit attempts`: what producers tried, made of segments and server logs, for `kaudit replay`."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import ApplicationLogOptions, ConnectionOptions, PartitionFilter
from kaudit.cli.commands import on_demand
from kaudit.cli.option_groups import with_option_groups

_EXAMPLES = """\b
Examples:
  kaudit attempts --server-log server.log --topic orders /data/kafka
  kaudit attempts --server-log server.log -o attempts.jsonl /data/kafka
  kaudit attempts --broker-version 2.8.1 orders-3 | kaudit replay -
"""

app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def attempts(  # noqa: PLR0913 - typer reads the options off the signature
    paths: options.Paths,
    *,
    broker_version: str = "auto",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where the attempts go; - is stdout.")
    ] = None,
    logs: ApplicationLogOptions,
    chosen: PartitionFilter,
    cluster: ConnectionOptions,
    version: options.VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Write what producers tried as attempts that kaudit replay answers.

    The batches of the segments are the accepted ones; server logs report refusals, restarts and elections between them.
    """
    return on_demand("reconstruction", "run_attempts")(paths, broker_version, output, logs, chosen, cluster)
