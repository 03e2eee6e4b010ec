"""Lost and duplicated records of simulated schedules, and what `scan` says of them: recall and precision by kind.

Run `python -m tests.simulate.trouble --seeds 2000`. The truth is what the model stored and acknowledged, batch by batch; the
findings are those of the leader's log alone, as an operator has it after the old leader truncated its copy.

What a log can show of it, kaudit/simulate/output/visibility.py says; of an application that was started again its records,
not its batches, come again.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import kaudit
from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.model.finding import Finding
from kaudit.model.impact import Impact
from kaudit.model.severity import Severity
from kaudit.model.total_impact import total_impact
from kaudit.simulate.cluster.partition import Election, election_that_lost
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.record_outcomes import Acknowledgement, BatchOutcome, DeliveryOutcome, leader_log
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.output.visibility import DUPLICATES, Trouble
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario

LOSS = {"KA104", "KA206"}
SENT_AGAIN = "sent again by a restarted application"
CODES = {
    "went on in the same epoch": {"KA104"},
    "wrote before and after": {"KA206", "KA104", "KA202"},
    "retried without idempotence": {"KA702"},
    "under another producer id": {"KA701"},
    "under another epoch": {"KA704"},
    "same sequences": {"KA101", "KA102", "KA103", "KA105"},
    "older than those before them": {"KA703"},
}
"""The checks that may report trouble the log shows, by its kind."""
REPEATS = {"KA101", "KA102", "KA103", "KA701", "KA702", "KA704"}
REFUSALS = (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.UNKNOWN_PRODUCER_ID)
"""Also where nothing is lost: the broker forgot the producer, or the sixth batch in flight is sent again."""
ALARMS = (Severity.ERROR, Severity.WARNING)

TRUE, CUT_OFF, OTHER_BUMP, INVENTED = "true", "cut off, but not lost", "another cause", "nothing"
"""What is behind a finding. Of KA206, which is possible and not certain, also: a tail was cut off, but nobody had been answered
that it was written, or it came back; or nothing was, and the client raised its epoch because a delivery had timed out,
because a broker that still had all its batches refused one, or because of another partition."""


class Cost(NamedTuple):
    """What findings say of one partition, and what is true: records in the leader's log again, and records that are not there."""

    impact: Impact
    again: int
    absent: int


class Trial(NamedTuple):
    """One schedule: its troubles, each with whether a finding is there; its findings, each with whether one explains it."""

    troubles: list[tuple[Trouble, bool]]
    findings: list[tuple[Finding, str]]
    costs: list[Cost]


def tried(seed: int, directory: Path) -> Trial:
    """Play the schedule of a seed, audit the leaders' logs, compare."""
    schedule = drawn_scenario(seed, unclean=seed % 3 != 0, forgetful=seed % 5 == 4, all_faults=seed % 2 == 1)
    return trial_of(Simulation(schedule, seed, 0).run(), directory / f"run-{seed}")


def trial_of(simulation: Simulation, target: Path) -> Trial:
    """Audit the leaders' logs of a run, which are written to `target`, and compare."""
    truth = Truth(simulation)
    write_run(target, simulation, truth)
    findings = leaders_findings(simulation, target)
    troubles = list(truth.troubles())
    for key, outcomes in truth.outcomes.items():
        troubles += sent_again(key, outcomes)
    why = bumps(simulation, truth)
    return Trial(
        [(trouble, any(covers(finding, trouble) for finding in findings)) for trouble in troubles],
        [(finding, explained(finding, troubles, why)) for finding in findings if finding.code in LOSS | REPEATS],
        [cost_of(key, findings, simulation, truth) for key in simulation.cluster.partitions],
    )


def cost_of(key: TopicPartition, findings: list[Finding], simulation: Simulation, truth: Truth) -> Cost:
    """Add up what findings say of a partition, and count its records in the leader's log."""
    log = leader_log(simulation.cluster.partitions[key])
    there = Counter(
        (stored.sent.payload.application, number)
        for stored in log.batches
        if stored.sent is not None
        for offset, number in enumerate(stored.sent.numbers, stored.base_offset)
        if offset >= log.log_start
    )
    sent = {
        (outcome.batch.payload.application, number)
        for outcome in truth.outcomes[key]
        if outcome.delivery is not DeliveryOutcome.DELETED
        for number in outcome.batch.numbers
    }
    own = [finding for finding in findings if (finding.topic, finding.partition) == key]
    return Cost(total_impact(own), there.total() - len(there), len(sent - set(there)))


def leaders_findings(simulation: Simulation, target: Path) -> list[Finding]:
    """Return the errors and warnings of each partition's last leader."""
    brokers = [path for path in sorted(target.glob("broker-*")) if any(path.glob("*/*.log"))]
    found = []
    for finding in kaudit.scan(brokers).findings:
        assert finding.log_dir is not None
        assert finding.topic is not None
        assert finding.partition is not None
        partition = simulation.cluster.partitions[finding.topic, finding.partition]
        leader = partition.leader if partition.leader is not None else partition.last_leader
        if finding.severity in ALARMS and Path(finding.log_dir).name == f"broker-{leader}":
            found.append(finding)
    return found


# -- the truth -----------------------------------------------------------------------------------------------------------
def sent_again(key: TopicPartition, outcomes: list[BatchOutcome]) -> Iterator[Trouble]:
    """Yield the records an application sent again after it was started again, where the log has both."""
    copies: Counter[tuple[str, int]] = Counter()
    for outcome in outcomes:
        if outcome.copies and outcome.delivery is not DeliveryOutcome.DELETED:
            copies.update((outcome.batch.payload.application, number) for number in outcome.batch.numbers)
    records = sum(times - 1 for times in copies.values() if times > 1)
    if records:
        yield Trouble(DUPLICATES, SENT_AGAIN, key, records)


class Bumps(NamedTuple):
    """Why clients raise their epochs: leader epochs that began without batches of a producer id, deliveries given up, and
    batches refused for their sequences."""

    cut: set[tuple[TopicPartition, int, int]]
    gave_up: set[int]
    refused: set[int]


def epoch_of_loss(write: StoredBatch, elections: Iterable[Election]) -> int:
    """Return the leader epoch of the election after which a batch was gone, -1 if there is none."""
    election = election_that_lost(write, elections)
    return -1 if election is None else election.epoch


def bumps(simulation: Simulation, truth: Truth) -> Bumps:
    """Return (partition, producer id, leader epoch) of every tail that was cut off, and the ids of the other two kinds."""
    cut = {
        (key, write.state.producer_id, epoch_of_loss(write, partition.elections))
        for key, partition in simulation.cluster.partitions.items()
        for writes in partition.writes.values()
        for write in writes
        if write.state is not None
    }
    outcomes = [outcome for found in truth.outcomes.values() for outcome in found]
    gave_up = {outcome.batch.producer_id for outcome in outcomes if outcome.acknowledgement is Acknowledgement.FAILED}
    refused = {outcome.batch.producer_id for outcome in outcomes if outcome.batch.last_error in REFUSALS}
    return Bumps(cut, gave_up, refused)


# -- the comparison ------------------------------------------------------------------------------------------------------
def covers(finding: Finding, trouble: Trouble) -> bool:
    """Whether a finding is about this trouble."""
    if trouble.offset is None or finding.code not in CODES[trouble.kind]:
        return False
    return (finding.topic, finding.partition) == trouble.partition and trouble.offset in places(finding)


def places(finding: Finding) -> set[int]:
    """The base offsets a finding is about; of a range all of it."""
    copies = finding.evidence.get("copies")
    if isinstance(copies, list | tuple):
        return {copy for _, copy in copies}
    assert finding.offset is not None
    assert finding.last_offset is not None
    return set(range(finding.offset, finding.last_offset + 1))


def explained(finding: Finding, troubles: list[Trouble], why: Bumps) -> str:
    """Say what is behind a finding."""
    key = (finding.topic, finding.partition)
    if any(covers(finding, trouble) for trouble in troubles):
        return TRUE
    if finding.code in ("KA701", "KA702") and any(t.partition == key and t.kind == SENT_AGAIN for t in troubles):
        return TRUE
    if finding.code != "KA206":
        return INVENTED
    before, after = finding.evidence["previous_leader_epoch"], finding.evidence["leader_epoch"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    if any((key, finding.producer_id, epoch) in why.cut for epoch in range(before + 1, after + 1)):
        return CUT_OFF
    elsewhere = {producer_id for _, producer_id, epoch in why.cut if epoch >= 0}
    return OTHER_BUMP if finding.producer_id in why.gave_up | why.refused | elsewhere else INVENTED


def _name(trouble: Trouble) -> str:
    return f"{trouble.what}: {trouble.kind}"


def report(seeds: range) -> str:
    """Try these seeds and return the figures."""
    found: Counter[tuple[str, bool, bool]] = Counter()
    records: Counter[tuple[str, bool]] = Counter()
    reasons: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str], list[int]] = {}
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="kaudit-trouble-") as directory:
            trial = tried(seed, Path(directory))
        for trouble, reported in trial.troubles:
            found[_name(trouble), trouble.offset is not None, reported] += 1
            records[_name(trouble), reported] += trouble.records
            if trouble.offset is not None and not reported:
                examples.setdefault(("missed", _name(trouble)), []).append(seed)
        for finding, reason in trial.findings:
            reasons[finding.code, finding.severity.value, reason] += 1
            if reason == INVENTED:
                examples.setdefault(("invented", finding.code), []).append(seed)
    lines = [f"{'kind':100} {'visible':>7} {'found':>6} {'of':>6} {'records':>8} {'of':>8}"]
    for kind in sorted({kind for kind, *_ in found}):
        for visible in (True, False):
            hit, missed = found[kind, visible, True], found[kind, visible, False]
            if hit + missed:
                shown = "yes" if visible else "no"
                lines.append(
                    f"{kind:100} {shown:>7} {hit:6} {hit + missed:6} {records[kind, True]:8} "
                    f"{records[kind, True] + records[kind, False]:8}"
                )
    behind = (TRUE, CUT_OFF, OTHER_BUMP, INVENTED)
    lines.append(f"\n{'finding':16}" + "".join(f"{reason:>24}" for reason in behind))
    for code, severity in sorted({key[:2] for key in reasons}):
        lines.append(f"{code} {severity:10}" + "".join(f"{reasons[code, severity, reason]:24}" for reason in behind))
    lines += [f"{what} {name}: seeds {seeds[:12]}" for (what, name), seeds in sorted(examples.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    sys.stdout.write(report(range(chosen.first, chosen.first + chosen.seeds)) + "\n")
