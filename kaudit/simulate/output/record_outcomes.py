"""What became of every record: sent, acknowledged, where it ended, and why."""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct, field

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.simulate.application import Application
from kaudit.simulate.cluster.partition import Election, ReplicatedPartition
from kaudit.simulate.cluster.replica_log import ReplicaLog, StoredBatch
from kaudit.simulate.producer.batch import ProducerBatch
from kaudit.simulate.simulation import Simulation


class Acknowledgement(Enum):
    """What the application was told about a record."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    NOTHING = "nothing"
    """The process died, or the run ended, before an answer came."""


class DeliveryOutcome(Enum):
    """Where a record is in the end, in the log of its partition's leader."""

    ONCE = "once"
    TWICE = "twice"
    """Or more often."""
    NOWHERE = "nowhere"
    DELETED = "deleted"
    """Below the log start."""


class BatchFate(Struct):
    """One batch's end; records share it. Offsets are base offsets, `copies` those in the leader's log."""

    batch: ProducerBatch
    told: Acknowledgement
    ended: DeliveryOutcome
    copies: list[int]
    elsewhere: dict[int, list[int]]
    """By broker: copies on a replica that the leader does not have there."""
    late: set[int] = field(default_factory=set)
    """Numbers of records whose first copy lies behind that of a later record of their producer."""
    why: str = ""


def fates_of(simulation: Simulation) -> dict[TopicPartition, list[BatchFate]]:
    """Return the fates of all batches by partition, in the order their records were handed over."""
    found: dict[TopicPartition, list[BatchFate]] = {key: [] for key in simulation.cluster.partitions}
    places = {key: _Places(partition) for key, partition in simulation.cluster.partitions.items()}
    for application in simulation.applications.values():
        for batch in application.batches:
            found[batch.partition].append(places[batch.partition].fate(batch, application))
    for fates in found.values():
        fates.sort(key=lambda fate: (fate.batch.payload.producer, fate.batch.payload.session, fate.batch.numbers[0]))
        _mark_late(fates)
    return found


def leader_log(partition: ReplicatedPartition) -> ReplicaLog:
    """Return the log that counts in the end: that of the leader, or of the last one there was."""
    leader = partition.leader if partition.leader is not None else partition.last_leader
    assert leader is not None
    return partition.logs[leader]


class _Places:
    """Where batches lie in the logs of one partition."""

    def __init__(self, partition: ReplicatedPartition) -> None:
        self._partition = partition
        self._log = leader_log(partition)
        self._leader = dict(_by_batch(self._log.batches))
        self._replicas = {
            broker: dict(_by_batch(log.batches)) for broker, log in partition.logs.items() if log is not self._log
        }

    def fate(self, batch: ProducerBatch, application: Application) -> BatchFate:
        copies = self._leader.get(id(batch), [])
        elsewhere = {
            broker: missing
            for broker, places in self._replicas.items()
            if (missing := [offset for offset in places.get(id(batch), []) if offset not in copies])
        }
        told = Acknowledgement.ACKNOWLEDGED if batch.error is None else Acknowledgement.FAILED
        if not batch.finished:
            told = Acknowledgement.NOTHING
        if not copies:
            ended = DeliveryOutcome.NOWHERE
        elif copies[-1] + batch.record_count <= self._log.log_start:
            ended = DeliveryOutcome.DELETED
        else:
            ended = DeliveryOutcome.ONCE if len(copies) == 1 else DeliveryOutcome.TWICE
        fate = BatchFate(batch, told, ended, copies, elsewhere)
        fate.why = self._why(fate, application)
        return fate

    def _why(self, fate: BatchFate, application: Application) -> str:
        batch = fate.batch
        writes = self._partition.writes.get(id(batch), [])
        if fate.ended is DeliveryOutcome.DELETED:
            return f"written at offset {fate.copies[0]}, deleted with everything below {self._log.log_start}"
        if fate.ended is DeliveryOutcome.TWICE:
            return _why_twice(batch, [write for write in writes if write.base_offset in fate.copies], application)
        if fate.ended is DeliveryOutcome.ONCE:
            return self._why_once(fate, writes)
        if writes:
            return self._why_lost(fate, writes, application)
        return _why_never(fate, application)

    @staticmethod
    def _why_once(fate: BatchFate, writes: list[StoredBatch]) -> str:
        offset = fate.copies[0]
        batch = fate.batch
        again = f", sent {batch.attempts + 1} times" if batch.attempts else ""
        if fate.told is Acknowledgement.FAILED:
            assert batch.error is not None
            return f"written at offset {offset}, but the producer gave up: {batch.error.name}{again}"
        if fate.told is Acknowledgement.NOTHING:
            return f"written at offset {offset}, the answer never arrived{again}"
        if len(writes) > 1:
            return f"written at offset {offset} after an earlier copy at {writes[0].base_offset} was truncated{again}"
        return f"written at offset {offset}{again}"

    def _why_lost(self, fate: BatchFate, writes: list[StoredBatch], application: Application) -> str:
        write = writes[-1]
        election = self._election_after(write)
        acks = {-1: "all"}.get(application.spec.config.acks, str(application.spec.config.acks))
        told = {
            Acknowledgement.ACKNOWLEDGED: f"acknowledged with acks={acks}",
            Acknowledgement.FAILED: "given up by the producer",
            Acknowledgement.NOTHING: "not answered",
        }[fate.told]
        start = f"written at offset {write.base_offset} in leader epoch {write.leader_epoch}, {told}"
        if election is None:
            return f"{start}, and cut off since"
        kind = "an unclean election made" if election.unclean else "then"
        verb = "leader" if election.unclean else "became leader"
        return (
            f"{start}; {kind} broker {election.leader} {verb} of epoch {election.epoch}, whose log ended at "
            f"{election.log_end}: it had not replicated it"
        )

    def _election_after(self, write: StoredBatch) -> Election | None:
        for election in self._partition.elections:
            lost = election.lost_from_offset
            if election.epoch > write.leader_epoch and lost is not None and lost <= write.last_offset:
                return election
        return None


def _by_batch(batches: list[StoredBatch]) -> Iterator[tuple[int, list[int]]]:
    places: dict[int, list[int]] = {}
    for stored in batches:
        if stored.sent is not None:
            places.setdefault(id(stored.sent), []).append(stored.base_offset)
    yield from places.items()


def _why_twice(batch: ProducerBatch, writes: list[StoredBatch], application: Application) -> str:
    places = " and ".join(str(write.base_offset) for write in writes)
    if not application.spec.config.idempotent:
        after = f" after {batch.refused.name}" if batch.refused is not None else ""
        return f"written at {places}: sent {batch.attempts + 1} times{after}, and without idempotence nobody can tell"
    states = [(write.state.producer_id, write.state.producer_epoch) for write in writes if write.state is not None]
    if len(set(states)) > 1:
        return (
            f"written at {places}: after {_name(batch.refused)} the producer went on as id {states[-1][0]} epoch "
            f"{states[-1][1]} and sent again what was under way"
        )
    return f"written at {places} with the same sequence: the broker had forgotten the producer when it came again"


def _why_never(fate: BatchFate, application: Application) -> str:
    batch = fate.batch
    if fate.told is Acknowledgement.ACKNOWLEDGED and application.spec.config.acks == 0:
        return "never arrived; with acks=0 nobody waits for an answer"
    if fate.told is Acknowledgement.ACKNOWLEDGED:
        return "answered as a duplicate of another producer's batch under the same producer id: never written"
    if fate.told is Acknowledgement.FAILED:
        return f"never written: {_name(batch.error)}, sent {batch.attempts + 1} times"
    return "never written: the process died, or the run ended, before it was sent or arrived"


def _name(error: KafkaError | None) -> str:
    if error is KafkaError.REQUEST_TIMED_OUT:
        return "the delivery timed out"
    return "an error" if error is None else error.name


def _mark_late(fates: list[BatchFate]) -> None:
    """Find records whose first copy lies behind that of a later one of the same session."""
    sessions: dict[tuple[str, int], list[tuple[int, int, BatchFate]]] = {}
    for fate in fates:
        if fate.copies:
            session = sessions.setdefault((fate.batch.payload.producer, fate.batch.payload.session), [])
            session += [(fate.copies[0] + step, number, fate) for step, number in enumerate(fate.batch.numbers)]
    for placed in sessions.values():
        highest = -1
        for _, number, fate in sorted(placed, key=lambda place: place[:2]):
            if number < highest:
                fate.late.add(number)
            highest = max(highest, number)
