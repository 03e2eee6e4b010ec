"""Published reports that findings do not name, by ticket: the table in reports.toml beside this module."""

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from kaudit.bugs.tickets import reference_key, ticket_key
from kaudit.formats.toml import packaged_toml


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One report. `also` has tickets and pull requests about the same; the texts are sentences, `sources` addresses."""

    id: str
    title: str
    affected: str
    meaning: str
    recognise: str
    cost: str
    advice: str
    sources: Sequence[str]
    also: tuple[str, ...] = ()


@cache
def reports() -> Mapping[str, Report]:
    """Return the reports by id, in the order of the table."""
    table = msgspec.convert(packaged_toml("kaudit.bugs", "reports.toml")["reports"], list[Report])
    return {report.id: report for report in table}


def report_of(ticket: str) -> Report | None:
    """Return the report of a ticket or pull request in any of the forms people write; None if there is none."""
    known = {reference_key(name): report for report in reports().values() for name in (report.id, *report.also)}
    return known.get(reference_key(ticket)) or known.get(ticket_key(ticket))
