"""The registry of checks: every module of a room of this package that defines a check, found by looking.

`kaudit explain`, `kaudit checks`, docs/checks, SARIF's rules and --select come from it.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

import kaudit.checks
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.model.finding import Finding


class UnknownCheckError(LookupError):
    """No check has this code; `suggestions` are the nearest codes."""

    def __init__(self, code: str, suggestions: tuple[str, ...]) -> None:
        self.code = code
        self.suggestions = suggestions
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"there is no check {code}{hint}")


def discover() -> Iterator[Check]:
    """Import the modules of every room; yield the checks that are named as their modules."""
    for room in pkgutil.iter_modules(kaudit.checks.__path__, f"{kaudit.checks.__name__}."):
        if not room.ispkg:
            continue
        for found in pkgutil.iter_modules(importlib.import_module(room.name).__path__, f"{room.name}."):
            check = getattr(importlib.import_module(found.name), found.name.rpartition(".")[2], None)
            if isinstance(check, Check):
                yield check


CHECKS: Mapping[str, Check] = {found.code: found for found in sorted(discover(), key=lambda check: check.code)}


def check(code: str) -> Check:
    """Return the check with this code, in any case.

    Raises:
        UnknownCheckError: no check has it.

    """
    found = CHECKS.get(code.upper())
    if found is None:
        import difflib  # noqa: PLC0415 - only a typo pays for it

        raise UnknownCheckError(code, tuple(difflib.get_close_matches(code.upper(), CHECKS, n=3)))
    return found


def run_checks(context: Context, evidence: Evidence) -> list[Finding]:
    """Run every check that there is evidence for, in order of their codes."""
    return [
        finding for check in CHECKS.values() if evidence.has(check.needs) for finding in check.run(context, evidence)
    ]
