"""`kaudit explain`: the page of a check or of a known bug, or the rules of one broker version."""

from typing import Annotated

import typer

from kaudit.broker.releases.profile import UnknownVersionError
from kaudit.bugs.tickets import looks_like_ticket
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption, complete_codes
from kaudit.cli.pager import paged
from kaudit.cli.parsing import parse_checks
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console
from kaudit.report.text.explain_pages import (
    bug_document,
    bug_page,
    check_document,
    check_list,
    check_list_document,
    check_page,
)
from kaudit.report.text.formatting import fold


def _complete_codes_and_bugs(incomplete: str) -> list[tuple[str, str]]:
    """Return the codes or names of checks, and the tickets of known bugs, that begin so, each with what it is."""
    from kaudit.bugs.registry import BUGS  # checks are explained without the bugs

    tickets = [(ticket, bug.title) for ticket, bug in BUGS.items() if ticket.lower().startswith(incomplete.lower())]
    return [*complete_codes(incomplete), *tickets]


app = typer.Typer()


@app.command()
@with_option_groups
def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            autocompletion=_complete_codes_and_bugs,
            help="A code, a name or a word: KA101, duplicate-batch, duplicate; or a known bug: KAFKA-12671.",
        ),
    ] = None,
    *,
    broker_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="What a broker version does differently from its neighbours.")
    ] = None,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> None:
    """Explain a check or a known bug: what it means, what to do. Or a broker version's rules."""
    if (code is None) == (broker_version is None):
        raise UsageError("say what to explain: a check's CODE, a known bug, or --broker-version VERSION")
    if code is None:
        assert broker_version is not None
        _explain_version(broker_version)
        return
    page = _bug_page if looks_like_ticket(code) else _check_page
    text = page(code, None if output_format is TextFormat.JSON else stdout_console(terminal.color_choice))
    with paged(wanted=not terminal.no_pager and output_format is TextFormat.TEXT):
        write_stdout(text)


def _check_page(code: str, console: Console | None) -> str:
    """Return the page of a check, or a list of several; JSON without a console."""
    check, *others = found = parse_checks(code)
    if console is None:
        return check_list_document(found) if others else check_document(check)
    return check_list(found, console) if others else check_page(check, console)


def _bug_page(ticket: str, console: Console | None) -> str:
    """Return the page of a known bug; JSON without a console."""
    from kaudit.bugs.registry import find, nearest  # checks are explained without the bugs

    bug = find(ticket)
    if bug is None:
        raise UsageError(f"{ticket} is not a known bug{nearest(ticket)}")
    return bug_document(bug) if console is None else bug_page(bug, console)


def _explain_version(text: str) -> None:
    from kaudit.report.text.broker_rules import what_changed  # checks are explained without the releases

    width = stdout_console(ColorChoice.NEVER).width
    try:
        lines = list(what_changed(text))
    except UnknownVersionError as error:
        raise UsageError(f"--broker-version {text}: {error}") from None
    write_stdout("".join(f"{fold(line, width, 0)}\n" for line in lines))
