"""Runs `kaudit explain` and `kaudit checks`, and completes codes."""

from collections.abc import Callable, Sequence

from kaudit.broker.releases.profile import UnknownVersionError
from kaudit.bugs.tickets import looks_like_ticket
from kaudit.checks.check import Check
from kaudit.checks.registry import CHECKS, matching, nearest
from kaudit.cli.exits import ExitCode
from kaudit.cli.loading import loaded
from kaudit.cli.options import TerminalOptions, TextFormat
from kaudit.cli.pager import paged
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console
from kaudit.report.text.broker_rules import what_changed
from kaudit.report.text.explain_pages import (
    check_document,
    check_list,
    check_list_document,
    check_page,
)
from kaudit.report.text.formatting import fold


def run_explain(
    code: str | None, broker_version: str | None, output_format: TextFormat, terminal: TerminalOptions
) -> ExitCode:
    """Show the page of a check or known bug, or a broker version's rules; return the exit code."""
    if (code is None) == (broker_version is None):
        raise UsageError("say what to explain: a check's CODE, a known bug, or --broker-version VERSION")
    if broker_version is not None:
        _explain_version(broker_version)
        return ExitCode.OK
    assert code is not None
    page: Callable[[str, Console | None], str] = (
        loaded("known_bugs", "page") if looks_like_ticket(code) else _check_page
    )
    text = page(code, console_of(output_format, terminal))
    with paged(wanted=not terminal.no_pager and output_format is TextFormat.TEXT):
        write_stdout(text)
    return ExitCode.OK


def run_checks(output_format: TextFormat, terminal: TerminalOptions) -> ExitCode:
    """List the checks; return the exit code."""
    console = console_of(output_format, terminal)
    write_stdout(check_list_document(CHECKS.values()) if console is None else check_list(CHECKS.values(), console))
    return ExitCode.OK


def complete_codes(incomplete: str) -> list[tuple[str, str]]:
    """Return the codes, or the names, that what has been typed of the last one begins, each with the check's summary."""
    before, comma, typed = incomplete.rpartition(",")
    by_name = bool(typed) and not typed.upper().startswith("K")
    known = {check.name if by_name else code: check.summary for code, check in CHECKS.items()}
    own = typed.lower() if by_name else typed.upper()
    return [(before + comma + name, summary) for name, summary in known.items() if name.startswith(own)]


def complete_codes_and_bugs(incomplete: str) -> list[tuple[str, str]]:
    """Return the codes or names of checks, and the tickets of known bugs, that begin so, each with what it is."""
    tickets: list[tuple[str, str]] = loaded("known_bugs", "complete_tickets")(incomplete)
    return [*complete_codes(incomplete), *tickets]


def console_of(output_format: TextFormat, terminal: TerminalOptions) -> Console | None:
    """Return what stdout can show; None for JSON."""
    return None if output_format is TextFormat.JSON else stdout_console(terminal.color_choice)


def _find_checks(typed: str) -> Sequence[Check]:
    """Find a check by code or by name, in any case, or those a prefix or words describe."""
    found = matching(typed)
    if not found:
        raise UsageError(f"there is no check {typed}, and none about it{nearest(typed)}")
    return found


def _check_page(code: str, console: Console | None) -> str:
    """Return the page of a check, or a list of several; JSON without a console."""
    check, *others = found = _find_checks(code)
    if console is None:
        return check_list_document(found) if others else check_document(check)
    return check_list(found, console) if others else check_page(check, console)


def _explain_version(text: str) -> None:
    width = stdout_console(ColorChoice.NEVER).width
    try:
        lines = list(what_changed(text))
    except UnknownVersionError as error:
        raise UsageError(f"--broker-version {text}: {error}") from None
    write_stdout("".join(f"{fold(line, width, 0)}\n" for line in lines))
