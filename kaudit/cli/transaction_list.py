"""Running `kaudit transactions`: formats of rows, where they go, and the exit code."""

from collections.abc import Iterator

from kaudit.cli.commands.transactions import ChosenTransactions
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import PARQUET, RowTarget, console_of, parse_row_targets, show
from kaudit.cli.loading import loaded
from kaudit.cli.options import DisplayOptions, EngineOptions, RowOutput
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.request import nothing_audited
from kaudit.cli.streams import write_notes
from kaudit.cli.targets import write_rows
from kaudit.errors import NothingToAuditError
from kaudit.listings.transactions import NO_TOTALS, Query, TransactionListing
from kaudit.report.text.transactions import document, jsonl, report, table_rows, transaction_rows
from kaudit.scanning.options import ScanOptions

_SHOWN = 50
"""Transactions that a table lists unless --limit says otherwise."""


def run_transactions(
    options: ScanOptions, chosen: ChosenTransactions, output: RowOutput, asked: EngineOptions, display: DisplayOptions
) -> int:
    """List transactions in every format asked for; return the exit code."""
    targets = parse_row_targets(output.output_format or (), output.output, options.given)
    names = output.redaction.redactor()
    only_table = all(target.form == "table" for target in targets)
    limit = chosen.limit if chosen.limit is not None or not only_table else _SHOWN
    engine = choose_engine(asked)
    query = Query(chosen.group or (), chosen.transactional_id or (), limit)
    try:
        with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:
            listing = engine.transactions(options, progress, query)
    except NothingToAuditError as error:
        # whoever parses stdout gets a valid document also now
        if names is not None:
            error = names.of_error(error, options.given)
        nothing = TransactionListing(nothing_audited(options, error), NO_TOTALS, ())
        for target in targets:
            if target.form != "table":
                _write(nothing, target, display)
        raise error from None
    if names is not None:
        listing = loaded("redacting", "redacted_transactions")(names, listing)
    for target in targets:
        _write(listing, target, display)
    write_notes(note for note in listing.scan.not_audited if note.unreadable or note.asked_for)
    return ExitCode.UNREADABLE if listing.scan.incomplete else ExitCode.OK


def _write(listing: TransactionListing, target: RowTarget, display: DisplayOptions) -> None:
    rows = transaction_rows(listing)
    if target.form == PARQUET:
        assert target.file is not None
        write_rows("transactions", table_rows(rows), target.file, listing.scan.inputs)
        return
    pieces: Iterator[str]
    if target.form == "jsonl":
        pieces = jsonl(listing, rows)
    elif target.form == "json":
        pieces = document(listing, rows)
    else:
        pieces = report(listing, console_of(target, display.terminal))
    show(target, pieces, display.terminal)
