"""Running `kaudit inspect`: formats of rows, where they go, and the exit code."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kaudit.cli.exits import ExitCode
from kaudit.cli.parsing import suggestion
from kaudit.cli.stdout import stdout_console
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file, split_format
from kaudit.pipeline.options import UsageError
from kaudit.report import rows as row_formats
from kaudit.report.console import ColorChoice, Console
from kaudit.report.rows_table import table

if TYPE_CHECKING:
    from kaudit.pipeline.inspect.walk import InspectOptions

ROW_FORMATS = ("table", "json", "jsonl")
_Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class RowTarget:
    """One format of rows and where it goes; `file` None: stdout."""

    form: str
    file: Path | None


def parse_row_targets(formats: Sequence[str], output: str | None, inputs: Sequence[str]) -> list[RowTarget]:
    """Parse --output-format and --output, and refuse now what would only fail later."""
    typed = [split_format(value) for value in formats or ["table"]]
    loose = [name for name, file in typed if file is None]
    if len(loose) > 1:
        raise UsageError(f"only one format can go to one place, not {' and '.join(loose)}; write FORMAT:FILE")
    if output is not None and not loose:
        raise UsageError(f"--output {output}: every --output-format has its own file already")
    for name, _ in typed:
        if name not in ROW_FORMATS:
            hint = suggestion(name, ROW_FORMATS) or f"; there are {', '.join(ROW_FORMATS)}"
            raise UsageError(f"--output-format {name}: no such format{hint}")
    return [RowTarget(name, output_file(output if file is None else file, inputs)) for name, file in typed]


def parse_offsets(text: str | None) -> tuple[int | None, int | None]:
    """Parse --offset: `A`, `A..B`, `A..` or `..B`; inclusive."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    if not all(part.isdecimal() or (dots and not part) for part in (first, last or first)) or text == "..":
        raise UsageError(f"--offset {text}: write an offset, or two with .. between")
    low = int(first) if first else None
    high = (int(last) if last else None) if dots else low
    if low is not None and high is not None and low > high:
        raise UsageError(f"--offset {text}: nothing lies between")
    return low, high


def run_inspect(
    options: "InspectOptions", targets: Sequence[RowTarget], *, color: ColorChoice, table_bytes: int
) -> int:
    """Show the rows in every format asked for; return the exit code."""
    from kaudit.pipeline.inspect.walk import UNREADABLE, inspect_rows

    unreadable = False

    def watched(rows: Iterable[_Row]) -> Iterator[_Row]:
        nonlocal unreadable
        for row in rows:
            unreadable = unreadable or UNREADABLE in (row.get("status"), row.get("kind"))
            yield row

    for target in targets:
        shown = options
        if target.form == "table" and options.texts.limit is None:
            shown = replace(options, texts=replace(options.texts, limit=table_bytes))
        rows = watched(inspect_rows(shown, batches=target.form == "jsonl"))
        console = stdout_console(color) if target.file is None else Console(color=color is ColorChoice.ALWAYS)
        if target.form == "jsonl":
            pieces = row_formats.jsonl(rows)
        elif target.form == "json":
            pieces = row_formats.document(rows, options.paths)
        else:
            pieces = table(rows, console)
        write_pieces(target.file, pieces)
    return ExitCode.UNREADABLE if unreadable else ExitCode.OK
