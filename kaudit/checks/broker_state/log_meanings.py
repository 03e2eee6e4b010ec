"""What the errors mean by which brokers refuse what producers ask: how it is called, the rule, and causes, the likeliest first."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaudit.checks.epochs.stale_epochs import FENCING_RULE
from kaudit.checks.sequences.sequence_gap import GAP_RULE
from kaudit.model.finding import Explanation


class Meaning(Struct, frozen=True):
    """`refused` completes "the broker refused batches in orders-0"; `rule` is one sentence without a full stop."""

    refused: str
    rule: str
    causes: Sequence[str] = ()

    @property
    def explanations(self) -> Sequence[Explanation]:
        """The causes as explanations."""
        return [Explanation(cause) for cause in self.causes]


AHEAD = (
    "batches with the sequences between failed or expired in the client, and it went on with the next ones",
    "the leader changed, and the new one lacks the producer's last batches: an unclean election, acks below all, a truncation",
    "the client counts sequences its own way, or sends batches of a partition in another order than it numbered them",
)
ANEW = (
    "the client began its sequences again without a new producer id or epoch, after an error or in a second instance",
    "the first batch came after a later one, which a leader without state had taken for the first (KAFKA-15591)",
)
BACK = ("an old batch was sent again after more than five others had followed it: brokers remember five batches",)
_CONTENT = (
    "a record breaks a setting of its topic: a compacted topic without a key, a timestamp out of bounds, a size above the limit",
    "a client or a proxy built the batch wrong",
)
_TOO_LARGE = Meaning(
    "as too large",
    "a batch above max.message.bytes of its topic is refused for good; a client splits it if it holds several records",
    ("max.request.size and batch.size of the producer are above max.message.bytes of the topic",),
)
_CORRUPT = Meaning(
    "as corrupt",
    "a batch whose CRC does not fit its bytes is refused; a Java producer sends it again",
    ("the network, a proxy or the client's memory changed its bytes",),
)
_INVALID = Meaning(
    "for their content", "a broker appends no record that its topic does not allow (LogValidator)", _CONTENT
)
_FORMAT = Meaning("for their format", "the topic's message format does not hold what the batch has", _CONTENT)
_FORBIDDEN = Meaning(
    ": the producer may not write there",
    "a producer needs Write on the topic, and IdempotentWrite on the cluster before 2.8",
    ("an ACL is missing for the producer's principal",),
)
_SUCCESSOR = "another instance with the same transactional.id was started: a rebalance, a deployment, or two that share it by mistake"
_REPLICAS = Meaning(
    "for want of replicas in sync",
    "with acks=all a leader appends nothing while fewer replicas are in sync than min.insync.replicas; clients try again "
    "until delivery.timeout.ms",
    (
        "brokers of the partition's replicas are down or too slow to follow",
        "min.insync.replicas is above the number of replicas",
    ),
)
_AFTER_APPEND = Meaning(
    "after they were appended: too few replicas followed",
    "the batch is in the leader's log, and is acknowledged to nobody: a client that is idempotent may send it again safely",
    _REPLICAS.causes,
)
MEANINGS: Mapping[str, Meaning] = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Meaning("as out of order", GAP_RULE, AHEAD),
    "DUPLICATE_SEQUENCE_NUMBER": Meaning(
        "as duplicates",
        "a batch among the last five of its producer is in the log already; clients take the answer for success",
        ("the client sent it again because the first answer was late or lost",),
    ),
    "INVALID_TXN_STATE": Meaning(
        "as outside of a transaction",
        "a transactional batch is appended only while the coordinator has its partition in an ongoing transaction (KIP-890)",
        (
            "the transaction had timed out, and the coordinator had aborted it before the batch came",
            "a delayed or repeated batch came after its transaction had ended",
        ),
    ),
    "INVALID_RECORD": _INVALID,
    "INVALID_TIMESTAMP": Meaning("for their timestamps", _INVALID.rule, _CONTENT),
    "CORRUPT_MESSAGE": _CORRUPT,
    "MESSAGE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": _TOO_LARGE,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": _FORMAT,
    "UNSUPPORTED_COMPRESSION_TYPE": _FORMAT,
    "POLICY_VIOLATION": Meaning("by a policy", "a policy of the cluster decides", ("see the policy's own log",)),
    "NOT_ENOUGH_REPLICAS": _REPLICAS,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": _AFTER_APPEND,
    "INVALID_REQUIRED_ACKS": Meaning(
        "for their acks", "acks is 0, 1 or all (-1); transactions need all", ("the client's acks setting",)
    ),
    "TOPIC_AUTHORIZATION_FAILED": _FORBIDDEN,
    "CLUSTER_AUTHORIZATION_FAILED": _FORBIDDEN,
    "UNKNOWN_PRODUCER_ID": Meaning(
        ": it did not know the producer",
        "a broker forgets a producer that was idle too long (producer.id.expiration.ms), and before 2.4 one whose records were "
        "all deleted; before 2.5 it refuses the next batch, whose sequence is not 0",
        (
            "retention or DeleteRecords had removed all records of the producer (brokers before 2.4: KAFKA-7190)",
            "the producer was idle for longer than brokers remember it, or its records carry old timestamps",
            "the new leader never had the producer's batches",
        ),
    ),
    "INVALID_PRODUCER_ID_MAPPING": Meaning(
        ": the transactional id does not have this producer id",
        "the coordinator forgets a transactional id that was idle for transactional.id.expiration.ms (7 days), and refuses its "
        "old producer id from then on",
        (
            "the transactional id was idle for a week",
            "another instance initialised the transactional id after it had expired, and got another producer id",
        ),
    ),
    "INVALID_PRODUCER_EPOCH": Meaning(
        ": the producer is fenced",
        FENCING_RULE.partition(";")[0],
        (
            _SUCCESSOR,
            "the coordinator aborted the transaction, which raises the epoch: it had timed out",
            "the client had raised its epoch itself after an error, and an older batch came late",
        ),
    ),
    "PRODUCER_FENCED": Meaning(
        ": the producer is fenced",
        "a newer producer with the same transactional.id has a higher epoch: the coordinator answers PRODUCER_FENCED to the "
        "older one, which must be closed (KIP-98, KIP-360)",
        (
            _SUCCESSOR,
            "the coordinator aborted the transaction, which raises the epoch: it had timed out",
        ),
    ),
    "TRANSACTION_ABORTABLE": Meaning(
        ": the transaction must be aborted",
        "the coordinator could not verify the partition as part of the transaction: the producer must abort it, and may begin "
        "again (KIP-890)",
        ("the transaction had timed out", "the partition's leader or the coordinator had moved"),
    ),
    "INVALID_TRANSACTION_TIMEOUT": Meaning(
        "for its timeout",
        "transaction.timeout.ms may not exceed transaction.max.timeout.ms of the brokers",
        ("transaction.timeout.ms of the producer is too long",),
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Meaning(
        ": the producer may not write there",
        "a transactional producer needs Write on its transactional id",
        ("an ACL is missing for the producer's principal",),
    ),
}
"""By error, every one of CONSEQUENCES in kaudit/audits/log_events/incidents.py."""
