"""How refusals are told by their errors, and their causes, the likeliest first. What an error means is in protocol_errors.toml."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaudit.formats.protocol_errors import error_named
from kaudit.model.finding import Explanation


class Meaning(Struct, frozen=True):
    """`refused` completes "the broker refused batches in orders-0"."""

    refused: str
    causes: Sequence[str]

    @property
    def explanations(self) -> Sequence[Explanation]:
        """The causes as explanations."""
        return [Explanation(cause) for cause in self.causes]


def rule_of(error: str) -> str:
    """Return what an error of the protocol means, in one sentence without a full stop."""
    known = error_named(error)
    assert known is not None
    sentence = known.meaning.partition(". ")[0].removesuffix(".")
    return f"{error}: {sentence[0].lower()}{sentence[1:]}"


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
_CONTENT = Meaning(
    "for their content",
    (
        "a record breaks a setting of its topic: a compacted topic without a key, a timestamp out of bounds, a size above the limit",
        "a client or a proxy built the batch wrong",
    ),
)
_TOO_LARGE = Meaning(
    "as too large", ("max.request.size and batch.size of the producer are above max.message.bytes of the topic",)
)
_FORBIDDEN = Meaning(
    ": the producer may not write there", ("an access control entry is missing for the producer's principal",)
)
_REPLICAS = Meaning(
    "for want of replicas in sync",
    (
        "brokers of the partition's replicas are down or too slow to follow",
        "min.insync.replicas is above the number of replicas",
    ),
)
_SUCCESSOR = "another instance with the same transactional.id was started: a rebalance, a deployment, or two that share it by mistake"
_ABORTED = "the coordinator aborted the transaction, which raises the epoch: it had timed out"
MEANINGS: Mapping[str, Meaning] = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Meaning("as out of order", AHEAD),
    "DUPLICATE_SEQUENCE_NUMBER": Meaning(
        "as duplicates", ("the client sent it again because the first answer was late or lost",)
    ),
    "INVALID_TXN_STATE": Meaning(
        "as outside of a transaction",
        (
            "the transaction had timed out, and the coordinator had aborted it before the batch came",
            "a delayed or repeated batch came after its transaction had ended",
        ),
    ),
    "INVALID_RECORD": _CONTENT,
    "INVALID_TIMESTAMP": Meaning("for their timestamps", _CONTENT.causes),
    "CORRUPT_MESSAGE": Meaning("as corrupt", ("the network, a proxy or the client's memory changed its bytes",)),
    "MESSAGE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": _TOO_LARGE,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": Meaning("for their format", _CONTENT.causes[1:]),
    "UNSUPPORTED_COMPRESSION_TYPE": Meaning("for their compression", ("the client is older than the topic's codec",)),
    "POLICY_VIOLATION": Meaning("by a policy", ("the policy's own log says why",)),
    "NOT_ENOUGH_REPLICAS": _REPLICAS,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Meaning(
        "after they were appended: too few replicas followed", _REPLICAS.causes
    ),
    "INVALID_REQUIRED_ACKS": Meaning("for their acks", ("the client's setting of acks",)),
    "TOPIC_AUTHORIZATION_FAILED": _FORBIDDEN,
    "CLUSTER_AUTHORIZATION_FAILED": _FORBIDDEN,
    "UNKNOWN_PRODUCER_ID": Meaning(
        ": it did not know the producer",
        (
            "retention or DeleteRecords had removed all records of the producer (brokers before 2.4: KAFKA-7190)",
            "the producer was idle for longer than brokers remember it, or its records carry old timestamps",
            "the new leader never had the producer's batches",
        ),
    ),
    "INVALID_PRODUCER_ID_MAPPING": Meaning(
        ": the transactional id does not have this producer id",
        (
            "the transactional id was idle for transactional.id.expiration.ms (7 days)",
            "another instance initialised the transactional id after it had expired, and got another producer id",
        ),
    ),
    "INVALID_PRODUCER_EPOCH": Meaning(
        ": the producer is fenced",
        (_SUCCESSOR, _ABORTED, "the client had raised its epoch itself after an error, and an older batch came late"),
    ),
    "PRODUCER_FENCED": Meaning(": the producer is fenced", (_SUCCESSOR, _ABORTED)),
    "TRANSACTION_ABORTABLE": Meaning(
        ": the transaction must be aborted",
        ("the transaction had timed out", "the partition's leader or the coordinator had moved"),
    ),
    "INVALID_TRANSACTION_TIMEOUT": Meaning("for its timeout", ("transaction.timeout.ms of the producer is too long",)),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _FORBIDDEN,
}
"""By error, every one of CONSEQUENCES in kaudit/audits/log_events/incidents.py."""
