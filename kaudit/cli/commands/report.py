"""`kaudit report`: a saved scan in another format."""

import sys
from typing import Annotated

import typer

from kaudit.cli.audit import AuditRequest, show
from kaudit.cli.audit_options import DisplayOptions, ReportOptions
from kaudit.cli.exits import ExitCode, exit_code
from kaudit.cli.inputs import read_scan
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of
from kaudit.policy.comparison import Scope
from kaudit.report.text.formatting import closing_line

_EXAMPLES = """\b
Examples:
  kaudit report scan.json
  kaudit report --output-format sarif --baseline known.json scan.json
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def report(
    context: typer.Context,
    saved: Annotated[str, typer.Argument(metavar="SAVED.json", help="What scan wrote with json; - reads stdin.")],
    *,
    rendering: ReportOptions,
    display: DisplayOptions,
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    return _render(rendering.request(settings_of(context), saved, display), saved)


def _render(request: AuditRequest, file: str) -> int:
    """Render the saved scan; return the code the scan would have returned."""
    saved = read_scan(file)
    scan = request.policy.apply(request.selection.of_scan(saved.result), Scope(request.selection.includes))
    code = exit_code(scan, request.fail_on, exit_zero=request.exit_zero)
    if not scan.partitions and scan.incomplete and code is ExitCode.OK:
        code = ExitCode.NOTHING_TO_AUDIT
    listed = request.policy.limit(scan)
    run = None if request.reproducible else saved.run
    show(request, run, code, lambda form, view: form.scan(listed, view), machines_only=False)
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=None) + "\n")
    return code
