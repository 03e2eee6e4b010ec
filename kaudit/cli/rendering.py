"""`kaudit report`: read a saved scan, show it, settle the exit code."""

import sys

from kaudit.cli.audit import AuditRequest, show
from kaudit.cli.exits import ExitCode, exit_code
from kaudit.errors import UsageError
from kaudit.policy.comparison import Scope
from kaudit.report.formats import in_pieces
from kaudit.report.text.formatting import closing_line
from kaudit.results.saved_scan import Saved, SavedScanError, read_saved
from kaudit.source.documents import read_document

_STDIN = "-"


def run_report(request: AuditRequest, file: str) -> int:
    """Render the saved scan; return the code the scan would have returned."""
    saved = read_scan(file)
    scan = request.policy.apply(request.selection.of_scan(saved.result), Scope(request.selection.includes))
    code = exit_code(scan, request.fail_on, exit_zero=request.exit_zero)
    if not scan.partitions and scan.incomplete and code is ExitCode.OK:
        code = ExitCode.NOTHING_TO_AUDIT
    listed = request.policy.limit(scan)
    run = None if request.reproducible else saved.run
    show(request, run, code, lambda form, view: in_pieces(form.scan(listed, view)), machines_only=False)
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=None) + "\n")
    return code


def read_scan(file: str) -> Saved:
    """Read a saved scan from a file or stdin."""
    try:
        return read_saved(read_document(file))
    except FileNotFoundError:
        raise UsageError(f"no such file: {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file}: cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        ) from error
    except SavedScanError as error:
        raise UsageError(f"{file}: {error}") from error
