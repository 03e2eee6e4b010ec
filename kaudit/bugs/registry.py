"""The catalogue of known bugs: every Bug that a module of a package in here defines, found by looking.

`kaudit explain`, `kaudit bugs` and docs/bugs come from it, and so do the bugs that findings name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

import kaudit.bugs
from kaudit.bugs.bug import Bug, Program, Release
from kaudit.bugs.tickets import pull_request_key, ticket_key
from kaudit.checks.listed import modules_of_families
from kaudit.errors import suggestion


def discover() -> Iterator[Bug]:
    """Import the modules of every package in here; yield the bugs they define."""
    for module in modules_of_families(kaudit.bugs):
        for value in vars(module).values():
            if isinstance(value, Bug):
                yield replace(value, package=module.__name__.rpartition(".")[0])


def _order(bug: Bug) -> tuple[str, int]:
    project, _, number = bug.id.rpartition("-")
    return project.lower(), int(number)


BUGS: Mapping[str, Bug] = {bug.id: bug for bug in sorted(discover(), key=_order)}


def find(ticket: str) -> Bug | None:
    """Return the bug of a ticket in any of the forms people write: kafka-12671, `librdkafka#3575`, confluentinc/librdkafka#3575.

    Or of the pull request of Apache Kafka that fixed it: apache/kafka#14506.
    """
    fixes = {key: bug for bug in BUGS.values() for source in bug.sources if (key := pull_request_key(source))}
    by_ticket = {ticket_key(known): bug for known, bug in BUGS.items()}
    return fixes.get(pull_request_key(ticket) or "") or by_ticket.get(ticket_key(ticket))


def nearest(ticket: str) -> str:
    """Return `; did you mean X?` of known tickets, and where all of them are listed."""
    keys = {ticket_key(bug): bug for bug in BUGS}
    near = suggestion(ticket_key(ticket), keys)
    for key, bug in keys.items():
        near = re.sub(rf"\b{re.escape(key)}\b", bug, near)
    return f"{near} ('kaudit bugs' lists them)"


def of_version(release: Release | None, program: Program | None) -> Sequence[Bug]:
    """Return the bugs of a program, of all without one, that a version has."""
    return [
        bug
        for bug in BUGS.values()
        if (program is None or bug.program is program) and (release is None or bug.has_version(release))
    ]
