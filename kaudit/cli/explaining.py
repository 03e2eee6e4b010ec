"""Runs `kaudit explain` and `kaudit checks`, and completes codes."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaudit.broker.releases.profile import UnknownVersionError
from kaudit.checks.listed import LISTED
from kaudit.cli.exits import ExitCode
from kaudit.cli.loading import loaded
from kaudit.cli.options import Redaction, TerminalOptions, TextFormat
from kaudit.cli.pager import paged
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.deferred import Deferred
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console
from kaudit.report.text.explain_pages import (
    check_list,
    check_list_document,
    entry_document,
    entry_list,
    entry_list_document,
    entry_page,
)
from kaudit.report.text.formatting import fold

if TYPE_CHECKING:  # few lines are redacted
    from kaudit.explanations import lookup
    from kaudit.report.text import broker_rules
    from kaudit.results.redaction import Redactor
else:
    lookup = Deferred("kaudit.explanations.lookup")
    broker_rules = Deferred("kaudit.report.text.broker_rules")

_LEAST_WORDS_OF_LINE = 3


def run_explain(
    asked: Sequence[str],
    broker_version: str | None,
    output_format: TextFormat,
    redaction: Redaction,
    terminal: TerminalOptions,
) -> ExitCode:
    """Show what is asked for, `-` for lines on standard input, or a broker version's rules; return the exit code."""
    if bool(asked) == (broker_version is not None):
        raise UsageError(
            "say what to explain: a check, a bug, an error, a term, a line of a log, or --broker-version VERSION"
        )
    if broker_version is not None:
        _explain_version(broker_version)
        return ExitCode.OK
    console = console_of(output_format, terminal)
    names = redaction.redactor()
    text = _pasted(console, names) if list(asked) == ["-"] else _explained(" ".join(asked), console, names)
    with paged(wanted=not terminal.no_pager and output_format is TextFormat.TEXT):
        write_stdout(text)
    return ExitCode.OK


def _explained(asked: str, console: Console | None, names: "Redactor | None") -> str:
    """Return the page of what has this name; else of the line; else the list of what has these words; JSON without a console."""
    found = lookup.look_up(asked)
    if not found.exact and len(asked.split()) >= _LEAST_WORDS_OF_LINE:
        lines: str | None = loaded("pasted_lines", "explained_lines")(asked.encode("utf-8", "replace"), console, names)
        if lines is not None:
            return lines
    if not found.entries:
        raise UsageError(lookup.nearest(asked))
    if found.exact or len(found.entries) == 1:
        return entry_document(found.entries[0]) if console is None else entry_page(found.entries[0], console)
    return entry_list_document(found.entries) if console is None else entry_list(found.entries, console)


def _pasted(console: Console | None, names: "Redactor | None") -> str:
    """Return what the lines on standard input mean; a name or words alone are explained as if they were an argument."""
    data = sys.stdin.buffer.read(loaded("pasted_lines", "LONGEST") + 1)
    lines: str | None = loaded("pasted_lines", "explained_lines")(data, console, names)
    text = data.decode("utf-8", "replace").strip()
    if lines is None and 0 < len(text.split()) < _LEAST_WORDS_OF_LINE:
        return _explained(text, console, names)
    if lines is None:
        raise UsageError(
            "no line on standard input is a known message about producers, transactions or logs, or names an error"
        )
    return lines


def run_checks(output_format: TextFormat, terminal: TerminalOptions) -> ExitCode:
    """List the checks; return the exit code."""
    console = console_of(output_format, terminal)
    write_stdout(check_list_document(LISTED.values()) if console is None else check_list(LISTED.values(), console))
    return ExitCode.OK


def complete_codes(incomplete: str) -> list[tuple[str, str]]:
    """Return the codes, or the names, that what has been typed of the last one begins, each with the check's summary."""
    before, comma, typed = incomplete.rpartition(",")
    by_name = bool(typed) and not typed.upper().startswith("K")
    known = {check.name if by_name else code: check.summary for code, check in LISTED.items()}
    own = typed.lower() if by_name else typed.upper()
    return [(before + comma + name, summary) for name, summary in known.items() if name.startswith(own)]


def complete_codes_and_bugs(incomplete: str) -> list[tuple[str, str]]:
    """Return the codes or names of checks, and the tickets of known bugs, that begin so, each with what it is."""
    tickets: list[tuple[str, str]] = loaded("known_bugs", "complete_tickets")(incomplete)
    return [*complete_codes(incomplete), *tickets]


def console_of(output_format: TextFormat, terminal: TerminalOptions) -> Console | None:
    """Return what stdout can show; None for JSON."""
    return None if output_format is TextFormat.JSON else stdout_console(terminal.color_choice)


def _explain_version(text: str) -> None:
    width = stdout_console(ColorChoice.NEVER).width
    try:
        lines = list(broker_rules.what_changed(text))
    except UnknownVersionError as error:
        raise UsageError(f"--broker-version {text}: {error}") from None
    write_stdout("".join(f"{fold(line, width, 0)}\n" for line in lines))
