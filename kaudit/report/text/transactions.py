"""`kaudit transactions`: what became of transactions from input to output."""

from collections.abc import Iterable, Iterator, Sequence

from kaudit.listings.transactions import NAMES, Transaction, TransactionListing
from kaudit.model.exactly_once import Outcome
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_rows import rows_document, rows_jsonl
from kaudit.report.text.formatting import headline_lines, plural, timestamp_text

Row = dict[str, object]
_TIME_WIDTH = 19


def transaction_rows(listing: TransactionListing) -> Iterator[Row]:
    """Yield a row for each transaction, with lists of its inputs and its outputs."""
    return ({"row": "transaction", **each.to_dict(), "records": each.records} for each in listing.transactions)


def table_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows as TRANSACTION_TABLES has them: of transactions, and of the inputs and outputs of each."""
    for number, row in enumerate(rows):
        known = {name: value for name, value in row.items() if name not in {"inputs", "outputs"}}
        yield {**known, "transaction": number}
        for kind in ("inputs", "outputs"):
            for each in row[kind]:  # type: ignore[attr-defined]  # a list of rows
                yield {"row": kind.removesuffix("s"), "transaction": number, **each}


def jsonl(listing: TransactionListing, rows: Iterable[Row]) -> Iterator[str]:
    """Yield one transaction a line, then a summary."""
    return rows_jsonl(rows, lambda: _summary(listing))


def document(listing: TransactionListing, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the kaudit.transactions/1 document."""
    return rows_document(
        "kaudit.transactions/1",
        rows,
        lambda: {
            "inputs": list(listing.scan.inputs),
            "findings": [finding.to_dict() for finding in listing.scan.findings],
            "summary": _summary(listing),
        },
    )


def _summary(listing: TransactionListing) -> Row:
    return {
        **listing.totals.to_dict(),
        "aborted_share": listing.totals.aborted_share,
        "listed": len(listing.transactions),
        "omitted": listing.omitted,
        "inputs_not_remembered": listing.inputs_not_remembered,
        "incomplete": listing.scan.incomplete,
        "not_audited": [note.to_dict() for note in listing.scan.not_audited],
    }


def report(listing: TransactionListing, console: Console) -> Iterator[str]:
    """Yield the answer in one line, then what was found, then the transactions, then what is not known."""
    yield from _lines(console.wrap(_answer(listing)), console, Style.STRONG)
    for finding in listing.scan.findings:
        yield from (line + "\n" for line in headline_lines(finding, console, lead="  ", indent="    "))
    if len(listing.transactions):
        yield "\n"
        for each in listing.transactions:
            yield from (line + "\n" for line in _block(each, console))
    if listing.omitted:
        text = f"... {listing.omitted:,} earlier ones; --limit {listing.omitted + len(listing.transactions)} lists all"
        yield from _lines(console.wrap(text), console, Style.STRONG)
    if listing.inputs_not_remembered:
        text = (
            f"of {plural(listing.inputs_not_remembered, 'earlier transaction')} the inputs are counted, and not listed"
        )
        yield from (line + "\n" for line in console.wrap(text))


def _lines(lines: Sequence[str], console: Console, style: Style) -> Iterator[str]:
    return (console.paint(line, style) + "\n" for line in lines)


def _answer(listing: TransactionListing) -> str:
    """Return `24 transactions: 24 committed, ...; no input was found processed twice or skipped`."""
    totals = listing.totals
    if not totals.transactions:
        return "no transaction is in these logs" if not listing.scan.incomplete else "no transaction could be read"
    parts = [f"{totals.committed:,} committed", f"{totals.aborted:,} aborted", f"{totals.open:,} open"]
    text = f"{plural(totals.transactions, 'transaction')}: {', '.join(parts)}"
    if totals.records_aborted:
        share = f"{totals.aborted_share:.1%}" if totals.aborted_share >= 0.001 else "less than 0.1%"
        text += f" ({share} of the records were aborted)"
    return f"{text}; {_judgement(listing)}"


def _judgement(listing: TransactionListing) -> str:
    said = []
    words = (
        "inputs processed twice",
        "inputs skipped",
        "offsets committed outside transactions",
        "outputs without inputs",
    )
    for name, what in zip(NAMES, words, strict=True):
        codes = [finding.code for finding in listing.scan.findings if finding.name == name]
        if codes:
            said.append(f"{what} ({codes[0]}: {len(codes)})")
    if said:
        return ", ".join(said)
    if not listing.has_groups:
        return "without __consumer_offsets, inputs are not checked"
    return "no input was found processed twice or skipped"


def _block(each: Transaction, console: Console) -> Iterator[str]:
    """Yield a line that names a transaction, and one with its inputs and its outputs."""
    name = each.transactional_id if each.transactional_id is not None else f"producer {each.producer_id}"
    outcome = each.outcome.value
    if each.outcome is Outcome.COMMITTED and not each.read_committed:
        outcome += ", held back by an older transaction"
    ended = "-" * _TIME_WIDTH if each.ended_ms is None else timestamp_text(each.ended_ms)
    yield from console.wrap(f"{ended}  {outcome:9}  {visible(name)}", indent="    ")
    inputs = ", ".join(f"{one.place} {one.text}" for one in each.inputs if one.first != one.end)
    outputs = ", ".join(f"{one.topic}-{one.partition} {plural(one.records, 'record')}" for one in each.outputs)
    if inputs or outputs:
        yield from console.wrap(
            visible(f"{inputs or 'no inputs'} -> {outputs or 'no outputs'}"), lead="    ", indent="      "
        )
