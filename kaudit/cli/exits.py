"""Exit codes: the same for every format and engine."""

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # every list of options comes here: 20 ms less for --help
    from kaudit.model.result import ScanResult
    from kaudit.model.severity import Severity


class ExitCode(enum.IntEnum):
    """The process's exit code."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    NOTHING_TO_AUDIT = 3
    UNREADABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    ExitCode.OK: "Nothing at or above --fail-on was found.",
    ExitCode.FINDINGS: "There are findings at or above it.",
    ExitCode.USAGE: "The command line, the configuration or an input file of the command is wrong.",
    ExitCode.NOTHING_TO_AUDIT: "There is nothing to audit.",
    ExitCode.UNREADABLE: "A file could not be read, or nothing says what became of some offsets, and no finding reached --fail-on.",
    ExitCode.INTERNAL: "An internal error.",
    ExitCode.INTERRUPTED: "The command was interrupted.",
    ExitCode.BROKEN_PIPE: "The reader of standard output went away.",
}
"""What each code says, as a sentence."""


class FailOn(enum.Enum):
    """The values of --fail-on: the lowest severity that fails the run."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"

    def reached(self, worst: "Severity | None") -> bool:
        """Whether the most severe new finding reaches the threshold."""
        return worst is not None and self is not FailOn.NEVER and worst >= type(worst)(self.value)


def exit_code(result: "ScanResult", fail_on: FailOn, *, exit_zero: bool) -> ExitCode:
    """Return the code of a finished scan. A finding outranks an unreadable file; --exit-zero forgives findings only."""
    if fail_on.reached(result.worst()):
        return ExitCode.OK if exit_zero else ExitCode.FINDINGS
    if any(item.unreadable for item in result.not_audited):
        return ExitCode.UNREADABLE
    return ExitCode.OK
