"""A batch that unpacks to more than kaudit is willing to hold in memory."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.malformed import Wording, malformed_findings
from kaudit.model.damage import MalformedBatch
from kaudit.model.finding import Explanation, Finding, Severity

_WORDING = Wording(
    "too large to unpack",
    "a batch unpacks to a size consumers can hold",
    (
        Explanation("a decompression bomb: a few bytes that unpack to more than a consumer can hold"),
        Explanation("the topic allows batches this large (give `kaudit inspect` a larger limit)", innocent=True),
    ),
)


@check(
    "KA010",
    severity=Severity.ERROR,
    summary="a batch unpacks to more than kaudit is willing to hold",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=none_because("the limit is kaudit's own: brokers and clients log nothing about it"),
    simulated=none_because("schedules damage no bytes on disk"),
)
def limit_exceeded(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    yield from malformed_findings(limit_exceeded, context, evidence, _WORDING, limited=True)
