"""Bytes that are not a usable batch, and batches out of place: five checks that report ranges of damage alike."""

import functools
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.partition.log_loading import loading_effect, truncates
from kaudit.checks.check import BYTES_NOT_DAMAGED, Check, Evidence, Reading, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.missing_offsets import Consequences, consequences, lacking_producers, lost_records
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.observation import Observation
from kaudit.model.severity import Severity

HOST_CAUSES = (
    Explanation("the disk or the memory of a host flipped bits: its other replicas may be intact"),
    Explanation("blocks were lost with a power failure before they were flushed"),
    Explanation("another program wrote into the file, or a copy went wrong"),
)
_SERVED = "serves the batch as it lies on its disk; consumers that check CRCs, as they do by default, fail here"
_BYTES_NOT_TRUSTED = "the bytes that name it are not to be trusted"
_ABSENT = {
    "offset": "the bytes name no offset that can be trusted and no offset is missing around them",
    "last_offset": "as offset",
    "producer_id": _BYTES_NOT_TRUSTED,
    "producer_epoch": _BYTES_NOT_TRUSTED,
}


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
    def missing_count(self) -> int:
        """The number of offsets the damage cost, as far as that is known."""
        ranges = {(part.first_missing, part.last_missing) for part in self.parts}
        return sum(last - first + 1 for first, last in ranges if first is not None and last is not None)

    @property
    def was_batch(self) -> bool:
        """Whether offsets are missing at its beginning."""
        return self.first.first_missing is not None

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


def damaged_ranges(evidence: Evidence, kind: DamageKind) -> Iterator[DamagedRange]:
    """Yield the ranges that begin with damage of this kind, in log order."""
    group: list[PlacedDamage] = []
    for placed in evidence.of(PlacedDamage):
        if group and not _continues(group[-1], placed):
            if group[0].damage.kind is kind:
                yield DamagedRange(group)
            group = []
        group.append(placed)
    if group and group[0].damage.kind is kind:
        yield DamagedRange(group)


def _continues(before: PlacedDamage, placed: PlacedDamage) -> bool:
    """Whether both are one event: a segment that was copied twice must not be a thousand findings."""
    return (
        placed.damage.kind is DamageKind.OUT_OF_ORDER
        # zeros that reach into a batch's base offset leave it valid but out of place: its CRC does not cover that
        and before.damage.kind in (DamageKind.OUT_OF_ORDER, DamageKind.ZEROS)
        and before.segment == placed.segment
        and before.damage.end == placed.damage.position
    )


class _DamageEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    detail: str
    bytes: int | None = None
    end_position: int | None = None
    resynchronised_at: int | None
    expected_offset: int | None
    first_missing_offset: int | None
    last_missing_offset: int | None
    count: int | None = None
    consequences: Consequences | None = None

    def own_fields(self) -> dict[str, object]:
        own = super().own_fields()
        if self.bytes is None:  # brokers sent the batches
            del own["resynchronised_at"]
        return own


def damage_finding(  # noqa: PLR0913 - how a check reports a range, by keyword
    check: Check,
    context: Context,
    evidence: Evidence,
    found: DamagedRange,
    *,
    message: str,
    rule: str,
    explanations: Sequence[Explanation] = HOST_CAUSES,
    severity: Severity = Severity.ERROR,
    claims_offsets: bool = False,
) -> Finding:
    """Build the finding of one range, with the producers whose missing sequences it explains.

    `claims_offsets`: it names the offsets that the headers of the batches claim, else those that are missing.
    """
    placed, last = found.first, found.parts[-1].damage
    damage = placed.damage
    missing = found.missing
    lacking = lacking_producers(evidence, *missing)
    offset, last_offset = (damage.base_offset, last.last_offset) if claims_offsets else missing
    later_segments = len(context.segments) - 1 - placed.segment
    anchor = None
    if offset is None:
        anchor = str(placed.expected_offset) if placed.expected_offset is not None else f"byte {damage.position}"
    return check.finding(
        context,
        message,
        severity=severity,
        segment=placed.segment,
        position=damage.position,
        offset=offset,
        last_offset=last_offset if offset is not None else None,
        anchor=anchor,
        evidence=_DamageEvidence(
            rule=rule,
            broker=_in_remote_storage(context, found)
            or (
                loading_effect(damage, later_segments, was_batch=found.was_batch)
                if context.fetched is None
                else _SERVED
            ),
            detail=damage.detail,
            bytes=None if context.fetched is not None else found.size,
            end_position=None if context.fetched is not None else last.end,
            resynchronised_at=last.end if last.resynchronised else None,
            expected_offset=placed.expected_offset,
            first_missing_offset=missing[0],
            last_missing_offset=missing[1],
            count=len(found.parts) if len(found.parts) > 1 else None,
            consequences=consequences(lacking),
        ),
        explanations=explanations,
        impact=NO_IMPACT if severity is Severity.NOTE else _impact(context, evidence, found, lacking),
        following=(
            context.dump_command(placed.segment, damage.position),
            "compare this partition with its other replicas before any broker recovers this log",
        ),
        absent=_ABSENT,
    )


def _in_remote_storage(context: Context, found: DamagedRange) -> str | None:
    """Return what a broker does with damage in a remote segment, None for a segment on its disk."""
    is_remote = context.segments[found.first.segment] in context.elsewhere
    return (
        "a fetch of these offsets fails; a broker that recovers its log does not read remote storage"
        if is_remote
        else None
    )


def _impact(context: Context, evidence: Evidence, found: DamagedRange, lacking: Sequence[Observation]) -> Impact:
    """Return the unreadable records, and the bytes from here to the log's end where a recovery cuts them off."""
    damage = found.first.damage
    lost = NO_IMPACT
    if offsets := found.missing_count:
        lost = lost_records(context, evidence, offsets, lacking)
        if damage.kind is DamageKind.OUT_OF_ORDER:
            # the batch is valid but for its place: the records that are missed may be those in it
            lost = replace(lost, records_lost_at_least=0)
    if (
        not context.segment_sizes
        or _in_remote_storage(context, found)
        or not truncates(damage, was_batch=found.was_batch)
    ):
        return lost
    return replace(lost, bytes_truncated=sum(context.segment_sizes[found.first.segment :]) - damage.position)


_damage_check = functools.partial(
    check,
    severity=Severity.ERROR,
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=BYTES_NOT_DAMAGED,
    compared=True,
)


@_damage_check(
    "KA001",
    summary="a batch's CRC does not match its bytes",
    reads=Reading.BATCHES,
)
def crc_mismatch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such batch with the offsets its header claims."""
    for found in damaged_ranges(evidence, DamageKind.CRC_MISMATCH):
        damage = found.first.damage
        yield damage_finding(
            crc_mismatch,
            context,
            evidence,
            found,
            message=f"the batch of offsets {damage.base_offset}..{damage.last_offset} does not match its CRC",
            rule="a batch's CRC covers everything from its attributes to its last record "
            "(DefaultRecordBatch.ensureValid); a broker recovering this segment truncates it here and deletes later "
            "segments",
            claims_offsets=True,
        )


_LAST_SEGMENT_CAUSES = (
    Explanation("the broker or its disk stopped in the middle of an append"),
    Explanation("the disk was full: the rest of the batch did not fit"),
    Explanation("the copy was taken while the broker was appending", innocent=True),
)
_CLOSED_SEGMENT_CAUSES = (
    Explanation("the file was cut: an incomplete copy, or a repaired file system"),
    Explanation("blocks were lost with a power failure before they were flushed"),
)


@_damage_check(
    "KA002",
    severity_note="warning in the last segment",
    summary="a segment ends inside a batch",
)
def truncated_tail(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such segment; a crash leaves the last one like that."""
    for found in damaged_ranges(evidence, DamageKind.TORN):
        damage, is_last = found.first.damage, found.in_last_segment(context)
        may_be_append = is_last and not (context.segment_sizes and damage.ends_inside_append)
        yield damage_finding(
            truncated_tail,
            context,
            evidence,
            found,
            message=f"the segment breaks off at byte {damage.position}: {damage.detail}{found.unreadable}",
            rule="a segment consists of whole batches; a broker that was not shut down cleanly truncates the rest",
            explanations=_LAST_SEGMENT_CAUSES if may_be_append else _CLOSED_SEGMENT_CAUSES,
            severity=Severity.WARNING if is_last else Severity.ERROR,
        )


@_damage_check(
    "KA003",
    summary="bytes that are not a batch: garbage, an unknown magic, or a length that lost the framing",
)
def unparsable_bytes(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the bytes up to the next valid batch, or to the segment's end."""
    for found in damaged_ranges(evidence, DamageKind.UNPARSABLE):
        damage = found.first.damage
        where = f"{found.size} bytes at {damage.position}" if context.fetched is None else "bytes that the broker sent"
        yield damage_finding(
            unparsable_bytes,
            context,
            evidence,
            found,
            message=f"{where} are not a valid batch ({damage.detail}){found.unreadable}",
            rule="every batch begins where the one before it ends, with a magic of 0, 1 or 2",
        )


_PREALLOCATED = (Explanation("log.preallocate is on: the segment was created at full size", innocent=True),)


@_damage_check(
    "KA004",
    severity_note="note for zeros to the end of the last segment (preallocated)",
    summary="zeros where batches should be",
)
def zero_filled(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of zeros; those at the end of the last segment are healthy."""
    for found in damaged_ranges(evidence, DamageKind.ZEROS):
        damage = found.first.damage
        preallocated = found.in_last_segment(context) and not damage.resynchronised
        yield damage_finding(
            zero_filled,
            context,
            evidence,
            found,
            message=f"zeros from byte {damage.position} on: {damage.detail}{found.unreadable}",
            rule="no batch has a length of zero; only a preallocated last segment ends in zeros",
            explanations=_PREALLOCATED if preallocated else HOST_CAUSES,
            severity=Severity.NOTE if preallocated else Severity.ERROR,
        )


_OUT_OF_ORDER_CAUSES = (
    Explanation("a bit of the base offset flipped: the CRC does not cover it"),
    Explanation("parts of segments were put together by hand or by a faulty copy"),
)


@_damage_check(
    "KA006",
    summary="a batch's offsets do not follow its neighbours'",
)
def offset_regression(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch, and batches one after the other once."""
    for found in damaged_ranges(evidence, DamageKind.OUT_OF_ORDER):
        damage, number = found.first.damage, len(found.parts)
        which = f"the batch of offsets {damage.base_offset}..{damage.last_offset} is"
        if number > 1:
            which = f"{number} batches from offset {damage.base_offset} on are"
        yield damage_finding(
            offset_regression,
            context,
            evidence,
            found,
            message=f"{which} out of order: {damage.detail}",
            rule="offsets rise from batch to batch and stay within their segment; brokers that load a log check it only "
            "at rows of the offset index",
            explanations=_OUT_OF_ORDER_CAUSES,
            claims_offsets=True,
        )
