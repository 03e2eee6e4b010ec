"""Runs `kaudit groups`: formats of rows, where they go, and the exit code."""

import sys

from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import PARQUET, RowTarget, console_of, parse_row_targets, show
from kaudit.cli.options import DisplayOptions, RowOutput
from kaudit.cli.targets import write_rows
from kaudit.listings.groups import GroupListing, list_groups
from kaudit.report.console import visible
from kaudit.report.json_rows import rows_jsonl
from kaudit.report.text.groups import document, text
from kaudit.scanning.options import ScanOptions


def run_groups(options: ScanOptions, group: str | None, output: RowOutput, display: DisplayOptions) -> int:
    """List groups in every format asked for; return the exit code."""
    targets = parse_row_targets(output.output_format or (), output.output, options.paths)
    names = output.redaction.redactor()
    listing = list_groups(options, group)
    if names is not None:
        listing.rows = [names.row_of_inspect(row) for row in listing.rows]
        listing.not_checked = [names.redacted(note) for note in listing.not_checked]
        listing.inputs = [names.path(path) for path in listing.inputs]
    for target in targets:
        _write(listing, target, display)
    for note in listing.not_checked:
        sys.stderr.write(f"kaudit: {visible(note.path)}: {visible(note.reason)}\n")
    return ExitCode.UNREADABLE if listing.incomplete else ExitCode.OK


def _write(listing: GroupListing, target: RowTarget, display: DisplayOptions) -> None:
    if target.form == PARQUET:
        assert target.file is not None
        write_rows("groups", listing.rows, target.file, listing.inputs)
    elif target.form == "jsonl":
        show(target, rows_jsonl(listing.rows), display.terminal)
    elif target.form == "json":
        show(target, document(listing.rows, lambda: listing), display.terminal)
    else:
        show(target, text(listing, console_of(target, display.terminal)), display.terminal)
