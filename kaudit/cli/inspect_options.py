"""The options of `kaudit inspect` alone."""

from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import Filter, LogFacts, OutputOptions
from kaudit.cli.option_groups import OptionGroup
from kaudit.errors import UsageError

if TYPE_CHECKING:  # the decoder of records comes with it
    from kaudit.inspect.row_filter import RowFilter
    from kaudit.inspect.rows import BytesFormatter


class RowOutput(OutputOptions, frozen=True, kw_only=True):
    """Which formats, and where they go: rows have fewer formats than findings."""

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            help="table (default), json, jsonl or parquet (-o DIR). Repeatable.",
        ),
    ] = None


class ContentOptions(OptionGroup, frozen=True, kw_only=True):
    """How much of each batch is shown."""

    heading = "Records"

    records: Annotated[
        bool, typer.Option("--records", help="Show the records of each batch, with keys and values.")
    ] = False
    hex_bytes: Annotated[
        bool, typer.Option("--hex", help="Keys and values in hex; default: text where it is UTF-8.")
    ] = False
    utf8: Annotated[bool, typer.Option("--utf8", help="Keys and values as UTF-8 whatever they are.")] = False
    max_bytes: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Bytes shown of each key and value; default: 64 in tables, else all."),
    ] = None
    max_decompressed: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most bytes one batch may become.")
    ] = None

    def formatter(self) -> "BytesFormatter":
        """Return what writes keys and values. Raises UsageError for options that exclude each other."""
        if self.hex_bytes and self.utf8:
            raise UsageError("--hex and --utf8: choose one")
        from kaudit.inspect.rows import BytesForm, BytesFormatter

        form = BytesForm.HEX if self.hex_bytes else BytesForm.UTF8 if self.utf8 else BytesForm.AUTO
        return BytesFormatter(form, self.max_bytes)


class RowSelection(Filter, frozen=True, kw_only=True):
    """Which rows are shown."""

    around: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="The batch of this offset and its neighbours.")
    ] = None
    at: Annotated[
        int | None, typer.Option(metavar="POSITION", min=0, help="The header at this byte, field by field.")
    ] = None
    offset: Annotated[str | None, typer.Option(metavar="A[..B]", help="Only this offset, or these (inclusive).")] = None
    producer_id: options.ProducerIds = None
    producer_epoch: Annotated[
        list[int] | None,
        typer.Option("--producer-epoch", metavar="N", min=0, help="Only this producer epoch. Repeatable."),
    ] = None
    leader_epoch: Annotated[
        list[int] | None, typer.Option("--leader-epoch", metavar="N", min=0, help="Only this leader epoch. Repeatable.")
    ] = None
    since: options.Since = None
    until: options.Until = None

    def row_filter(self) -> "RowFilter":
        """Return the filter these options make. Raises UsageError for a number or time that is none."""
        from kaudit.cli.inspection import parse_offsets
        from kaudit.cli.parsing import check_int64, parse_window

        for numbers, option in (
            (self.producer_id, "--producer-id"),
            (self.producer_epoch, "--producer-epoch"),
            (self.leader_epoch, "--leader-epoch"),
        ):
            check_int64(numbers or (), option)
        since_ms, until_ms = parse_window(self.since, self.until)
        first_offset, last_offset = parse_offsets(self.offset)
        from kaudit.inspect.row_filter import RowFilter

        return RowFilter(
            frozenset(self.producer_id or ()),
            frozenset(self.producer_epoch or ()),
            frozenset(self.leader_epoch or ()),
            first_offset,
            last_offset,
            since_ms,
            until_ms,
        )


class InspectedLog(OptionGroup, frozen=True, kw_only=True):
    """What a file does not say of itself."""

    heading = LogFacts.heading

    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Topic of batches that name none.")] = None
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="Partition of batches that name none.")] = (
        None
    )
    broker_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The broker that would load damaged files, e.g. 2.0.1; auto: any.")
    ] = "auto"
