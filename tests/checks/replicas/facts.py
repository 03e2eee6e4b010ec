"""Comparisons of replicas made by hand, and what the checks of replicas report of them."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.replicas import (
    Difference,
    MissingRecords,
    OffsetRange,
    PartitionComparison,
    Relation,
    ReplicaBatch,
    ReplicaEvidence,
    ReplicaLag,
)

_COMMON = Context(
    versions=VersionRange(Version.parse("3.0.0"), Version.parse("3.9.0")),
    coordinator=CoordinatorView(),
    clock=given_clock(0),
    topic="orders",
    partition=0,
)


def context(*names: str) -> Context:
    """The context of partition orders-0 on these brokers, each with two segments."""
    segments = ("00000000000000000000.log", "00000000000000000050.log")
    return replace(
        _COMMON,
        replicas={
            name: replace(_COMMON, replica=name, directory=f"/{name}/orders-0", relative="orders-0", segments=segments)
            for name in names
        },
    )


def held(
    offset: int, last: int, *, epoch: int = 0, crc: int = 1, position: int = 700, segment: int = 1
) -> ReplicaBatch:
    """A batch without a producer id on one replica."""
    return ReplicaBatch(
        offset=offset,
        last_offset=last,
        leader_epoch=epoch,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        last_sequence=-1,
        record_count=last - offset + 1,
        timestamp=5000,
        crc=crc,
        size=90,
        position=position,
        segment=segment,
    )


def compared(ends: Mapping[str, int], reference: str | None = "b1", **fields: Any) -> PartitionComparison:
    """A comparison of replicas with these ends (exclusive); `fields` are all that differs from identical replicas."""
    others = [name for name in ends if name != reference]
    defaults: dict[str, Any] = {
        "relation": Relation.DIVERGED,
        "relations": dict.fromkeys(others, Relation.IDENTICAL),
        "missing_on": (),
        "common_end_offset": min(ends.values()),
        "first_difference": None,
        "leader_epochs": {name: [] for name in ends},
        "truncation_offsets": dict.fromkeys(others),
        "only_on": {},
        "start_offsets": dict.fromkeys(ends, 0),
        "end_offsets": dict(ends),
    }
    return PartitionComparison(topic="orders", partition=0, reference=reference, **(defaults | fields))


def parted(offset: int, **batches: ReplicaBatch) -> Difference:
    """A first difference and what each replica holds there."""
    return Difference(offset, batches)


def alone(**ranges: tuple[int, int]) -> dict[str, OffsetRange]:
    """What is on one replica alone, by its name."""
    return {name: OffsetRange(*offsets) for name, offsets in ranges.items()}


def lacking(records: int, below: int = 0, elsewhere: int = 0, **more: int) -> MissingRecords:
    """Records that another copy lacks."""
    return MissingRecords(records, below, elsewhere, **more)


def reported(check: Check, comparison: PartitionComparison, **around: Any) -> list[Finding]:
    """What a check reports of a comparison; `around` are the other fields of ReplicaEvidence."""
    fields: dict[str, Any] = {"high_watermarks": {}, "last_common": {}} | around
    found = ReplicaEvidence(comparison, **fields)
    evidence = Evidence([found, ReplicaLag(found)])
    return list(check.run(context(*comparison.end_offsets), evidence))


def grade(found: Finding) -> tuple[str, str]:
    """Severity and confidence."""
    return found.severity.value, found.confidence.value
