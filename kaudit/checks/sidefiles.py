"""What side-file checks have in common: a fact about one file, and the finding made of it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.checks.context import Context
from kaudit.model.finding import Confidence, Explanation, Finding, Severity

_ABSENT = {
    "producer_id": "the file belongs to the partition, not to a producer",
    "producer_epoch": "the file belongs to the partition, not to a producer",
    "offset": "the file as a whole is meant",
    "last_offset": "the file as a whole is meant",
    "position": "the file as a whole is meant",
    "segment": "the file belongs to no one segment",
}


class SideFileFact(Struct, frozen=True):
    """Something wrong with one side file.

    `file` is its name, `segment` the index of the segment it belongs to (None for a partition's own), `position` a byte
    in the file. `severity` None is the gravest of the check.
    """

    code: str
    file: str
    message: str
    rule: str
    broker: str
    """What a broker does when it loads this."""
    severity: Severity | None = None
    segment: int | None = None
    position: int | None = None
    offset: int | None = None
    last_offset: int | None = None
    producer_id: int | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    explanations: Sequence[Explanation] = ()
    beside: bool = False
    """The file lies in the log directory, beside the partition's own."""


def report_side_files(context: Context, facts: Sequence[SideFileFact]) -> list[Finding]:
    """Return a finding for each fact; `file` is the side file, the anchor its name."""
    return [_finding(context, fact) for fact in facts]


def _finding(context: Context, fact: SideFileFact) -> Finding:
    path = f"../{fact.file}" if fact.beside else fact.file
    found = context.finding(
        fact.code,
        fact.message,
        severity=fact.severity,
        confidence=Confidence.CERTAIN,
        segment=fact.segment,
        position=fact.position,
        offset=fact.offset,
        last_offset=fact.last_offset,
        producer_id=fact.producer_id,
        anchor=fact.file,
        evidence={"rule": fact.rule, "broker": fact.broker, **fact.evidence},
        explanations=fact.explanations,
        following=(context.inspect_command(path),),
        absent=_ABSENT,
    )
    directory = context.relative.rpartition("/")[0] if fact.beside else context.relative
    return replace(found, file=f"{directory}/{fact.file}" if directory else fact.file)
