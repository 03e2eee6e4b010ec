"""Running `kaudit dedup`: formats of rows, where they go, and the exit code."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import PARQUET, RowTarget, console_of, parse_row_targets, show
from kaudit.cli.loading import loaded
from kaudit.cli.options import DisplayOptions, RowOutput
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.request import nothing_audited
from kaudit.cli.targets import write_rows
from kaudit.engines.repeated_records import repeated_records
from kaudit.errors import NothingToAuditError
from kaudit.listings.duplicates import MAX_RANGES, DuplicateListing
from kaudit.report.console import visible
from kaudit.report.text.duplicates import document, duplicate_rows, jsonl, not_compared, summary_text
from kaudit.report.text.inspect_table import table
from kaudit.scanning.comparison_options import RecordOptions
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from kaudit.results.redaction import Redactor

_IN_MEMORY = 16_000_000
"""Characters of a table that are held in memory."""

_RANGES_SHOWN = 10
"""Ranges shown above the rows, without --verbose."""


def run_dedup(options: ScanOptions, output: RowOutput, asked: RecordOptions, display: DisplayOptions) -> int:
    """List the duplicates in every format asked for; return the exit code."""
    targets = parse_row_targets(output.output_format or (), output.output, options.given)
    names = output.redaction.redactor()
    level = asked.isolation_level.value
    with ExitStack() as held:
        try:
            with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:
                listing = held.enter_context(repeated_records(options, progress, asked))
        except NothingToAuditError as error:
            # whoever parses stdout gets a valid document also now
            if names is not None:
                error = names.of_error(error, options.given)
            nothing = DuplicateListing(nothing_audited(options, error), (), open_segment)
            for target in targets:
                if target.form != "table":
                    _write(nothing, target, level, display, names)
            raise error from None
        for target in targets:
            _write(listing, target, level, display, names)
        shown = listing if names is None else loaded("redacting", "redacted_duplicates")(names, listing)
        for note in (*not_compared(shown), *shown.failed):
            sys.stderr.write(f"kaudit: {visible(note.path)}: {visible(note.reason)}\n")
        return ExitCode.UNREADABLE if listing.scan.incomplete or listing.failed else ExitCode.OK


def _write(
    listing: DuplicateListing,
    target: RowTarget,
    isolation_level: str,
    display: DisplayOptions,
    names: "Redactor | None",
) -> None:
    rows = duplicate_rows(listing, read_committed=isolation_level == "read_committed")
    if names is not None:
        rows = map(names.row_of_inspect, rows)

    def shown() -> DuplicateListing:
        """Return what is said below the rows, which is known when all have been read."""
        return listing if names is None else loaded("redacting", "redacted_duplicates")(names, listing)

    if target.form == PARQUET:
        assert target.file is not None
        write_rows("dedup", rows, target.file, shown().scan.inputs)
        return
    rows = (row for row in rows if row["row"] == "duplicate")  # the summary has the ranges
    if target.form == "jsonl":
        pieces = jsonl(rows, shown, isolation_level)
    elif target.form == "json":
        pieces = document(rows, shown, isolation_level)
    else:
        pieces = _text(rows, shown, target, isolation_level, display)
    show(target, pieces, display.terminal)


def _text(
    rows: Iterator[dict[str, object]],
    shown: Callable[[], DuplicateListing],
    target: RowTarget,
    isolation_level: str,
    display: DisplayOptions,
) -> Iterator[str]:
    """Yield totals and ranges, known when all rows have been read, then with --verbose the rows: many wait in a file."""
    console = console_of(target, display.terminal)
    with tempfile.SpooledTemporaryFile(
        _IN_MEMORY, "w+", encoding="utf-8", errors="surrogateescape", newline=""
    ) as held:
        each = (row for row in rows if display.verbose)
        held.writelines(table(each, console))
        any_row = held.tell() > 0
        held.seek(0)
        yield from summary_text(shown(), console, isolation_level, MAX_RANGES if display.verbose else _RANGES_SHOWN)
        if any_row:
            yield "\n"
        yield from held
