"""Bugs of clients in sequences and epochs."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira, logged, said
from kaudit.model.application_logs import LogEventKind
from kaudit.model.severity import Confidence


def _another_leader(case: Case) -> bool:
    copied, again = case.evidence.copied, case.evidence.again
    if copied is None or again is None or copied.last_leader_epoch is None or again.first_leader_epoch is None:
        return False
    return 0 <= copied.last_leader_epoch < again.first_leader_epoch


SENT_AGAIN = Trait(
    "the producer's new epoch begins with the last records of the old one",
    lambda case: case.finding.code == "KA704",
)
SAME_TIMES = Trait("with the same timestamps", lambda case: case.evidence.same_timestamps is True)
ANOTHER_LEADER = Trait("the leader had changed in between", _another_leader, optional=True)
RAISED = logged(
    "the client raised its epoch or restarted its sequences",
    LogEventKind.EPOCH_BUMPED,
    LogEventKind.SEQUENCE_RESET,
)


_AGAIN_AND_AGAIN = 5


def _raised_often(case: Case) -> bool:
    """Whether the log itself shows that the producer raised its epoch several times."""
    counts = [other.evidence.count for other in case.others("KA203", "producer_id")]
    return sum(1 if count is None else count for count in counts) >= _AGAIN_AND_AGAIN


NEARLY_SPENT = Trait(
    "an idempotent producer without transactions is near the last epoch",
    lambda case: case.offending.is_transactional is False,
)
RAISED_OFTEN = Trait("the log shows it raise its epoch again and again", _raised_often)


KAFKA_8483 = Bug(
    id="KAFKA-8483",
    title="Possible reordering of messages by producer after UNKNOWN_PRODUCER_ID_EXCEPTION",
    summary="sequences are assigned anew to the batches in flight in the order of a queue that has none",
    program=Program.JAVA,
    affected=(Affected("1.0.0", "2.2.2"),),
    fixed_in=("2.3.0",),
    codes=codes("KA105"),
    traits=(
        Trait("the producer starts again at sequence 0 in its epoch", lambda case: case.finding.code == "KA105"),
        Trait(
            "of the batches in flight with it, a later one has older records",
            lambda case: case.evidence.times_go_back is True,
        ),
        logged("it was answered UNKNOWN_PRODUCER_ID", LogEventKind.UNKNOWN_PRODUCER_ID),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-8483", "KAFKA-8484"), "https://github.com/apache/kafka/pull/6883"),
)


KAFKA_14034 = Bug(
    id="KAFKA-14034",
    title="Idempotent producer should wait for preceding in-flight batches to complete before resetting the sequence number",
    summary="when one batch fails for good, the producer raises its epoch and renumbers batches that may have been written",
    program=Program.JAVA,
    affected=(Affected("2.5.0", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14034"), "https://github.com/apache/kafka/pull/13796"),
    alike=("KAFKA-14397", "librdkafka-4953"),
)


OUT_OF_ORDER = Trait(
    "the broker refused batches as out of order", lambda case: case.evidence.kind == "OUT_OF_ORDER_SEQUENCE_NUMBER"
)


KAFKA_14397 = Bug(
    id="KAFKA-14397",
    title="Don't reset producer sequence number after delivery timeout",
    summary="after delivery.timeout.ms the producer gives the sequences of a batch that may have been written to other records",
    program=Program.JAVA,
    affected=(Affected("2.1.0", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    by_lines={
        "KA810": (OUT_OF_ORDER, said("records of the producer had expired before", "Expiring ", " record(s) for "))
    },
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14397", "KAFKA-14831"), "https://github.com/apache/kafka/pull/12922"),
    alike=("KAFKA-14034", "librdkafka-4953"),
)


def _one_too_many(case: Case) -> bool:
    steps = case.evidence.steps
    return bool(steps) and all(each.records is not None and each.step == each.records + 1 for each in steps)


KAFKAJS_598 = Bug(
    id="kafkajs-598",
    title="KafkaJSProtocolError: The broker received an out of order sequence number",
    summary="batches that are sent at the same time get sequences that do not follow one another",
    program=Program.KAFKAJS,
    affected=(Affected("1.5.0", "1.16.0"),),
    fixed_in=("2.0.0",),
    fix="#1050 and #1172",
    codes=codes("KA107"),
    traits=(
        Trait("a client goes on one sequence too high after each batch", _one_too_many),
        Trait("it writes without transactions", lambda case: case.offending.is_transactional is False),
    ),
    by_lines={"KA810": (OUT_OF_ORDER, said("kafkajs got the answer", "[Connection] Response Produce("))},
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/tulios/kafkajs/issues/598", "https://github.com/tulios/kafkajs/pull/1172"),
)


def _aborted(case: Case) -> bool:
    return case.evidence.kind in ("timeout-abort", "restart")


LIBRDKAFKA_3575 = Bug(
    id="librdkafka-3575",
    title="Transactional producer inadvertently creates new transaction on OUT_OF_ORDER_SEQUENCE error",
    summary="after an out of order answer the producer raises its epoch in the middle of a transaction, which aborts its first part",
    program=Program.LIBRDKAFKA,
    affected=(Affected("1.6.0", "1.8.0"),),
    fixed_in=("1.8.2",),
    codes=codes("KA203"),
    traits=(
        Trait("the coordinator aborted a transaction and raised its producer's epoch", _aborted),
        logged(
            "the producer had been answered OUT_OF_ORDER_SEQUENCE_NUMBER", LogEventKind.OUT_OF_ORDER_SEQUENCE, must=True
        ),
        logged("the client raised its epoch itself", LogEventKind.EPOCH_BUMPED),
    ),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/3575",),
)


LIBRDKAFKA_3720 = Bug(
    id="librdkafka-3720",
    title="Idempotent producer does not check for epoch exhaustion",
    summary="the epoch is raised after every error and overflows at 32767",
    program=Program.LIBRDKAFKA,
    affected=(Affected("1.8.2", None),),
    fixed_in=(),
    codes=codes("KA204"),
    traits=(NEARLY_SPENT, RAISED_OFTEN),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/3720",),
    alike=("sarama-2178",),
)


LIBRDKAFKA_4953 = Bug(
    id="librdkafka-4953",
    title="Sporadic message duplication during leader transition with idempotent producer",
    summary="an out of order answer for one partition raises the epoch of all, and batches in flight elsewhere are renumbered",
    program=Program.LIBRDKAFKA,
    affected=(Affected("2.6.1", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/4953",),
    alike=("KAFKA-14034", "KAFKA-14397"),
)


def _fetched(case: Case) -> bool:
    return case.finding.file is None


REDPANDA_3039 = Bug(
    id="Redpanda-3039",
    title="Idempotency violation with modern kafka clients",
    summary="Redpanda answers a retry of a written batch with an error after which clients raise their epoch and send it again",
    program=Program.REDPANDA,
    affected=(Affected("21.4.1", "21.10.2"),),
    fixed_in=("21.10.3",),
    codes=codes("KA704"),
    traits=(
        SENT_AGAIN,
        SAME_TIMES,
        Trait("the batches were fetched from brokers, not read from Kafka's files", _fetched),
        ANOTHER_LEADER,
    ),
    confidence=Confidence.POSSIBLE,
    sources=(
        "https://github.com/redpanda-data/redpanda/issues/3039",
        "https://github.com/redpanda-data/redpanda/pull/3040",
    ),
    alike=("KAFKA-14034", "KAFKA-14397", "librdkafka-4953"),
)


SARAMA_2178 = Bug(
    id="sarama-2178",
    title="Prevent idempotent producer epoch exhaustion",
    summary="every failed send raises the epoch, and the epoch overflows at 32767",
    program=Program.SARAMA,
    affected=(Affected("1.26.0", "1.32.0"),),
    fixed_in=("1.33.0",),
    codes=codes("KA204"),
    traits=(NEARLY_SPENT, RAISED_OFTEN),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/IBM/sarama/pull/2178",),
    alike=("librdkafka-3720",),
)
