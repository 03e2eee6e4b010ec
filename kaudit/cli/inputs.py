"""Documents that a command line names: saved scans and fingerprints, from a file or stdin."""

from kaudit.errors import UsageError
from kaudit.results.saved_scan import Saved, SavedScanError, read_saved
from kaudit.source.local import read_document


def read_text(file: str) -> str:
    """Return the text of a file, `-` for stdin. Raises UsageError where it cannot be read."""
    try:
        return read_document(file)
    except FileNotFoundError:
        raise UsageError(f"no such file: {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{file}: cannot be read: {reason}") from error


def read_scan(file: str) -> Saved:
    """Return a saved scan, `-` for stdin. Raises UsageError where it cannot be read, or is not one."""
    try:
        return read_saved(read_text(file))
    except SavedScanError as error:
        raise UsageError(f"{file}: {error}") from error
