"""A batch whose CRC holds while its counts, deltas, codec or records contradict each other."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.malformed import Wording, malformed_findings
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import MalformedBatch
from kaudit.model.finding import Explanation, Finding, Severity

_WORDING = Wording(
    "malformed",
    "counts, offset deltas and lengths of a batch agree, and its records fill it exactly (DefaultRecordBatch)",
    (
        Explanation("a client wrote it so: the CRC was computed over what is wrong, so the disk did not do it"),
        Explanation("a program rewrote the batch and its CRC"),
    ),
)


@check(
    "KA005",
    severity=Severity.ERROR,
    summary="a batch's CRC holds, but its counts, deltas, codec or records contradict each other",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
)
def malformed_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    yield from malformed_findings(malformed_batch, context, evidence, _WORDING, limited=False)
