"""A partition's context made by hand, and what checks report there of facts that logs seldom show."""

from typing import Any

from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.model.audit_clock import AppendTime, given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import ProducerAuditState, RetainedBatch

CONTEXT = Context(
    versions=VersionRange(Version.parse("3.0.0"), Version.parse("3.9.0")),
    coordinator=CoordinatorView(),
    clock=given_clock(0),
    topic="orders",
    partition=0,
    log_dir="/logs",
    directory="/logs/orders-0",
    relative="orders-0",
    segments=("00000000000000000000.log", "00000000000000000090.log"),
    paths=("/logs/orders-0/00000000000000000000.log", "/logs/orders-0/00000000000000000090.log"),
)


def plain(ordinal: int, offset: int, records: int = 2, time: int = 1000) -> NonIdempotentBatch:
    """A batch without a producer id."""
    return NonIdempotentBatch(
        ordinal, offset, offset + records - 1, 1, 2, 100, records, time, time + 5, 70 * ordinal, 1, False
    )


def reported(check: Check, *facts: object, context: Context = CONTEXT) -> list[Finding]:
    """What a check reports of these facts."""
    return list(check.run(context, Evidence(facts)))


def summary(found: Finding) -> tuple[object, ...]:
    """Severity, confidence, first and last offset."""
    return found.severity.value, found.confidence.value, found.offset, found.last_offset


def appended(observation: Observation, context: Context = CONTEXT, since_ms: int | None = None) -> Context:
    """The context where a broker wrote a time before the observed batch: the batch's own unless another is given."""
    assert observation.batch is not None
    since = observation.batch.max_timestamp if since_ms is None else since_ms
    return replace(context, append_times={observation.offset: AppendTime(observation.offset, since)})


def batch(offset: int, sequence: int, count: int, present: int, *, leader_epoch: int = 0) -> BoundaryBatch:
    """A batch of a producer; `present` are the offsets before it that are there."""
    return BoundaryBatch(
        offset, offset + count - 1, sequence, sequence + count - 1, count, 1, 1000, present, 0, 90, leader_epoch, 0
    )


def gap(
    producer_id: int, before: BoundaryBatch, after: BoundaryBatch, missing: int, offsets: int, **more
) -> Observation:
    """Sequences that are missing between two batches, `offsets` of which are missing too."""
    state = ProducerAuditState(epoch=1, last_sequence=before.last_sequence, last=before)
    kind = more.pop("kind", ObservationKind.GAP)
    return Observation(
        kind, producer_id, 1, after, None, False, state, None, missing, offsets, explained=missing <= offsets, **more
    )


TIMELINE = "kaudit timeline /logs --topic orders --partition 0 --producer-id 7"
KNOWN = (RetainedBatch(40, 0, 2, 77), RetainedBatch(43, 3, 5, 78))


def state(**fields: Any) -> ProducerAuditState:
    """The state of a producer whose last two batches held sequences 0..2 and 3..5."""
    known: dict[str, Any] = {
        "epoch": 1, "last_sequence": 5, "window": KNOWN, "last": batch(43, 3, 3, 43), "last_timestamp": 1000,
    }  # fmt: skip
    return ProducerAuditState(**(known | fields))


def seen(kind: ObservationKind, at: BoundaryBatch | None = None, **fields: Any) -> Observation:
    """An observation of producer 7, epoch 1: a batch of sequences 3..5 at offset 50 unless given."""
    known: dict[str, Any] = {
        "marker": None, "is_transactional": False, "remembered": state(), "original": KNOWN[1],
    }  # fmt: skip
    return Observation(kind, 7, 1, batch=at or batch(50, 3, 3, 50), **(known | fields))


def versions(least: str, most: str, **fields: Any) -> Context:
    """The context where the broker's version is one of these."""
    return replace(CONTEXT, versions=VersionRange(Version.parse(least), Version.parse(most)), **fields)


def commands_of(found: Finding) -> list[str]:
    """The commands to run next, without the comments above them."""
    return [command for command in found.next if not command.startswith("# ")]
