"""Runs `kaudit bugs`, and completes tickets of known bugs for `kaudit explain`."""

from kaudit.bugs.bug import Program, parse_release
from kaudit.bugs.registry import BUGS, of_version
from kaudit.cli.exits import ExitCode
from kaudit.cli.explaining import console_of
from kaudit.cli.options import TerminalOptions, TextFormat
from kaudit.cli.streams import write_stdout
from kaudit.errors import UsageError
from kaudit.report.text.explain_pages import bug_list, bug_list_document


def run_bugs(
    affects: str | None, client: Program | None, output_format: TextFormat, terminal: TerminalOptions
) -> ExitCode:
    """List the known bugs; return the exit code."""
    release = None
    if affects is not None:
        try:
            release = parse_release(affects)
        except ValueError as error:
            raise UsageError(f"--affects {affects}: {error}; write 2.8.1") from None
    program = Program.BROKER if release is not None and client is None else client
    found = of_version(release, program)
    console = console_of(output_format, terminal)
    write_stdout(bug_list_document(found) if console is None else bug_list(found, console))
    return ExitCode.OK


def complete_tickets(incomplete: str) -> list[tuple[str, str]]:
    """Return the tickets that begin so, each with its title."""
    return [(ticket, bug.title) for ticket, bug in BUGS.items() if ticket.lower().startswith(incomplete.lower())]
