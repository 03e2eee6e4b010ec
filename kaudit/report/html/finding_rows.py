"""Findings as the page shows them: in the words of the table, with the producer's state before and after."""

import json
from collections.abc import Iterator, Mapping, Sequence

from kaudit.broker.producer_state.producer_state_entry import (
    BatchMetadata,
    DataBatch,
    MarkerBatch,
    ProducerStateEntry,
)
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.releases.profile import Profile, UnknownVersionError, profile_for
from kaudit.broker.releases.version import RELEASES
from kaudit.checks.registry import CHECKS
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BatchEvidence, WindowBatch
from kaudit.model.finding import Finding
from kaudit.model.json_record import json_value, rfc3339
from kaudit.report.html.page_model import FindingRow, Int64, Table
from kaudit.report.text.finding_block import evidence_table, known_bug_text, place_text
from kaudit.report.text.formatting import timestamp_of
from kaudit.results.costs import impact_text

_SHOWN_ELSEWHERE = frozenset(
    {"rule", "broker", "remembered", "previous", "offending", "next", "copies", "owner", "siblings", "remarks"}
)
Fact = tuple[str, str]
PAGE_OMITS: Mapping[str, str] = {"anchor": "the fingerprint has it", "absent": "what is null is not shown"}
"""Fields of Finding that the page does not show, and why."""
PAGE_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("topic", "replica", "log_dir", "file", "segment", "position"), "place"),
    **{name: name for name in FindingRow.__struct_fields__ if name in Finding.__struct_fields__},
    "known_bugs": "facts",
}
"""The field of FindingRow that shows a field of Finding; a field without a place of its own is among the facts."""
PAGE_FACTS = tuple(name for name in Finding.__struct_fields__ if name not in {*PAGE_OMITS, *PAGE_PLACES})


def finding_row(
    finding: Finding, partition: int | None, incident: int | None, profile: Profile, *, many_inputs: bool
) -> FindingRow:
    """Return the row; `partition` and `incident` are indexes, `profile` the rules by which states follow one another."""
    before, after = _states(finding, profile)
    return FindingRow(
        fingerprint=finding.fingerprint,
        code=finding.code,
        name=finding.name,
        severity=finding.severity.value,
        confidence=finding.confidence.value,
        status=finding.status.value,
        suppression=finding.suppression,
        partition=partition,
        place=place_text(finding, many_inputs=many_inputs, replicas=()),
        incident=incident,
        producer_id=int64(finding.producer_id),
        producer_epoch=finding.producer_epoch,
        offset=int64(finding.offset),
        last_offset=int64(finding.last_offset),
        timestamp=int64(timestamp_of(finding)),
        message=finding.message,
        impact=impact_text(finding.impact),
        lost=finding.impact.is_lossy and finding.impact.records_lost_at_most != 0,
        rule=finding.evidence.rule,
        broker=finding.evidence.broker,
        evidence=_evidence(finding),
        facts=[
            *(("known bug", known_bug_text(known)) for known in finding.known_bugs),
            *_facts({name: json_value(getattr(finding, name)) for name in PAGE_FACTS}),
            *finding.evidence.remarks.items(),
            *_facts(finding.evidence.to_dict()),
        ],
        state_before=before,
        state_after=after,
        explanations=list(finding.explanations),
        next=list(finding.next),
        doc=CHECKS[finding.code].summary if finding.code in CHECKS else "",
    )


def int64(number: int | None) -> Int64 | None:
    """Return a number as the page holds it."""
    return None if number is None else str(number)


def profile_of(version: str | None) -> Profile:
    """Return the rules of the version a log is taken to be from, the newest ones where that is not known."""
    try:
        return profile_for(version or RELEASES[-1])
    except UnknownVersionError:  # saved by a later release
        return profile_for(RELEASES[-1])


def _evidence(finding: Finding) -> Table | None:
    table = evidence_table(finding)
    if table is None:
        return None
    headings = [column.heading for column in table.columns]
    rows = [[name, *(column.cells[row] for column in table.columns)] for row, name in enumerate(table.names)]
    marked = table.marked.index(True) if table.marked.count(True) == 1 else None
    faulty = headings.index(table.faulty) + 1 if table.faulty in headings else None
    return Table(["", *headings], rows, marked, faulty)


def _facts(evidence: Mapping[str, object]) -> Iterator[Fact]:
    for name, value in evidence.items():
        if name not in _SHOWN_ELSEWHERE and value is not None:
            yield name.replace("_", " "), _fact(name, value)


def _fact(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("timestamp"):
        return rfc3339(value) or str(value)
    if isinstance(value, str):
        return value
    return (
        json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, Mapping | list | tuple) else str(value)
    )


def _states(finding: Finding, profile: Profile) -> tuple[Sequence[Fact], Sequence[Fact]]:
    """Return the producer's state before the batch in question and after it, as a broker that loads the log has them.

    Source: ProducerStateManager.loadProducersFromRecords: what is on disk is taken over, whatever it is.
    """
    before, batch = _remembered(finding.evidence), _batch(finding.evidence.offending)
    if batch is None:
        return ([] if before is None else _state(before)), []
    producers = ProducerStateManager(profile)
    if before is not None:
        producers.put(batch.producer_id, before)
    producers.replicate([batch])
    return [("producer", "unknown")] if before is None else _state(before), _state(producers.get(batch.producer_id))


def _state(state: ProducerStateEntry) -> list[Fact]:
    facts = state_facts(
        state.epoch, state.last_sequence, state.last_offset, state.coordinator_epoch, state.current_txn_first_offset
    )
    batches = [
        f"{entry.last_sequence - entry.offset_delta}..{entry.last_sequence} @ {entry.first_offset}"
        for entry in state.batches
        if entry.last_sequence >= 0
    ]
    return [*facts, ("remembered batches (sequences @ offset)", ", ".join(batches) or "none")]


def state_facts(*values: int) -> list[Fact]:
    """Return a producer's epoch, last sequence, last offset, coordinator epoch and first offset of an open transaction."""
    names = ("producer epoch", "last sequence", "last offset", "coordinator epoch", "transaction open since offset")
    return [(name, "none" if value < 0 else str(value)) for name, value in zip(names, values, strict=True)]


def _remembered(evidence: FindingEvidence) -> ProducerStateEntry | None:
    held = evidence.remembered
    if held is None:
        return None
    batches = [entry for known in held.window if (entry := _metadata(known, None)) is not None]
    previous = evidence.previous
    last = None if previous is None else _metadata(previous, previous.last_offset)
    if not batches and last is not None and held.last_sequence == last.last_sequence:
        batches = [last]
    return ProducerStateEntry(
        epoch=_number(held.producer_epoch),
        coordinator_epoch=_number(held.coordinator_epoch),
        batches=tuple(batches),
        current_txn_first_offset=_number(held.current_txn_start_offset),
    )


def _metadata(batch: WindowBatch | BatchEvidence, last_offset: int | None) -> BatchMetadata | None:
    if _number(batch.offset) < 0:
        return None
    first, last, offset = map(_number, (batch.base_sequence, batch.last_sequence, batch.offset))
    length = max(last - first, 0) if last_offset is None else max(last_offset - offset, 0)
    return BatchMetadata(last, offset + length, length, -1)


def _batch(offending: BatchEvidence | None) -> DataBatch | MarkerBatch | None:
    if offending is None or _number(offending.producer_id) < 0:
        return None
    number, epoch = _number(offending.producer_id), _number(offending.producer_epoch)
    offset, at = _number(offending.offset), _number(offending.timestamp)
    if offending.type is not None:
        coordinator_epoch = _number(offending.coordinator_epoch)
        return MarkerBatch(number, epoch, coordinator_epoch, offset, at, commit=offending.type == "COMMIT")
    if offending.base_sequence is None:
        return None
    return DataBatch(
        number,
        epoch,
        offending.base_sequence,
        _number(offending.last_sequence),
        offset,
        max(_number(offending.last_offset), offset),
        at,
        is_transactional=offending.is_transactional is True,
    )


def _number(value: int | None) -> int:
    return -1 if value is None else value
