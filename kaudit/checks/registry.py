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


def find(code_or_name: str) -> Check | None:
    """Return the check with this code or this name, in any case; None if there is none."""
    named = {check.name: check for check in CHECKS.values()}
    return CHECKS.get(code_or_name.upper()) or named.get(code_or_name.lower())


def run_checks(context: Context, evidence: Evidence) -> list[Finding]:
    """Run every check that there is evidence for, in order of their codes."""
    return [
        finding for check in CHECKS.values() if evidence.has(check.needs) for finding in check.run(context, evidence)
    ]
