"""The registry of checks: every check that a module of a family in this package defines, imported where it is asked for.

SARIF's rules, incidents and causes come from it; `kaudit explain`, `kaudit checks` and --select from the list (listed.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

import kaudit.checks
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.checks.listed import LISTED, NEEDS, modules_of_families
from kaudit.model.finding import Finding


def discover() -> Sequence[Check]:
    """Return the checks that the modules of every family define, in the order of their codes."""
    found = [
        value
        for module in modules_of_families(kaudit.checks)
        for value in vars(module).values()
        if isinstance(value, Check) and value.module == module.__name__
    ]
    return sorted(found, key=lambda check: check.code)


class _Checks(Mapping[str, Check]):
    """The checks by code, in the order of their codes."""

    def __getitem__(self, code: str) -> Check:
        listed = LISTED[code]
        found: Check = getattr(import_module(listed.module), listed.name.replace("-", "_"))
        return found

    def __contains__(self, code: object) -> bool:
        return code in LISTED

    def __iter__(self) -> Iterator[str]:
        return iter(LISTED)

    def __len__(self) -> int:
        return len(LISTED)


CHECKS: Mapping[str, Check] = _Checks()


def run_checks(context: Context, evidence: Evidence) -> list[Finding]:
    """Run every check that there is evidence for, in order of their codes."""
    kinds = evidence.kinds
    checks = [CHECKS[code] for code, needs in NEEDS.items() if not kinds.isdisjoint(needs)]
    return [finding for check in checks for finding in check.run(context, evidence)]
