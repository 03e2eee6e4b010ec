"""The outcome of every record: acknowledged or not, how often it is in the log, and why."""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct, field

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.model.grouping import grouped
from kaudit.simulate.application import Application
from kaudit.simulate.cluster.partition import ReplicatedPartition, election_that_lost
from kaudit.simulate.cluster.replica_log import ReplicaLog, StoredBatch
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.simulation import Simulation


class Acknowledgement(Enum):
    """What the application knows about a record."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    UNANSWERED = "unanswered"
    """The process died, or the run ended, before a response came."""


class DeliveryOutcome(Enum):
    """How often a record is in the log of its partition's leader at the end."""

    ONCE = "once"
    TWICE = "twice"
    """Or more often."""
    NOWHERE = "nowhere"
    DELETED = "deleted"
    """Below the log start."""


class BatchOutcome(Struct):
    """The outcome of one batch, shared by its records. Offsets are base offsets, `copies` those in the leader's log."""

    batch: ProducerBatch
    acknowledgement: Acknowledgement
    delivery: DeliveryOutcome
    copies: list[int]
    elsewhere: dict[int, list[int]]
    """By broker: copies on a replica that the leader does not have there."""
    out_of_order: set[int] = field(default_factory=set)
    """Numbers of records whose first copy lies after that of a later record of their producer."""
    why: str = ""


def batch_outcomes(simulation: Simulation) -> dict[TopicPartition, list[BatchOutcome]]:
    """Return the outcomes of all batches by partition, in the order their records were sent."""
    found: dict[TopicPartition, list[BatchOutcome]] = {key: [] for key in simulation.cluster.partitions}
    locations = {key: _BatchLocations(partition) for key, partition in simulation.cluster.partitions.items()}
    for application in simulation.applications.values():
        for batch in application.batches:
            found[batch.partition].append(locations[batch.partition].outcome(batch, application))
    for outcomes in found.values():
        outcomes.sort(
            key=lambda outcome: (
                outcome.batch.payload.producer,
                outcome.batch.payload.session,
                outcome.batch.numbers[0],
            )
        )
        _mark_out_of_order(outcomes)
    return found


def leader_log(partition: ReplicatedPartition) -> ReplicaLog:
    """Return the log of the leader, or of the last one where there is none."""
    leader = partition.leader if partition.leader is not None else partition.last_leader
    assert leader is not None
    return partition.logs[leader]


class _BatchLocations:
    """The offsets of batches in the logs of one partition."""

    def __init__(self, partition: ReplicatedPartition) -> None:
        self._partition = partition
        self._log = leader_log(partition)
        self._leader = dict(_by_batch(self._log.batches))
        self._replicas = {
            broker: dict(_by_batch(log.batches)) for broker, log in partition.logs.items() if log is not self._log
        }

    def outcome(self, batch: ProducerBatch, application: Application) -> BatchOutcome:
        copies = self._leader.get(id(batch), [])
        elsewhere = {
            broker: missing
            for broker, locations in self._replicas.items()
            if (missing := [offset for offset in locations.get(id(batch), []) if offset not in copies])
        }
        acknowledgement = Acknowledgement.ACKNOWLEDGED if batch.error is None else Acknowledgement.FAILED
        if not batch.finished:
            acknowledgement = Acknowledgement.UNANSWERED
        if not copies:
            delivery = DeliveryOutcome.NOWHERE
        elif copies[-1] + batch.record_count <= self._log.log_start:
            delivery = DeliveryOutcome.DELETED
        else:
            delivery = DeliveryOutcome.ONCE if len(copies) == 1 else DeliveryOutcome.TWICE
        outcome = BatchOutcome(batch, acknowledgement, delivery, copies, elsewhere)
        outcome.why = self._why(outcome, application)
        return outcome

    def _why(self, outcome: BatchOutcome, application: Application) -> str:
        batch = outcome.batch
        writes = self._partition.writes.get(id(batch), [])
        if outcome.delivery is DeliveryOutcome.DELETED:
            return f"written at offset {outcome.copies[0]}, deleted with everything below {self._log.log_start}"
        if outcome.delivery is DeliveryOutcome.TWICE:
            return _why_twice(batch, [write for write in writes if write.base_offset in outcome.copies], application)
        if outcome.delivery is DeliveryOutcome.ONCE:
            return self._why_once(outcome, writes)
        if writes:
            return self._why_lost(outcome, writes, application)
        return _why_never(outcome, application)

    @staticmethod
    def _why_once(outcome: BatchOutcome, writes: list[StoredBatch]) -> str:
        offset = outcome.copies[0]
        batch = outcome.batch
        again = f", sent {batch.attempts + 1} times" if batch.attempts else ""
        if outcome.acknowledgement is Acknowledgement.FAILED:
            assert batch.error is not None
            return f"written at offset {offset}, but the producer gave up: {batch.error.name}{again}"
        if outcome.acknowledgement is Acknowledgement.UNANSWERED:
            return f"written at offset {offset}, the answer never arrived{again}"
        if len(writes) > 1:
            return f"written at offset {offset} after an earlier copy at {writes[0].base_offset} was truncated{again}"
        return f"written at offset {offset}{again}"

    def _why_lost(self, outcome: BatchOutcome, writes: list[StoredBatch], application: Application) -> str:
        write = writes[-1]
        election = election_that_lost(write, self._partition.elections)
        acks = {-1: "all"}.get(application.spec.config.acks, str(application.spec.config.acks))
        response = {
            Acknowledgement.ACKNOWLEDGED: f"acknowledged with acks={acks}",
            Acknowledgement.FAILED: "given up by the producer",
            Acknowledgement.UNANSWERED: "not answered",
        }[outcome.acknowledgement]
        start = f"written at offset {write.base_offset} in leader epoch {write.leader_epoch}, {response}"
        if election is None:
            return f"{start}, and cut off since"
        kind = "an unclean election made" if election.unclean else "then"
        verb = "leader" if election.unclean else "became leader"
        return (
            f"{start}; {kind} broker {election.leader} {verb} of epoch {election.epoch}, whose log ended at "
            f"{election.log_end}: it had not replicated it"
        )


def _by_batch(batches: list[StoredBatch]) -> Iterator[tuple[int, list[int]]]:
    locations = grouped((id(stored.sent), stored.base_offset) for stored in batches if stored.sent is not None)
    yield from locations.items()


def _why_twice(batch: ProducerBatch, writes: list[StoredBatch], application: Application) -> str:
    locations = " and ".join(str(write.base_offset) for write in writes)
    if not application.spec.config.idempotent:
        after = f" after {batch.last_error.name}" if batch.last_error is not None else ""
        return f"written at {locations}: sent {batch.attempts + 1} times{after}, and without idempotence the broker cannot know"
    states = [(write.state.producer_id, write.state.producer_epoch) for write in writes if write.state is not None]
    if len(set(states)) > 1:
        return (
            f"written at {locations}: after {_name(batch.last_error)} the producer went on as id {states[-1][0]} epoch "
            f"{states[-1][1]} and sent again what was under way"
        )
    return f"written at {locations} with the same sequence: the broker had forgotten the producer when it came again"


def _why_never(outcome: BatchOutcome, application: Application) -> str:
    batch = outcome.batch
    if outcome.acknowledgement is Acknowledgement.ACKNOWLEDGED and application.spec.config.acks == 0:
        return "never arrived; with acks=0 nobody waits for an answer"
    if outcome.acknowledgement is Acknowledgement.ACKNOWLEDGED:
        return "answered as a duplicate of another producer's batch under the same producer id: never written"
    if outcome.acknowledgement is Acknowledgement.FAILED:
        return f"never written: {_name(batch.error)}, sent {batch.attempts + 1} times"
    return "never written: the process died, or the run ended, before it was sent or arrived"


def _name(error: KafkaError | None) -> str:
    if error is KafkaError.REQUEST_TIMED_OUT:
        return "the delivery timed out"
    return "an error" if error is None else error.name


def _mark_out_of_order(outcomes: list[BatchOutcome]) -> None:
    """Find records whose first copy lies after that of a later one of the same session."""
    sessions: dict[tuple[str, int], list[tuple[int, int, BatchOutcome]]] = {}
    for outcome in outcomes:
        if outcome.copies:
            session = sessions.setdefault((outcome.batch.payload.producer, outcome.batch.payload.session), [])
            session += [
                (outcome.copies[0] + step, number, outcome) for step, number in enumerate(outcome.batch.numbers)
            ]
    for placed in sessions.values():
        highest = -1
        for _, number, outcome in sorted(placed, key=lambda place: place[:2]):
            if number < highest:
                outcome.out_of_order.add(number)
            highest = max(highest, number)
