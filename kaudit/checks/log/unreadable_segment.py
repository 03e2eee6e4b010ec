"""A segment that could not be opened or read, so that nothing is known of what it holds."""

from collections.abc import Iterator

from kaudit.checks.check import BYTES_NOT_DAMAGED, Evidence, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.source.layout import Unreadable

_CAUSES = (
    Explanation("the user who runs kaudit may not read the file", innocent=True),
    Explanation("the disk or the store that holds it fails"),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    reason: str


@check(
    "KA012",
    severity=Severity.WARNING,
    summary="a segment that could not be read: nothing is known of it",
    needs=(Unreadable,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=BYTES_NOT_DAMAGED,
)
def unreadable_segment(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each segment once; an unreadable file that is not a segment of this partition is listed as not audited."""
    numbers = {path: number for number, path in enumerate(context.paths)}
    for entry in evidence.of(Unreadable):
        number = numbers.get(entry.path)
        if number is None:
            continue
        name = context.segments[number]
        yield unreadable_segment.finding(
            context,
            f"{name} cannot be read: {entry.reason}",
            segment=number,
            anchor=name,
            evidence=_Evidence(
                rule="an audit reads every segment it was given",
                broker="takes a log directory offline when one of its files cannot be read",
                reason=entry.reason,
            ),
            explanations=_CAUSES,
            absent={
                "offset": "nothing of the segment was read",
                "producer_id": "nothing of the segment was read",
            },
        )
