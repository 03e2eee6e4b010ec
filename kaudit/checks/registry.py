"""The registry of checks: every check that a module of a family in this package defines, found by importing the modules.

`kaudit explain`, `kaudit checks`, docs/checks, SARIF's rules and --select come from it.
"""

from collections.abc import Iterator, Mapping

import kaudit.checks
from kaudit.checks.check import Check, Evidence, modules_of_families
from kaudit.checks.context import Context
from kaudit.errors import suggestion
from kaudit.model.finding import Finding


def discover() -> Iterator[Check]:
    """Yield the checks that the modules of every family define."""
    for module in modules_of_families(kaudit.checks):
        for value in vars(module).values():
            if isinstance(value, Check) and value.run.__module__ == module.__name__:
                yield value


CHECKS: Mapping[str, Check] = {found.code: found for found in sorted(discover(), key=lambda check: check.code)}


def find(code_or_name: str) -> Check | None:
    """Return the check with this code or this name, in any case; None if there is none."""
    named = {check.name: check for check in CHECKS.values()}
    return CHECKS.get(code_or_name.upper()) or named.get(code_or_name.lower())


def nearest(typed: str) -> str:
    """Return `; did you mean X?` of codes or names, and where all of them are listed."""
    names = [check.name for check in CHECKS.values()]
    return f"{suggestion(typed.upper(), CHECKS) or suggestion(typed.lower(), names)} ('kaudit checks' lists them)"


def run_checks(context: Context, evidence: Evidence) -> list[Finding]:
    """Run every check that there is evidence for, in order of their codes."""
    return [
        finding for check in CHECKS.values() if evidence.has(check.needs) for finding in check.run(context, evidence)
    ]
