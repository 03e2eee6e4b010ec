"""What a broker says to one batch, and why."""

from enum import Enum
from typing import NamedTuple

from kaudit.model.batch import NO_OFFSET
from kaudit.replay.errors import KafkaError


class Origin(Enum):
    """Who appends; decides how much is checked. Source: AppendOrigin."""

    CLIENT = "client"
    REPLICATION = "replication"
    """A follower, or a broker reading its own log."""
    COORDINATOR = "coordinator"


class Outcome(Enum):
    """What became of a batch."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


class Rule(Enum):
    """The check that spoke, with its reason in one sentence."""

    DUPLICATE = (
        "same epoch, first and last sequence as a remembered batch: answered with its offset, nothing is written"
    )
    NEXT = "the next sequence of the current epoch"
    FIRST = "a producer id without state starts at 0"
    UNKNOWN_ACCEPTED = "a producer id without state may start anywhere on this version"
    NEW_EPOCH = "a new epoch starts at 0"
    REPLICATED = "replicas and log loading accept what the leader wrote"
    COORDINATOR = "appends of a coordinator have no sequences to check"
    MARKER = "the marker's epochs are current"
    STALE_EPOCH = "its epoch is below the current one: a fenced producer"
    STALE_MARKER = "the marker's epoch must not be below the current one"
    REPEATED_MARKER = "a marker of transaction version 2 must raise the epoch of an open transaction"
    STALE_COORDINATOR = "the marker's coordinator epoch is below the last one seen"
    UNKNOWN_PRODUCER = "no state is remembered of this producer id, so only sequence 0 could follow"
    UNKNOWN_NEXT = "the epoch is current but no batch of it is remembered, so only sequence 0 could follow"
    TV2_START = "under transaction version 2 a producer without remembered batches starts at 0"
    VERIFICATION = "while a transaction is being verified no sequence above the lowest one seen is accepted"
    NEW_EPOCH_NONZERO = "a new epoch must start at 0"
    OLD_DUPLICATE = "it ends before the oldest remembered batch"
    OUT_OF_ORDER = "it is neither the next sequence nor a remembered batch"
    NOT_TRANSACTIONAL = "the producer has an open transaction, a plain batch must not come between"


class Verdict(NamedTuple):
    """A decision: `base_offset` is where the batch is (appended, duplicate), -1 when rejected.

    `incoming` and `remembered` name the two values that were compared.
    """

    outcome: Outcome
    error: KafkaError
    rule: Rule
    base_offset: int
    incoming: str
    remembered: str

    def why(self, producer_id: int, offset: int, partition: str) -> str:
        """Return the five facts a broker logs - producer id, offset, partition, incoming, remembered - and the rule."""
        return (
            f"producer {producer_id} at offset {offset} in {partition}: incoming {self.incoming}, "
            f"remembered {self.remembered}; {self.rule.value}"
        )


class CompletedTransaction(NamedTuple):
    """A transaction ended by a marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


def rejected(error: KafkaError, rule: Rule, incoming: str, remembered: str) -> Verdict:
    """Return a refusal."""
    return Verdict(Outcome.REJECTED, error, rule, NO_OFFSET, incoming, remembered)
