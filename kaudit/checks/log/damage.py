"""Bytes that are not a usable batch, and batches out of place: what the checks of each kind of damage share."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from kaudit.broker.partition.log_loading import loading_verdict
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.checks.log.consequences import consequences
from kaudit.model.continuity import PlacedDamage
from kaudit.model.damage import DamageKind
from kaudit.model.finding import Explanation, Finding, Severity

HOST_CAUSES = (
    Explanation("the disk or the memory of a host flipped bits: its other replicas may be intact"),
    Explanation("blocks were lost with a power failure before they were flushed"),
    Explanation("another program wrote into the file, or a copy went wrong"),
)
_BYTES_NOT_TRUSTED = "the bytes that name it are not to be trusted"


class DamagedRange(Struct, frozen=True):
    """Neighbouring damage reported as one: the bytes `position` to `end` (exclusive) of a segment."""

    parts: Sequence[PlacedDamage]

    @property
    def first(self) -> PlacedDamage:
        """The damage that begins the range; its kind is the range's."""
        return self.parts[0]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.parts[-1].damage.end - self.first.damage.position

    @property
    def missing(self) -> tuple[int | None, int | None]:
        """First and last offset the damage cost, None if it cost none or that is unknown."""
        known = [part for part in self.parts if part.first_missing is not None]
        return (known[0].first_missing, known[-1].last_missing) if known else (None, None)

    @property
    def unreadable(self) -> str:
        """`; offsets 3..7 cannot be read`, empty if none are missing."""
        first, last = self.missing
        if first is None:
            return ""
        return f"; offset {first} cannot be read" if first == last else f"; offsets {first}..{last} cannot be read"

    def in_last_segment(self, context: Context) -> bool:
        """Whether it lies in the segment the broker appends to."""
        return self.first.segment == len(context.segments) - 1


class Wording(Struct, frozen=True, kw_only=True):
    """How a check reports a range: its sentences, and whether it names the offsets the batch header claims."""

    message: str
    rule: str
    explanations: Sequence[Explanation] = HOST_CAUSES
    severity: Severity = Severity.ERROR
    claims_offsets: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


def damaged_ranges(evidence: Evidence, kind: DamageKind) -> Iterator[DamagedRange]:
    """Yield the ranges that begin with damage of this kind, in log order."""
    group: list[PlacedDamage] = []
    for placed in evidence.of(PlacedDamage):
        if placed.damage.kind is DamageKind.LEFT_OUT:
            continue
        if group and not _continues(group[-1], placed):
            if group[0].damage.kind is kind:
                yield DamagedRange(group)
            group = []
        group.append(placed)
    if group and group[0].damage.kind is kind:
        yield DamagedRange(group)


def _continues(before: PlacedDamage, placed: PlacedDamage) -> bool:
    """Batches set aside one after the other are one event: a segment copied twice is not a thousand findings."""
    return (
        placed.damage.kind is DamageKind.OUT_OF_ORDER
        # zeros that reach into a batch's base offset leave it valid but out of place: its CRC does not cover that
        and before.damage.kind in (DamageKind.OUT_OF_ORDER, DamageKind.ZEROS)
        and before.segment == placed.segment
        and before.damage.end == placed.damage.position
    )


def damage_finding(
    check: Check, context: Context, evidence: Evidence, found: DamagedRange, wording: Wording
) -> Finding:
    """Build the finding of one range; producers whose missing sequences it explains are listed with it."""
    placed, last = found.first, found.parts[-1].damage
    damage = placed.damage
    missing = found.missing
    offset, last_offset = (damage.base_offset, last.last_offset) if wording.claims_offsets else missing
    later_segments = len(context.segments) - 1 - placed.segment
    anchor = None
    if offset is None:
        anchor = str(placed.expected_offset) if placed.expected_offset is not None else f"byte {damage.position}"
    return check.finding(
        context,
        wording.message,
        severity=wording.severity,
        segment=placed.segment,
        position=damage.position,
        offset=offset,
        last_offset=last_offset if offset is not None else None,
        anchor=anchor,
        evidence={
            "rule": wording.rule,
            "broker": loading_verdict(damage, later_segments, was_batch=placed.first_missing is not None),
            "detail": damage.detail,
            "bytes": found.size,
            "end_position": last.end,
            "resynchronised_at": last.end if last.resynchronised else None,
            "expected_offset": placed.expected_offset,
            "first_missing_offset": missing[0],
            "last_missing_offset": missing[1],
            **({"count": len(found.parts)} if len(found.parts) > 1 else {}),
            **consequences(evidence, *missing),
        },
        explanations=wording.explanations,
        following=(
            context.dump_command(placed.segment, damage.position),
            "compare this partition with its other replicas before any broker recovers this log",
        ),
        absent={
            "offset": "the bytes name no offset that can be trusted and no offset is missing around them",
            "last_offset": "as offset",
            "producer_id": _BYTES_NOT_TRUSTED,
            "producer_epoch": _BYTES_NOT_TRUSTED,
        },
    )
