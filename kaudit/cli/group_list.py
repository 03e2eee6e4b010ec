"""Runs `kaudit groups`: formats of rows, where they go, and the exit code."""

from collections.abc import Iterable, Sequence
from importlib import import_module

from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import HTML, PARQUET, ROW_FORMATS, RowTarget, console_of, parse_row_targets, show
from kaudit.cli.options import DisplayOptions, EngineOptions, RowOutput
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.streams import write_notes
from kaudit.cli.targets import write_rows
from kaudit.listings.groups import (
    OF_ONE_GROUP,
    GroupListing,
    GroupTask,
    ListedGroups,
    list_groups,
    list_partition,
)
from kaudit.report.json_rows import rows_jsonl
from kaudit.report.text.groups import document, text
from kaudit.scanning.options import ScanOptions


def run_groups(
    options: ScanOptions, group: str | None, output: RowOutput, asked: EngineOptions, display: DisplayOptions
) -> int:
    """List groups in every format asked for; return the exit code."""
    targets = parse_row_targets(output.output_format or (), output.output, options.given, (*ROW_FORMATS, HTML))
    names, engine = output.redaction.redactor(), choose_engine(asked)
    pictures = any(target.form == HTML for target in targets)
    with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:

        def read(work: Sequence[GroupTask]) -> Iterable[ListedGroups]:
            progress.start(sum(task.bytes for task in work))
            return engine.each_partition(work, list_partition, options, progress)

        listing = list_groups(options, group, read, commits=pictures or group is not None)
    if names is not None:
        listing.rows = [names.row_of_inspect(row) for row in listing.rows]
        listing.not_checked = [names.redacted(note) for note in listing.not_checked]
        listing.inputs = [names.path(path) for path in listing.inputs]
    every = listing.rows
    for target in targets:
        if target.form != HTML and group is None:
            listing.rows = [row for row in every if row["row"] not in OF_ONE_GROUP]
        _write(listing, target, display)
        listing.rows = every
    write_notes(listing.not_checked)
    return ExitCode.UNREADABLE if listing.incomplete else ExitCode.OK


def _write(listing: GroupListing, target: RowTarget, display: DisplayOptions) -> None:
    if target.form == PARQUET:
        assert target.file is not None
        write_rows("groups", listing.rows, target.file, listing.inputs)
    elif target.form == HTML:
        page: str = import_module("kaudit.report.html.groups_page").group_page(listing)  # few ask for a page
        show(target, [page], display.terminal)
    elif target.form == "jsonl":
        show(target, rows_jsonl(listing.rows), display.terminal)
    elif target.form == "json":
        show(target, document(listing), display.terminal)
    else:
        show(target, text(listing, console_of(target, display.terminal)), display.terminal)
