"""The result of appending one batch: the outcome, and the rule that decided."""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_SEQUENCE
from kaudit.model.sequence import next_sequence


class Origin(Enum):
    """Who appends; decides how much is checked. Source: AppendOrigin."""

    CLIENT = "client"
    REPLICATION = "replication"
    """A follower, or a broker reading its own log."""
    COORDINATOR = "coordinator"


class Outcome(Enum):
    """The outcome of an append."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


class Compared(Enum):
    """Which values of batch and state a rule compared."""

    SEQUENCES = "sequences"
    EPOCHS = "epochs"
    COORDINATOR_EPOCHS = "coordinator epochs"
    TRANSACTION = "transaction"
    WINDOW = "window"
    LOWEST = "lowest sequence"


def _zero(_: "AppendResult") -> str:
    return "sequence 0"


def _following(result: "AppendResult") -> str:
    return f"sequence {next_sequence(result.state.last_sequence)}"


def _current_epoch(result: "AppendResult") -> str:
    return f"epoch {result.state.epoch} or higher"


class Rule(Enum):
    """The check that decided: its reason in one clause, what it compared and, of a refusal, what it would have accepted."""

    DUPLICATE = (
        "same epoch, first and last sequence as a remembered batch: answered with its offset, nothing is written",
        Compared.WINDOW,
    )
    NEXT = ("the next sequence of the current epoch", Compared.SEQUENCES)
    FIRST = ("a producer id without state starts at 0", Compared.SEQUENCES)
    UNKNOWN_ACCEPTED = ("a producer id without state may start anywhere on this version", Compared.SEQUENCES)
    NEW_EPOCH = ("a new epoch starts at 0", Compared.SEQUENCES)
    REPLICATED = ("replicas and log loading accept what the leader wrote", Compared.SEQUENCES)
    COORDINATOR = ("appends of a coordinator have no sequences to check", Compared.EPOCHS)
    MARKER = ("the marker's epochs are current", Compared.COORDINATOR_EPOCHS)
    STALE_EPOCH = ("its epoch is below the current one: a fenced producer", Compared.EPOCHS, _current_epoch)
    STALE_MARKER = ("the marker's epoch must not be below the current one", Compared.EPOCHS, _current_epoch)
    REPEATED_MARKER = (
        "a marker of transaction version 2 must raise the epoch of an open transaction",
        Compared.EPOCHS,
        lambda result: f"an epoch above {result.state.epoch}",
    )
    STALE_COORDINATOR = (
        "the marker's coordinator epoch is below the last one seen",
        Compared.COORDINATOR_EPOCHS,
        lambda result: f"coordinator epoch {result.state.coordinator_epoch} or higher",
    )
    UNKNOWN_PRODUCER = (
        "no state is remembered of this producer id, so only sequence 0 could follow",
        Compared.SEQUENCES,
        _zero,
    )
    UNKNOWN_NEXT = (
        "the epoch is current but no batch of it is remembered, so only sequence 0 could follow",
        Compared.SEQUENCES,
        _zero,
    )
    TV2_START = (
        "under transaction version 2 a producer without remembered batches starts at 0",
        Compared.SEQUENCES,
        _zero,
    )
    VERIFICATION = (
        "while a transaction is being verified no sequence above the lowest one seen is accepted",
        Compared.LOWEST,
        lambda result: f"at most sequence {result.bound}",
    )
    NEW_EPOCH_NONZERO = ("a new epoch must start at 0", Compared.SEQUENCES, _zero)
    OLD_DUPLICATE = ("it ends before the oldest remembered batch", Compared.WINDOW, _following)
    OUT_OF_ORDER = ("it is neither the next sequence nor a remembered batch", Compared.SEQUENCES, _following)
    NOT_TRANSACTIONAL = (
        "the producer has an open transaction, a non-transactional batch must not come between",
        Compared.TRANSACTION,
        lambda _: "a transactional batch",
    )

    def __init__(
        self, reason: str, compared: Compared, expected: "Callable[[AppendResult], str] | None" = None
    ) -> None:
        self.reason = reason
        self.compared = compared
        self.expected = expected


_NEXT = Rule.NEXT


class AppendResult(Struct, frozen=True, gc=False):
    """A decision on `batch` against what was remembered.

    `base_offset` is where the batch is (appended, duplicate), -1 when rejected; `bound` the lowest sequence under
    verification where that decided.
    """

    outcome: Outcome
    error: KafkaError
    rule: Rule
    base_offset: int
    batch: DataBatch | MarkerBatch
    state: ProducerStateEntry
    bound: int = 0

    def why(self, offset: int, partition: str) -> str:
        """Return the five values a broker logs - producer id, offset, partition, incoming, remembered - and the rule."""
        batch, state, rule = self.batch, self.state, self.rule
        if rule is _NEXT and batch.base_sequence == batch.last_sequence:  # type: ignore[union-attr]
            # What incoming and remembered would say, at once: most attempts of a large file end here.
            return (
                f"producer {batch.producer_id} at offset {offset} in {partition}: incoming epoch {batch.producer_epoch}, "
                f"sequence {batch.base_sequence}, remembered epoch {state.epoch}, "  # type: ignore[union-attr]
                f"last sequence {state.batches[-1].last_sequence if state.batches else NO_SEQUENCE}; {rule.reason}"
            )
        return (
            f"producer {self.batch.producer_id} at offset {offset} in {partition}: incoming {self.incoming}, "
            f"remembered {self.remembered}; {self.rule.reason}"
        )

    @property
    def incoming(self) -> str:
        """The batch's values that the rule compared."""
        batch = self.batch
        if isinstance(batch, MarkerBatch):
            return f"marker of epoch {batch.producer_epoch}, coordinator epoch {batch.coordinator_epoch}"
        if self.rule.compared is Compared.TRANSACTION:
            return "a non-transactional batch"
        if batch.base_sequence == batch.last_sequence:
            return f"epoch {batch.producer_epoch}, sequence {batch.base_sequence}"
        return f"epoch {batch.producer_epoch}, sequences {batch.base_sequence} to {batch.last_sequence}"

    @property
    def expected(self) -> str:
        """Values that the rejecting rule would have accepted, other checks apart; empty where no rule rejected the batch."""
        return "" if self.rule.expected is None else self.rule.expected(self)

    @property
    def got(self) -> str:
        """The batch's value that `expected` is about."""
        batch = self.batch
        if self.rule.compared is Compared.TRANSACTION:
            return "a non-transactional batch"
        if self.rule.compared is Compared.EPOCHS:
            return f"epoch {batch.producer_epoch}"
        if isinstance(batch, MarkerBatch):
            return f"coordinator epoch {batch.coordinator_epoch}"
        return f"sequence {batch.base_sequence}"

    @property
    def remembered(self) -> str:
        """The remembered values that the rule compared."""
        state, compared = self.state, self.rule.compared
        if compared is Compared.LOWEST:
            return f"lowest sequence {self.bound} under verification"
        if state.epoch == NO_PRODUCER_EPOCH and not state.batches:
            return "nothing"
        if compared in (Compared.SEQUENCES, Compared.WINDOW) and not state.batches:
            return f"epoch {state.epoch} without a batch"
        return _REMEMBERED[compared](state)


_REMEMBERED: dict[Compared, Callable[[ProducerStateEntry], str]] = {
    Compared.SEQUENCES: lambda state: f"epoch {state.epoch}, last sequence {state.last_sequence}",
    Compared.EPOCHS: lambda state: f"epoch {state.epoch}",
    Compared.COORDINATOR_EPOCHS: lambda state: f"epoch {state.epoch}, coordinator epoch {state.coordinator_epoch}",
    Compared.TRANSACTION: lambda state: f"a transaction open since offset {state.current_txn_first_offset}",
    Compared.WINDOW: lambda state: (
        f"epoch {state.epoch}, batches from offset {state.batches[0].first_offset} "
        f"to last sequence {state.last_sequence}"
    ),
}


class CompletedTransaction(Struct, frozen=True, gc=False):
    """A transaction ended by a marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
