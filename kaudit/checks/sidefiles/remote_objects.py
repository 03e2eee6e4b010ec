"""Objects in remote storage that are not what their manifests or their kind demand (KIP-405)."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import INDEX_OF_DAMAGE
from kaudit.checks.sidefiles.about_file import WHOLE_FILE, FaultEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.source.layout import RemoteFault

_CAUSES = (
    Explanation("the upload broke off, and the plugin did not notice"),
    Explanation("a copy of the bucket, or a tool that works on it, changed or left out objects"),
    Explanation("the store returned other bytes than it was given"),
)


@check(
    "KA516",
    severity=Severity.ERROR,
    summary="an object in remote storage is missing, has another size than its manifest says, or cannot be decoded",
    needs=(RemoteFault,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(INDEX_OF_DAMAGE,),
    caused_by=none_because("brokers log a failed fetch without the object that failed"),
    simulated=none_because("simulated clusters have no remote storage"),
)
def remote_object_damaged(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each object, or each chunk of one, with the byte at which it is not what it should be."""
    for fault in evidence.of(RemoteFault):
        name = fault.path.rpartition("/")[2]
        yield remote_object_damaged.finding(
            context,
            f"{name}: {fault.detail}",
            segment=fault.segment,
            file=fault.path,
            position=fault.position,
            anchor=name if fault.position is None else f"{name} {fault.position}",
            evidence=FaultEvidence(
                rule="the objects of a segment are its log and its indexes, whole, as its manifest describes them (RemoteStorageManager)",
                broker="cannot serve consumers from it: a fetch of these offsets fails, and the local copy is deleted already",
                detail=fault.detail,
            ),
            explanations=_CAUSES,
            following=(f"kaudit inspect {quote(context.paths[fault.segment])}",),
            absent={**WHOLE_FILE, "offset": "bytes of an object are meant", "last_offset": "as offset"},
        )
