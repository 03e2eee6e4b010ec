"""Searching the schedules whose logs give the same finding, and grouping them by what happened."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.checks.check import Simulated
from kaudit.checks.registry import CHECKS
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.histories.causes import LOST, ORDINARY, SLOW_TRANSACTION, UNCLEAN, WITHOUT_SNAPSHOTS, Cause, cause_of
from kaudit.histories.setups import setups
from kaudit.histories.trace import Trace, trace_of
from kaudit.model.finding import Finding
from kaudit.model.result import BrokerVersions
from kaudit.scanning.options import ScanOptions
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.transaction_state_manager import TRANSACTION_TOPIC
from kaudit.simulate.output.log_directory import write_log_directory
from kaudit.simulate.output.record_outcomes import leader_log
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.search.candidates import Candidates
from kaudit.simulate.search.schedule import Schedule, schedule_of, with_tables
from kaudit.simulate.search.shrinking import ddmin

DEFAULT_TRIES = 1000
MOST_HISTORIES = 3
EXPLAINED = tuple(code for code, check in CHECKS.items() if isinstance(check.simulated, Simulated))
"""Codes of the checks whose findings simulated schedules have been seen to leave."""


class History(Struct):
    """Schedules in which the same happened: `count` of those that gave the finding; `example` is the first, made smaller."""

    causes: Sequence[Cause]
    example: Schedule
    count: int = 0


class Explanation(Struct):
    """What was tried, how many schedules gave the finding, and the histories behind them, the most frequent first."""

    trace: Trace
    tried: int = 0
    same: int = 0
    histories: Sequence[History] = ()
    interrupted: bool = False


class ExplainProgress(Protocol):
    """Where the search says how far it is."""

    def tried(self, schedules: int, smallest: Schedule | None) -> None:
        """Take how many schedules were tried so far."""
        ...


def explain(  # noqa: PLR0913 - what a search is
    finding: Finding,
    versions: BrokerVersions,
    *,
    seed: int,
    tries: int,
    progress: ExplainProgress,
    stopped: Callable[[], bool],
) -> Explanation:
    """Try schedules of every setup in turn, each equally often, and return those that leave the finding's trace.

    The first of a shipped scenario is its own. The same arguments give the same histories.
    """
    wanted = trace_of(finding)
    explanation = Explanation(wanted)
    histories: dict[tuple[Cause, ...], History] = {}
    for schedule in islice(_schedules(finding, versions, seed), tries):
        if stopped():
            explanation.interrupted = True
            break
        explanation.tried += 1
        progress.tried(explanation.tried, None)
        if not leaves(schedule, wanted):
            continue
        explanation.same += 1
        smallest = _with_fewest_faults(schedule, wanted)
        causes = causes_of(smallest)
        history = histories.setdefault(causes, History(causes, smallest))
        history.count += 1
    ordered = sorted(histories.values(), key=lambda history: -history.count)
    explanation.histories = ordered[:MOST_HISTORIES]
    return explanation


def _schedules(finding: Finding, versions: BrokerVersions, seed: int) -> Iterator[Schedule]:
    """Yield schedules of all setups, one of each in turn."""
    sources = []
    for number, document in enumerate(setups(finding, versions)):
        try:
            sources.append(iter(Candidates(document, "history", seed * 1000 + number)))
        except ScenarioError:  # a configuration that this client refuses
            continue
    while sources:
        for source in sources:
            yield next(source)


def leaves(schedule: Schedule, wanted: Trace) -> bool:
    """Whether `scan` of the directories of the last leaders reports a finding with this trace."""
    truth = schedule.play()
    leaders = {
        partition.leader if partition.leader is not None else partition.last_leader
        for partition in _partitions(truth)
        if _is_noticeable(partition)
    }
    return any(
        trace_of(finding) == wanted for leader in leaders if leader for finding in findings_of_leader(truth, leader)
    )


def _partitions(truth: Truth) -> list[ReplicatedPartition]:
    return [partition for key, partition in truth.simulation.cluster.partitions.items() if key[0] != TRANSACTION_TOPIC]


def _is_noticeable(partition: ReplicatedPartition) -> bool:
    """Whether the leader's log is more than batches of one producer and epoch in sequence: else there is nothing to scan."""
    before: tuple[int, int, int] | None = None
    seen = -1
    is_open = False
    for stored in leader_log(partition).batches:
        state, sent = stored.state, stored.sent
        if sent is not None and sent.numbers[0] <= seen:
            return True
        if sent is not None:
            seen = sent.numbers[-1]
        if isinstance(state, DataBatch):
            following = (state.producer_id, state.producer_epoch, state.base_sequence)
            if before not in (None, following):
                return True
            before = (state.producer_id, state.producer_epoch, state.last_sequence + 1)
            is_open = state.is_transactional
        elif state is not None:
            if before is not None and state.producer_epoch != before[1]:
                return True
            is_open = False
    return is_open


def findings_of_leader(truth: Truth, broker: int) -> Sequence[Finding]:
    """Write a broker's log directory as the schedule left it, and return the findings of its scan."""
    cluster = truth.simulation.cluster
    with tempfile.TemporaryDirectory(prefix="kaudit-history-") as directory:
        path = Path(directory) / "broker"
        write_log_directory(path, cluster.brokers[broker], cluster.partitions.values(), cluster.profile)
        try:
            return local.scan(ScanOptions(paths=[str(path)], jobs=1), SilentProgress()).findings
        except NothingToAuditError:
            return ()


def _with_fewest_faults(schedule: Schedule, wanted: Trace) -> Schedule:
    """Leave out the faults that the trace does not need."""
    best = schedule

    def still_leaves(faults: Sequence[dict[str, Any]]) -> bool:
        nonlocal best
        less = schedule_of(with_tables(schedule.document, faults=list(faults)), schedule.scenario.name)
        if less is None or not leaves(less, wanted):
            return False
        best = less
        return True

    faults = schedule.document.get("faults", [])
    if faults and not still_leaves([]):
        ddmin(faults, still_leaves)
    return best


def causes_of(schedule: Schedule) -> tuple[Cause, ...]:
    """Return what happened in a schedule, in a fixed order: the faults, and what followed from them."""
    truth = schedule.play()
    tables = schedule.document.get("faults", [])
    causes = [cause_of(kind) for kind in sorted({table["kind"] for table in tables})]
    if any(table.get("without_snapshots") for table in tables):
        causes.append(WITHOUT_SNAPSHOTS)
    if any(election.unclean for part in _partitions(truth) for election in part.elections):
        causes.append(UNCLEAN)
    if any(ended.by_timeout for ended in truth.simulation.cluster.transactions.ended):
        causes.append(SLOW_TRANSACTION)
    if truth.summary()["acknowledged_but_lost"]:
        causes.append(LOST)
    return tuple(causes or [ORDINARY])
