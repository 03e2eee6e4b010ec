"""Runs `kaudit inspect`: formats of rows, where they go, and the exit code."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.version import Version
from kaudit.cli.commands import inspect as commands
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import TerminalOptions
from kaudit.cli.pager import paged
from kaudit.cli.streams import stdout_console, write_pieces
from kaudit.cli.targets import output_directory, output_file, split_formats, write_rows
from kaudit.errors import NothingToAuditError, UsageError, suggestion
from kaudit.formats.log.records import DEFAULT_LIMIT
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.rows import BytesForm, BytesFormatter
from kaudit.inspect.walk import UNREADABLE, InspectOptions, inspect_rows
from kaudit.report.console import ColorChoice, Console, visible
from kaudit.report.json_rows import rows_document, rows_jsonl
from kaudit.report.text.inspect_table import table
from kaudit.scanning.options import parse_broker_version
from kaudit.source.option import check_int64, parse_int64

ROW_FORMATS = ("table", "json", "jsonl", "parquet")
PARQUET = "parquet"
HTML = "html"
"""A format of some commands."""
if TYPE_CHECKING:  # few rows are redacted
    from kaudit.results.redaction import Redactor

_TABLE_BYTES = 64
"""Bytes of a key or value that tables show, unless --max-bytes says otherwise."""
_Row = dict[str, object]


class RowTarget(Struct, frozen=True):
    """One format of rows and where it goes; `file` None: stdout."""

    form: str
    file: Path | None


def parse_row_targets(
    formats: Sequence[str], output: str | None, inputs: Sequence[str], known: Sequence[str] = ROW_FORMATS
) -> list[RowTarget]:
    """Parse --output-format and --output, and refuse now what would only fail later."""
    typed = split_formats(formats, output)
    for name, _ in typed:
        if name not in known:
            hint = suggestion(name, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"--output-format {name}: no such format{hint}")
    return [_target(name, file, inputs) for name, file in typed]


def _target(name: str, place: str | None, inputs: Sequence[str]) -> RowTarget:
    if name != PARQUET:
        return RowTarget(name, output_file(place, inputs))
    return RowTarget(name, output_directory(name, place, inputs))


def parse_offsets(text: str | None) -> tuple[int | None, int | None]:
    """Parse --offset: `A`, `A..B`, `A..` or `..B`; inclusive."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    if not all(part.isdecimal() or (dots and not part) for part in (first, last or first)) or text == "..":
        raise UsageError(f"--offset {text}: write an offset, or two with .. between")
    low = parse_int64(first, "--offset") if first else None
    high = (parse_int64(last, "--offset") if last else None) if dots else low
    if low is not None and high is not None and low > high:
        raise UsageError(f"--offset {text}: nothing lies between")
    return low, high


def run_inspect(paths: Sequence[str], options: commands.InspectOptions) -> int:
    """Show the rows in every format asked for; return the exit code. Raises UsageError for options that mean nothing."""
    content, rows, log = options.content, options.rows, options.log
    if rows.at is not None and (content.records or rows.around is not None):
        raise UsageError("--at shows one header: it goes with neither --records nor --around")
    wanted = _row_filter(rows)
    requested = parse_broker_version(log.broker_version)
    targets = parse_row_targets(options.output.output_format or (), options.output.output, paths)
    asked = InspectOptions(
        paths=paths,
        records=content.records,
        texts=_formatter(content),
        wanted=wanted,
        around=rows.around,
        at=rows.at,
        topic=log.topic,
        partition=log.partition,
        limit=content.max_decompressed or DEFAULT_LIMIT,
        cluster=rows.audit.cluster,
        version=None if requested == "auto" else Version.parse(requested),
    )
    return _show_rows(asked, targets, options.terminal, options.output.redaction.redactor())


def _formatter(content: commands.ContentOptions) -> BytesFormatter:
    """Return what writes keys and values. Raises UsageError for options that exclude each other."""
    if content.hex_bytes and content.utf8:
        raise UsageError("--hex and --utf8: choose one")

    form = BytesForm.HEX if content.hex_bytes else BytesForm.UTF8 if content.utf8 else BytesForm.AUTO
    return BytesFormatter(form, content.max_bytes)


def _row_filter(rows: commands.RowSelection) -> RowFilter:
    """Return the filter these options make. Raises UsageError for a number or time that is none."""
    check_int64(rows.producer_epoch or (), "--producer-epoch")
    check_int64(rows.leader_epoch or (), "--leader-epoch")
    first_offset, last_offset = parse_offsets(rows.offset)
    return RowFilter(
        frozenset(rows.audit.producer_ids),
        frozenset(rows.producer_epoch or ()),
        frozenset(rows.leader_epoch or ()),
        first_offset,
        last_offset,
        rows.audit.since_ms,
        rows.audit.until_ms,
    )


def _show_rows(
    options: InspectOptions, targets: Sequence[RowTarget], terminal: TerminalOptions, names: "Redactor | None"
) -> int:
    """Show the rows in every format asked for; return the exit code."""
    reading = _Reading()
    inputs = options.paths if names is None else [names.path(path) for path in options.paths]
    for target in targets:
        shown = options
        if target.form == "table" and options.texts.limit is None:
            shown = replace(options, texts=replace(options.texts, limit=_TABLE_BYTES))
        rows = reading.watched(inspect_rows(shown, batches=target.form in ("jsonl", PARQUET)), UNREADABLE)
        if names is not None:
            rows = map(names.row_of_inspect, rows)
        first = list(islice(rows, 1))  # wrong options show before anything is written
        if target.form == PARQUET:
            assert target.file is not None
            write_rows("inspect", chain(first, rows), target.file, inputs)
            continue
        console = console_of(target, terminal)
        show(target, _pieces(target.form, chain(first, rows), inputs, console), terminal)
    if reading.nothing is not None:
        raise reading.nothing if names is None else names.of_error(reading.nothing, options.paths)
    return ExitCode.UNREADABLE if reading.unreadable else ExitCode.OK


def console_of(target: RowTarget, terminal: TerminalOptions) -> Console:
    """Return what the target can show. A file is no terminal: colour there only when asked for."""
    color = terminal.color_choice
    return stdout_console(color) if target.file is None else Console(color=color is ColorChoice.ALWAYS)


def show(target: RowTarget, pieces: Iterable[str], terminal: TerminalOptions) -> None:
    """Write pieces of a text to their target; stdout through the pager."""
    with paged(wanted=target.file is None and not terminal.no_pager):
        write_pieces(target.file, pieces)


class _Reading:
    """Notes what went wrong while rows were read: what was shown before stays valid in its format."""

    def __init__(self) -> None:
        self.unreadable = False
        self.nothing: NothingToAuditError | None = None

    def watched(self, rows: Iterable[_Row], unreadable: str) -> Iterator[_Row]:
        """Yield the rows, up to a file that cannot be read."""
        try:
            for row in rows:
                self.unreadable = self.unreadable or unreadable in (row.get("status"), row.get("kind"))
                yield row
        except NothingToAuditError as error:
            self.nothing = error
        except OSError as error:
            self.unreadable = True
            where = "" if error.filename is None else f"{visible(str(error.filename))}: "
            sys.stderr.write(f"kaudit: {where}{visible(error.strerror or str(error))}\n")


def _pieces(form: str, rows: Iterable[_Row], inputs: Sequence[str], console: Console) -> Iterator[str]:
    if form == "jsonl":
        return rows_jsonl(rows)
    if form == "json":
        return rows_document("kaudit.inspect/1", rows, before={"inputs": list(inputs)})
    return table(rows, console)
