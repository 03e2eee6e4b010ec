"""Lines of logs as a person pastes them: their events, what checks say of these, and the errors that they name."""

import re
from collections.abc import Sequence

from msgspec import Struct

from kaudit.audits.log_events.incidents import logged_incidents
from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import RELEASES
from kaudit.bugs.matching import with_known_bugs
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.log_evidence import EventsOfLogs, as_incident
from kaudit.checks.registry import run_checks
from kaudit.formats.application_log.patterns import PROGRAMS, read_patterns
from kaudit.formats.application_log.reader import read_events
from kaudit.formats.protocol_errors import ProtocolError, described_in, error_named, error_numbered
from kaudit.model.application_logs import LogEvent
from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding

_NAMES = re.compile(
    r"\b(?:[a-z][\w$]*\.)*(?:[A-Z]\w{1,100}(?:Exception|Error)|Err[A-Z]\w{1,60}|_?[A-Z]{2,}(?:_[A-Z]+)+)\b"
)
_CODES = re.compile(r"\b(?:error[ _]?code|errno|val)\b[\"'\s:=(]{1,4}(-?\d{1,4})\b", re.IGNORECASE)
_CLASS = re.compile(r"[\w.$]+").fullmatch
LONGEST = 1 << 20
"""Bytes of a pasted text that are read: whole logs are for `kaudit scan --server-log`."""


class PastedText(Struct, frozen=True):
    """What a pasted text holds: events in the order of its lines, and errors that no event has, in their order in the text.

    `findings` are those of the checks that need nothing but lines (KA810 to KA819), `others` the events that are in none of
    them. `cut`: only the first LONGEST bytes were read.
    """

    events: Sequence[LogEvent]
    findings: Sequence[Finding]
    others: Sequence[LogEvent]
    errors: Sequence[ProtocolError]
    cut: bool = False


def read_pasted(data: bytes) -> PastedText:
    """Return what lines of a broker's or a client's log say; a line that both may write is the one's whose words fit more of it."""
    read = data[:LONGEST]
    by_line: dict[int, list[LogEvent]] = {}
    for origin in PROGRAMS:
        for event in read_events([read], origin, path="-"):
            by_line.setdefault(event.line, []).append(event)
    events = [max(found, key=_weight) for _, found in sorted(by_line.items())]
    incidents = logged_incidents(events, {})
    in_incidents = {id(event) for incident in incidents for event in incident.events}
    by_producer = EventsOfLogs(events, {})
    found = run_checks(_CONTEXT, Evidence([as_incident(incident, by_producer) for incident in incidents]))
    findings = with_known_bugs(by_producer.all_explained(found), _CONTEXT.versions, frozenset())
    of_events = {event.error for event in events}
    text = read.decode("utf-8", "replace")
    named = [error_named(name) for name in _NAMES.findall(text)]
    numbered = [error_numbered(int(code)) for code in _CODES.findall(text)]
    errors = dict.fromkeys(
        error for error in (*named, *numbered, *described_in(text)) if error is not None and error.name not in of_events
    )
    others = [event for event in events if id(event) not in in_incidents]
    return PastedText(events, findings, others, list(errors), len(data) > LONGEST)


_CONTEXT = Context(
    versions=VersionRange(RELEASES[0], RELEASES[-1]),
    coordinator=CoordinatorView(),
    clock=AuditClock(-1, ClockSource.CLIENTS, -1),
)
"""Nothing but the lines is known."""


def error_of(event: LogEvent) -> ProtocolError | None:
    """Return the error that an event names, None if it names none that is known."""
    return None if event.error is None else error_named(event.error)


def _weight(event: LogEvent) -> tuple[bool, int]:
    """How much of a line its pattern explains: a message more than the class of an exception, which anybody may print."""
    patterns = (pattern for program in PROGRAMS[event.origin] for pattern in read_patterns(program))
    found = next((pattern for pattern in patterns if pattern.id == event.pattern), None)
    return (False, 0) if found is None else (_CLASS(found.text) is None, found.weight)
