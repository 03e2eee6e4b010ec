"""`kaudit dedup`: the records that a consumer reads twice, and how it could recognise them."""

import typer
from msgspec.structs import replace

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import Compared, DisplayOptions, OptionalPaths, RowOutput, inputs_of
from kaudit.cli.settings import settings_of
from kaudit.scanning.comparison_options import RecordOptions

_EXAMPLES = """
  kaudit dedup /var/lib/kafka/data
  kaudit dedup --isolation-level read_committed orders-3
  kaudit dedup --identity key,value:order.version orders-3
  kaudit dedup --output-format parquet -o suspects orders-3
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def dedup(  # noqa: PLR0913 - its groups of options
    context: typer.Context,
    paths: OptionalPaths = None,
    *,
    records: RecordOptions,
    output: RowOutput,
    compared: Compared,
    display: DisplayOptions,
) -> int:
    """List the records that repeat earlier ones: which, why, and by what a consumer of these logs can recognise them.

    Each record is compared with all before it in its partition. Change events of Debezium and CloudEvents are recognised by their
    own ids. Keys are shown as SHA-256, other content never. -v lists each record.
    """
    scan = replace(compared, paths=inputs_of(paths, compared), compacted_topics=settings_of(context).compacted_topics)
    return on_demand("deduplication", "run_dedup")(scan, output, records, display)
