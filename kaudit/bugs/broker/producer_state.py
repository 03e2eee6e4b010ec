"""Bugs of the producer state that brokers keep, and of the ids that they grant."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira, logged, said
from kaudit.model.application_logs import LogEventKind
from kaudit.model.severity import Confidence


def _runs_ahead(case: Case) -> bool:
    stored, offset = case.evidence.stored, case.finding.offset
    return stored is not None and stored.last_offset is not None and offset is not None and stored.last_offset >= offset


KAFKA_6683 = Bug(
    id="KAFKA-6683",
    title="ReplicaFetcher crashes with 'Attempted to complete a transaction which was not started'",
    summary="an append changes the state of its producer before the segment is rolled, so that the snapshot runs ahead",
    program=Program.BROKER,
    affected=(Affected("1.0.0", "1.0.1"),),
    fixed_in=("1.0.2", "1.1.0"),
    codes=codes("KA502"),
    traits=(Trait("a producer snapshot holds a batch from beyond its own offset", _runs_ahead),),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-6683"), "https://github.com/apache/kafka/pull/4755"),
)


KAFKA_7190 = Bug(
    id="KAFKA-7190",
    title="Under low traffic conditions purging repartition topics cause WARN statements about UNKNOWN_PRODUCER_ID",
    summary="when the log start moves past a producer's last record, the leader forgets the producer",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.3.1"),),
    fixed_in=("2.4.0",),
    fix="KIP-360",
    codes=codes("KA802"),
    traits=(
        Trait("the producer's last batch lies below the log start", lambda case: case.finding.code == "KA802"),
        Trait("that batch was appended again above it", lambda case: case.evidence.kind == "repeated"),
        logged("it was answered UNKNOWN_PRODUCER_ID", LogEventKind.UNKNOWN_PRODUCER_ID),
    ),
    by_lines={
        "KA811": (
            said("a broker before 2.5 says that it has no record of the producer", "Found no record of producerId"),
            logged("the log's start had just moved", LogEventKind.LOG_START_OFFSET_MOVED),
        )
    },
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7190"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-360"),
)


KAFKA_7467 = Bug(
    id="KAFKA-7467",
    title="NoSuchElementException is raised because controlBatch is empty",
    summary="brokers ask a control batch for its record, and the log cleaner leaves control batches without one",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.0.0"),),
    fixed_in=("2.0.1", "2.1.0"),
    codes=codes("KA803"),
    traits=(VERSION_KNOWN, Trait("an end marker has no record", lambda case: case.evidence.kind == "empty-marker")),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-7467"), "https://github.com/apache/kafka/pull/5727"),
)


_EXPIRATION_MS = 7 * 86_400_000
"""transactional.id.expiration.ms: how long these releases remember a producer after its last data."""


def _older_coordinator(case: Case) -> bool:
    return case.finding.code == "KA205" or case.evidence.kind == "KA205"


def _was_forgotten(case: Case) -> bool:
    previous, marker = case.evidence.previous, case.offending.timestamp
    if previous is None or previous.timestamp is None or marker is None:
        return False
    return marker - previous.timestamp >= _EXPIRATION_MS


KAFKA_9144 = Bug(
    id="KAFKA-9144",
    title="Early expiration of producer state can cause coordinator epoch to regress",
    summary="end markers do not keep a producer's state from expiring, and without the state an old coordinator is not fenced",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.4.0"),),
    fixed_in=("2.4.1", "2.5.0"),
    codes=codes("KA205", "KA803"),
    traits=(
        Trait("a marker has a lower coordinator epoch than one before it", _older_coordinator),
        Trait("the producer's data was older than producer states get (7 days)", _was_forgotten, optional=True),
        logged(
            "the broker's log has it forget the producer, or refuse a marker",
            LogEventKind.PRODUCER_EXPIRED,
            LogEventKind.TRANSACTION_COORDINATOR_FENCED,
        ),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-9144"), "https://github.com/apache/kafka/pull/7687"),
)


KAFKA_15552 = Bug(
    id="KAFKA-15552",
    title="Duplicate producer id blocks during ZK migration",
    summary="the migration from ZooKeeper copies the block of producer ids in use to KRaft instead of the next one",
    program=Program.BROKER,
    affected=(Affected("3.4.0", "3.5.1"), Affected("3.6.0", "3.6.0")),
    fixed_in=("3.5.2", "3.6.1"),
    codes=codes("KA402"),
    traits=(
        Trait(
            "KRaft granted the block that ZooKeeper had granted last", lambda case: case.evidence.kind == "migration"
        ),
        Trait("producer ids of that block are in these logs", lambda case: bool(case.evidence.seen), optional=True),
    ),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-15552"), "https://github.com/apache/kafka/pull/14506"),
)


def _just_created(case: Case) -> bool:
    return case.offending.leader_epoch == 0 and case.finding.producer_epoch == 0


def _first_refused(case: Case) -> bool:
    return case.evidence.refused_sequence == 0 and bool(case.evidence.expected_sequence)


def _nearly_empty(case: Case) -> bool:
    offset, expected = case.finding.offset, case.evidence.expected_sequence
    return offset is not None and expected is not None and 0 < offset <= expected


KAFKA_15591 = Bug(
    id="KAFKA-15591",
    title="Idempotent producer loses its first batch: out of order first requests are taken by empty partitions",
    summary="a leader without state takes any first sequence of a producer, even as the first batch of a partition",
    program=Program.BROKER,
    affected=(Affected("2.5.0", "4.4"),),
    fixed_in=("4.5.0",),
    codes=codes("KA106"),
    traits=(
        Trait("the batch is the first of the partition", lambda case: case.finding.offset == 0),
        Trait("it was written by the partition's first leader and in the producer's first epoch", _just_created),
        Trait("its first sequence is not 0", lambda case: bool(case.offending.base_sequence)),
        # without it, a topic that was created again under a running producer looks the same, and is healthy
        logged(
            "batches of the producer were refused there as out of order", LogEventKind.OUT_OF_ORDER_SEQUENCE, must=True
        ),
    ),
    by_lines={
        "KA810": (
            Trait("the producer's first batch was refused, after a later one of it had been taken", _first_refused),
            Trait("the partition held hardly more records than the producer had numbered", _nearly_empty),
        )
    },
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-15591", "KAFKA-14312", "KAFKA-19880"), "https://github.com/apache/kafka/pull/23234"),
)
