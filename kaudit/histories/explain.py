"""Searching the schedules whose logs give the same finding, and grouping them by what happened.

The causes in a history in words, and where an operator would see them: by the kind of a scenario's fault.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.checks.check import Simulated
from kaudit.checks.registry import CHECKS
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.histories.setups import setups
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
from kaudit.simulate.search.search import SearchProgress
from kaudit.simulate.search.shrinking import ddmin


class Cause(NamedTuple):
    """A cause in words, and where its traces are."""

    happened: str
    look: str


CAUSES = {
    "lose-request": Cause(
        "a request of the producer was lost",
        "the application's log: a disconnect or request timeout at that time, then a retry",
    ),
    "lose-response": Cause(
        "a response to the producer was lost, and it sent again what had been written",
        "the application's log: a disconnect or request timeout at that time, then a retry",
    ),
    "kill-broker": Cause(
        "a broker's process ended at once",
        "server.log of that broker: log recovery at its next start; the controller's log: an election at that time",
    ),
    "stop-broker": Cause(
        "a broker was stopped, and leadership moved",
        "server.log of that broker: a controlled shutdown; the controller's log: an election at that time",
    ),
    "start-broker": Cause("a broker started", "server.log of that broker: its start"),
    "pause-broker": Cause(
        "a broker stood still for a while",
        "that broker's garbage collection log; the leaders' server.log: Shrinking ISR",
    ),
    "slow-disk": Cause(
        "a broker's disk was slow", "that broker's disk metrics; the leaders' server.log: Shrinking ISR"
    ),
    "disconnect-brokers": Cause(
        "brokers could not reach one another",
        "server.log: failed fetches, Shrinking ISR on the one side, and no restart on the other",
    ),
    "move-leader": Cause("leadership of a partition moved", "the controller's log: an election without a broker's end"),
    "lose-marker": Cause(
        "a transaction marker was lost on its way",
        "the coordinator's server.log: a marker that is sent again; __transaction_state: PrepareCommit or PrepareAbort",
    ),
    "kill-producer": Cause(
        "the application died, and another instance went on",
        "the application's log: its start; the deployment's history at that time",
    ),
    "pause-producer": Cause(
        "the application stood still for a while",
        "the application's garbage collection log, or a hole in its log at that time",
    ),
    "delete-records": Cause(
        "records were deleted up to an offset",
        "log-start-offset-checkpoint; server.log: Incremented log start offset",
    ),
    "error-response": Cause("a broker answered with an error", "the application's log names the error"),
}
"""By kind. Other kinds are named by their kind alone."""

WITHOUT_SNAPSHOTS = Cause(
    "its producer snapshots were gone when it started again, so it had forgotten the producer",
    "the broker's directory: .snapshot files younger than their segments; server.log: producer state rebuilt at that start",
)
UNCLEAN = Cause(
    "a replica that lacked records was elected leader",
    "the controller's log: an unclean election; kaudit diff with the old leader's copy, before it is truncated",
)
SLOW_TRANSACTION = Cause(
    "the transaction took longer than transaction.timeout.ms",
    "the coordinator's server.log: a transaction aborted by timeout; the application: ProducerFencedException",
)
ORDINARY = Cause("nothing went wrong", "the application's log: nothing at that time")
LOST = Cause("acknowledged records were lost", "kaudit diff with the other replicas: records that only one of them has")


def cause_of(kind: str) -> Cause:
    """Return the cause for a kind of fault."""
    return CAUSES.get(kind, Cause(kind.replace("-", " "), "the logs of the brokers and the application at that time"))


_FEW = 5
"""Batches that a broker remembers of a producer: repeats of more batches are another case."""

Trace = Mapping[str, object]


def trace_of(finding: Finding) -> Trace:
    """Return what a finding shows, without offsets, times and sizes. Two findings are the same if their traces are equal.

    - the check, and the class it gives the finding;
    - whether the offending batch is transactional, and whether a newer leader wrote it than the batch before it;
    - its producer epoch beside that batch's: lower, same, the next, or later; another producer id;
    - its first sequence beside that batch's last: the next, 0, the same or before, or one that leaves out 1, up to 5, or more;
    - how many records or batches it is about: 1, up to 5, or more; whether they have their old timestamps.
    """
    evidence = finding.evidence
    offending, before = evidence.offending, evidence.previous
    trace: dict[str, object] = {"code": finding.code, "class": evidence.kind}
    trace["is_transactional"] = None if offending is None else offending.is_transactional
    trace["same_timestamps"] = evidence.same_timestamps
    trace["records"], trace["batches"] = _size(evidence.records), _size(evidence.batches)
    if before is not None and offending is not None:
        leaders = (before.leader_epoch, offending.leader_epoch)
        trace["same_leader"] = None if None in leaders else leaders[0] == leaders[1]
        trace["epoch"] = _order(before.producer_epoch, offending.producer_epoch)
        trace["same_id"] = before.producer_id == offending.producer_id
        trace["sequence"] = _step(before.last_sequence, offending.base_sequence)
    return trace


def _size(count: int | None) -> str | None:
    if count is None:
        return None
    return "1" if count == 1 else "few" if count <= _FEW else "many"


def _order(before: int | None, after: int | None) -> str | None:
    if before is None or after is None:
        return None
    step = after - before
    return "lower" if step < 0 else "same" if step == 0 else "next" if step == 1 else "later"


def _step(last: int | None, first: int | None) -> str | None:
    if last is None or first is None or first < 0:
        return None
    if first == last + 1:
        return "next"
    if first == 0:
        return "0"
    return "before" if first <= last else f"gap of {_size(first - last - 1)}"


DEFAULT_TRIES = 1000
MOST_HISTORIES = 3
EXPLAINED = tuple(code for code, check in CHECKS.items() if isinstance(check.simulated, Simulated))
"""Codes of the checks whose findings simulated schedules have been seen to leave."""


class History(Struct):
    """Schedules with the same causes: `count` of those that gave the finding; `example` is the first one, reduced."""

    causes: Sequence[Cause]
    example: Schedule
    count: int = 0


class Explanation(Struct):
    """What was tried, how many schedules gave the finding, and the histories that these fall into, the most frequent first."""

    trace: Trace
    tried: int = 0
    same: int = 0
    histories: Sequence[History] = ()
    interrupted: bool = False


def explain(  # noqa: PLR0913 - what a search is
    finding: Finding,
    versions: BrokerVersions,
    *,
    seed: int,
    tries: int,
    progress: SearchProgress,
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
        progress(explanation.tried, None)
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
            source = iter(Candidates(document, "history", seed * 1000 + number))
        except ScenarioError:  # a configuration that this client refuses
            continue
        sources.append(source)
        yield next(source)  # at once: few tries need few setups
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
    """Whether the leader's log is more than batches of one producer and epoch in sequence, so that a scan makes sense."""
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
