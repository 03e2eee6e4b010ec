"""`kaudit groups`: consumer groups, their members, and what they have committed."""

from typing import Annotated

import typer
from msgspec.structs import replace

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import Compared, DisplayOptions, EngineOptions, OptionalPaths, RowOutput, inputs_of

_EXAMPLES = """
  kaudit groups /var/lib/kafka/data
  kaudit groups --group billing /var/lib/kafka/data
  kaudit groups --topic orders /var/lib/kafka/data
  kaudit groups --output-format json /var/lib/kafka/data
"""

app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def groups(  # noqa: PLR0913 - its groups of options
    paths: OptionalPaths = None,
    *,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="NAME", help="Only this group, with each of its commits and generations in order."
        ),
    ] = None,
    output: RowOutput,
    engine: EngineOptions,
    compared: Compared,
    display: DisplayOptions,
) -> int:
    """List consumer groups: members, generation, committed offsets, the lag behind the logs given, and steps that were not plain progress.

    All of it is read from __consumer_offsets. A scan reports its faults as findings (KA900 to KA903).
    """
    return on_demand("group_list", "run_groups")(
        replace(compared, paths=inputs_of(paths, compared)), group, output, engine, display
    )
