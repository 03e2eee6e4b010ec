"""A broker that reads this log to rebuild its state fails."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from kaudit.broker.producer_state.rules import is_coordinator_fenced, is_fenced
from kaudit.broker.releases.profile import Profile
from kaudit.checks.check import Check, Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.epochs.stale_epochs import coordinator_epoch_regression, stale_epoch
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.observations import ObservationEvidence, observation_finding
from kaudit.checks.transactions.nontransactional_in_transaction import nontransactional_in_transaction
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.severity import Severity
from kaudit.model.side_files import CorruptSnapshot
from kaudit.model.transactions import EmptyMarker

_STOPS = (
    "does not start if it has to read this: loading the log throws (LogManager.loadLogs); a follower stops replicating "
    "the partition"
)


class _FatalEvidence(ObservationEvidence, frozen=True, kw_only=True, gc=False):
    broker: str
    kind: str


class _Fatal(Struct, frozen=True):
    """An observation that brokers cannot load: the check that reports it, which brokers fail, and the rule they follow."""

    check: Check
    who: str
    rule: str


_OUTSIDE = _Fatal(
    nontransactional_in_transaction,
    "no broker can load this log",
    "a non-transactional batch inside an open transaction is INVALID_TXN_STATE for every origin, log loading and "
    "replication included",
)
_STALE_MARKER = (
    "brokers up to 2.4.0 cannot load this log",
    "a marker below the epoch or coordinator epoch read last throws on followers and while a log is loaded (to 2.4.0, KAFKA-9144)",
)


@check(
    "KA803",
    severity=Severity.ERROR,
    severity_note="note when only some of the versions in question fail",
    summary="a broker that reads this log to rebuild its state fails",
    needs=(Observation, EmptyMarker),
    incident=(PRODUCER_STATE,),
    caused_by=none_because("it says what a broker would do: nothing has happened yet"),
    simulated=none_because(
        "it takes markers or batches that current leaders refuse, which simulated leaders refuse too"
    ),
)
def recovery_fatal(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report writes outside a transaction, stale markers (up to 2.4.0) and emptied markers (up to 2.0.0)."""
    snapshot = _newest_snapshot(context, evidence)
    for observation in evidence.observed(*nontransactional_in_transaction.observes):
        yield _observed(context, observation, _OUTSIDE, Severity.ERROR, snapshot)
    severity = _severity(context, lambda profile: profile.marker_checks_bind_replicas)
    if severity is not None:
        for check in (stale_epoch, coordinator_epoch_regression):
            for observation in evidence.observed(*check.observes):
                if _below_rebuilt_state(observation):
                    yield _observed(context, observation, _Fatal(check, *_STALE_MARKER), severity, snapshot)
    severity = _severity(context, lambda profile: profile.empty_control_batch_is_fatal)
    if severity is not None:
        for marker in evidence.of(EmptyMarker):
            yield _emptied(context, marker, severity, snapshot)


def _below_rebuilt_state(observation: Observation) -> bool:
    """Return whether a marker throws where the log is read: replication and loading adopt lower epochs of batches.

    Source: ProducerStateManager.replicate, ProducerAppendInfo.checkProducerEpoch and checkCoordinatorEpoch.
    """
    marker, state = observation.marker, observation.remembered
    if marker is None or state is None:
        return False
    if observation.kind is ObservationKind.STALE_MARKER:
        return bool(is_fenced(marker.producer_epoch, state.rebuilt_epoch))
    return bool(is_coordinator_fenced(marker.coordinator_epoch, state.rebuilt_coordinator_epoch))


def _newest_snapshot(context: Context, evidence: Evidence) -> str:
    """Return the name of the snapshot that a broker loads, empty if there is none.

    It deletes those beyond the log's end and corrupt ones (ProducerStateManager.truncateAndReload, loadFromSnapshot).
    """
    if context.log_end_offset is None:
        return ""
    end, corrupt = _snapshot(context.log_end_offset), {found.file for found in evidence.of(CorruptSnapshot)}
    return max(
        (name for name in context.side_files if name.endswith(".snapshot") and name <= end and name not in corrupt),
        default="",
    )


def _snapshot(offset: int) -> str:
    return f"{offset:020d}.snapshot"


def _without(snapshot: str, offset: int) -> str:
    """Return ` without SNAPSHOT` where brokers that load it do not read this offset, else nothing."""
    return f" without {snapshot}" if snapshot > _snapshot(offset) else ""


def _severity(context: Context, fatal: Callable[[Profile], bool]) -> Severity | None:
    """Return error when all versions in question fail, a note when some do, None when none does."""
    if context.versions.all(fatal):
        return Severity.ERROR
    return Severity.NOTE if context.versions.any(fatal) else None


def _observed(context: Context, observation: Observation, fatal: _Fatal, severity: Severity, snapshot: str) -> Finding:
    what, code = "batch" if observation.batch is not None else "marker", fatal.check.code
    return observation_finding(
        recovery_fatal,
        context,
        observation,
        f"{fatal.who}{_without(snapshot, observation.offset)}: the {what} of producer {observation.producer_id} at offset "
        f"{observation.offset} stops them ({code})",
        severity=severity,
        evidence=_FatalEvidence(rule=fatal.rule, observation=observation, broker=_STOPS, kind=code),
        explanations=(
            Explanation(
                "a broker with a snapshot of a later offset does not read it, until that snapshot is lost or, after an unclean "
                "stop, it reads the whole segment again"
            ),
        ),
        following=(f"kaudit explain {code}",),
    )


class _EmptiedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    markers: int


def _emptied(context: Context, marker: EmptyMarker, severity: Severity, snapshot: str) -> Finding:
    return recovery_fatal.finding(
        context,
        f"brokers up to 2.0.0 cannot load this log{_without(snapshot, marker.offset)}: the marker at offset "
        f"{marker.offset} was emptied by the log cleaner ({marker.count} such)",
        severity=severity,
        segment=marker.segment,
        position=marker.position,
        offset=marker.offset,
        last_offset=marker.offset,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        evidence=_EmptiedEvidence(
            rule="a control batch without its record throws where its record is asked for (KAFKA-7467: fixed in 2.0.1, 2.1.0)",
            broker=_STOPS,
            kind="empty-marker",
            markers=marker.count,
        ),
        explanations=(
            Explanation("the log cleaner left the empty batch: it has its producer's last sequence", innocent=True),
        ),
        following=(context.timeline_command(marker.producer_id),),
    )
