"""KA001-KA004, KA006: bytes that are no usable batch, and batches in the wrong place."""

from collections.abc import Sequence

from kaudit.checks.context import Context, quote
from kaudit.checks.loading import loading_verdict
from kaudit.model.continuity import PlacedDamage
from kaudit.model.damage import DamageKind
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.observation import Observation

_CODES = {
    DamageKind.CRC_MISMATCH: "KA001",
    DamageKind.TORN: "KA002",
    DamageKind.UNPARSABLE: "KA003",
    DamageKind.ZEROS: "KA004",
    DamageKind.OUT_OF_ORDER: "KA006",
}
_MAX_CONSEQUENCES = 20


def report_damage(context: Context, damages: Sequence[PlacedDamage], explained: Sequence[Observation]) -> list[Finding]:
    """Report every stretch of damage once; producers whose missing sequences it explains are listed with it."""
    harmed = [placed for placed in damages if placed.damage.kind is not DamageKind.LEFT_OUT]
    return [_report(context, group, explained) for group in _grouped(harmed)]


def _grouped(damages: Sequence[PlacedDamage]) -> list[list[PlacedDamage]]:
    """Batches set aside one after the other are one event: a segment copied twice is not a thousand findings."""
    groups: list[list[PlacedDamage]] = []
    for damage in damages:
        before = groups[-1][-1] if groups else None
        if (
            before is not None
            and damage.damage.kind is DamageKind.OUT_OF_ORDER
            # zeros that reach into a batch's base offset leave it sound but out of place: its CRC does not cover that
            and before.damage.kind in (DamageKind.OUT_OF_ORDER, DamageKind.ZEROS)
            and before.segment == damage.segment
            and before.damage.end == damage.damage.position
        ):
            groups[-1].append(damage)
        else:
            groups.append([damage])
    return groups


def _report(context: Context, group: Sequence[PlacedDamage], explained: Sequence[Observation]) -> Finding:
    placed, last = group[0], group[-1]
    damage = placed.damage
    in_last_segment = placed.segment == len(context.segments) - 1
    code = _CODES[damage.kind]
    severity = _severity(placed, in_last_segment=in_last_segment)
    first_missing, last_missing = _lost(placed, group)
    offset, last_offset = damage.base_offset, last.damage.last_offset
    if damage.kind not in (DamageKind.CRC_MISMATCH, DamageKind.OUT_OF_ORDER):
        offset, last_offset = first_missing, last_missing
    size = last.damage.end - damage.position
    evidence: dict[str, object] = {
        "rule": _RULES[damage.kind],
        "broker": loading_verdict(
            damage, len(context.segments) - 1 - placed.segment, was_batch=placed.first_missing is not None
        ),
        "detail": damage.detail,
        "bytes": size,
        "end_position": last.damage.end,
        "resynchronised_at": last.damage.end if last.damage.resynchronised else None,
        "expected_offset": placed.expected_offset,
        "first_missing_offset": first_missing,
        "last_missing_offset": last_missing,
    }
    if len(group) > 1:
        evidence["count"] = len(group)
    consequences = consequences_of(first_missing, last_missing, explained)
    if consequences:
        evidence["consequences"] = consequences
    anchor = None
    if offset is None:
        anchor = str(placed.expected_offset) if placed.expected_offset is not None else f"byte {damage.position}"
    return context.finding(
        code,
        _message(placed, group, first_missing, last_missing),
        severity=severity,
        segment=placed.segment,
        position=damage.position,
        offset=offset,
        last_offset=last_offset if offset is not None else None,
        anchor=anchor,
        evidence=evidence,
        explanations=_explanations(damage.kind, in_last_segment=in_last_segment, severity=severity),
        following=(
            f"kafka-dump-log --files {quote(context.directory + '/' + context.segments[placed.segment])}",
            "compare this partition with its other replicas before any broker recovers this log",
        ),
        absent={
            "offset": "the bytes name no offset that can be trusted and no offset is missing around them",
            "last_offset": "as offset",
            "producer_id": "the bytes that name it are not to be trusted",
            "producer_epoch": "the bytes that name it are not to be trusted",
        },
    )


def _severity(placed: PlacedDamage, *, in_last_segment: bool) -> Severity:
    kind = placed.damage.kind
    if kind is DamageKind.TORN and in_last_segment:
        return Severity.WARNING
    if kind is DamageKind.ZEROS and in_last_segment and not placed.damage.resynchronised:
        return Severity.NOTE
    return Severity.ERROR


def _lost(placed: PlacedDamage, group: Sequence[PlacedDamage]) -> tuple[int | None, int | None]:
    known = [entry for entry in group if entry.first_missing is not None]
    if not known:
        return placed.first_missing, placed.last_missing
    return known[0].first_missing, known[-1].last_missing


def _message(
    placed: PlacedDamage, group: Sequence[PlacedDamage], first_missing: int | None, last_missing: int | None
) -> str:
    damage = placed.damage
    lost = ""
    if first_missing is not None:
        offsets = (
            f"offset {first_missing}" if first_missing == last_missing else f"offsets {first_missing}..{last_missing}"
        )
        lost = f"; {offsets} cannot be read"
    size = group[-1].damage.end - damage.position
    if damage.kind is DamageKind.CRC_MISMATCH:
        return f"the batch of offsets {damage.base_offset}..{damage.last_offset} does not match its CRC"
    if damage.kind is DamageKind.TORN:
        return f"the segment breaks off at byte {damage.position}: {damage.detail}{lost}"
    if damage.kind is DamageKind.ZEROS:
        return f"zeros from byte {damage.position} on: {damage.detail}{lost}"
    if damage.kind is DamageKind.UNPARSABLE:
        return f"{size} bytes at {damage.position} are not a valid batch ({damage.detail}){lost}"
    if len(group) > 1:
        return f"{len(group)} batches from offset {damage.base_offset} on are out of order: {damage.detail}"
    return f"the batch of offsets {damage.base_offset}..{damage.last_offset} is out of order: {damage.detail}"


def consequences_of(first: int | None, last: int | None, explained: Sequence[Observation]) -> list[dict[str, int]]:
    """Producers with sequences missing exactly where these offsets are."""
    if first is None or last is None:
        return []
    found: list[dict[str, int]] = []
    for fact in explained:
        before = fact.remembered.last.last_offset if fact.remembered and fact.remembered.last else -1
        if before < first and fact.offset > last:
            found.append(
                {
                    "producer_id": fact.producer_id,
                    "producer_epoch": fact.producer_epoch,
                    "missing_sequences": fact.missing_sequences,
                    "offset": fact.offset,
                }
            )
    found.sort(key=lambda entry: (entry["offset"], entry["producer_id"]))
    if len(found) > _MAX_CONSEQUENCES:
        more = len(found) - _MAX_CONSEQUENCES
        return [*found[:_MAX_CONSEQUENCES], {"more": more}]
    return found


_RULES = {
    DamageKind.CRC_MISMATCH: "a batch's CRC covers everything from its attributes to its last record "
    "(DefaultRecordBatch.ensureValid); a broker recovering this segment truncates it here and deletes later segments",
    DamageKind.TORN: "a segment consists of whole batches; a broker that was not shut down cleanly truncates the rest",
    DamageKind.UNPARSABLE: "every batch begins where the one before it ends, with a magic of 0, 1 or 2",
    DamageKind.ZEROS: "no batch has a length of zero; only a preallocated last segment ends in zeros",
    DamageKind.OUT_OF_ORDER: "offsets rise from batch to batch and stay within their segment; brokers do not check this "
    "when they load a log",
}


def _explanations(kind: DamageKind, *, in_last_segment: bool, severity: Severity) -> tuple[Explanation, ...]:
    if kind is DamageKind.ZEROS and severity is Severity.NOTE:
        return (Explanation("log.preallocate is on: the segment was made at full size", innocent=True),)
    if kind is DamageKind.TORN and in_last_segment:
        return (
            Explanation("the broker or its disk stopped in the middle of an append"),
            Explanation("the disk was full: the rest of the batch did not fit"),
            Explanation("the copy was taken while the broker was appending", innocent=True),
        )
    if kind is DamageKind.TORN:
        return (
            Explanation("the file was cut: an incomplete copy, or a repaired file system"),
            Explanation("blocks were lost with a power failure before they were flushed"),
        )
    if kind is DamageKind.OUT_OF_ORDER:
        return (
            Explanation("a bit of the base offset flipped: the CRC does not cover it"),
            Explanation("parts of segments were put together by hand or by a faulty copy"),
        )
    return (
        Explanation("the disk or the memory of a host flipped bits: its other replicas may be sound"),
        Explanation("blocks were lost with a power failure before they were flushed"),
        Explanation("another program wrote into the file, or a copy went wrong"),
    )
