"""Transactions from input to output: what each committed of its inputs, and what that shows of inputs processed twice or never."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct, field

from kaudit.model.json_record import JsonRecord


class Outcome(Enum):
    """How a transaction ended, as the log shows it. Consumers with read_committed get the outputs of committed ones alone."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class InputRange(JsonRecord, frozen=True, gc=False, rename={"group": "group_id"}):
    """Inputs of one partition, up to `end` (exclusive), that a group committed in a transaction.

    A commit says where the group goes on; `first` is where it went on before, None where that is not known.
    """

    group: str
    topic: str
    partition: int
    first: int | None
    end: int

    @property
    def text(self) -> str:
        """`20..29`; `..29` where the first is not known."""
        return f"{'' if self.first is None else self.first}..{self.end - 1}"

    @property
    def place(self) -> str:
        """`orders-3`."""
        return f"{self.topic}-{self.partition}"


class EndOfTransaction(JsonRecord, frozen=True, gc=False, rename={"ended_ms": "ended_timestamp"}):
    """What names one transaction: its producer, with the epoch of its marker, and when that was written (ms).

    `marker_offset` is the marker's in the partition of __consumer_offsets that has the group. `transactional_id` is None where
    __transaction_state does not name it.
    """

    producer_id: int
    producer_epoch: int
    ended_ms: int
    marker_offset: int
    transactional_id: str | None = None

    @property
    def who(self) -> str:
        """`producer 7 ('orders-1')`."""
        name = "" if self.transactional_id is None else f" ({self.transactional_id!r})"
        return f"producer {self.producer_id}{name}"


class InputTransaction(Struct, frozen=True, gc=False):
    """A transaction with commits of groups: `end` is None while it is open; `begun_ms`: its first commit's time."""

    producer_id: int
    producer_epoch: int
    begun_ms: int
    end: EndOfTransaction | None
    outcome: Outcome
    inputs: Sequence[InputRange]


class OutputRange(JsonRecord, frozen=True, gc=False):
    """What transactions wrote to one partition: offsets from `first_offset` to `last_offset`, that of the last marker."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int


class ProcessedTwice(Struct, frozen=True, tag=True):
    """Inputs that two committed transactions have: `before`, and one or more of another producer or time, from `again` to `last`.

    `committed` is the offset that the group had committed when `again` committed its own. `compared`: what shows it are the
    outputs, which are the same; else the offsets do. `outputs` are those of `transactions`, from `again` to `last`, None where
    the markers of the logs are not known.
    """

    inputs: InputRange
    committed: int
    before: EndOfTransaction
    again: EndOfTransaction
    last: EndOfTransaction
    transactions: int = 1
    compared: bool = False
    outputs: Sequence[OutputRange] | None = None


class Skipped(Struct, frozen=True, tag=True):
    """Inputs that the group went past, and that no committed transaction has.

    `passed_by` is None where an offset was committed outside any transaction, at `offset` of the group's partition of
    __consumer_offsets and `at_ms`; else the transaction that goes on after `aborted`, which had them.
    """

    inputs: InputRange
    offset: int
    at_ms: int
    aborted: EndOfTransaction | None = None
    passed_by: EndOfTransaction | None = None
    outputs: Sequence[OutputRange] | None = None
    """What the aborted transaction wrote, and no committed one."""


class CommitsOutside(Struct, frozen=True, tag=True):
    """Commits of a group outside any transaction, while it had members: between such in transactions, or in turn with a producer's.

    `first_offset` and `last_offset` are those of the first and the last one in the group's partition of __consumer_offsets.
    `producer_id` and `transactional_id` are of the producer whose transactions end in turn with the commits, and hold none of them.
    """

    group: str
    commits: int
    in_transactions: int
    topics: Sequence[str]
    first_offset: int
    first_ms: int
    last_offset: int
    last_ms: int
    producer_id: int | None = None
    transactional_id: str | None = None


class OutputsAlone(Struct, frozen=True, tag=True):
    """Committed transactions of a producer that wrote records and commit no offset, beside `in_transactions` of it that commit some.

    Of `transactions` the first is `first`, the last `last`; `outputs` are what they wrote. `again` is a later transaction of the group
    that commits offsets and wrote `written_again` of these records once more, None where none is known.
    """

    group: str
    in_transactions: int
    transactions: int
    first: EndOfTransaction
    last: EndOfTransaction
    outputs: Sequence[OutputRange]
    again: EndOfTransaction | None = None
    written_again: int = 0


class CommitTimes(Struct, frozen=True):
    """When a group that commits outside transactions alone, with members, committed: the last times (ms), ascending.

    `read` has the topic and partition of some of what it read, with the first and the last offset that it committed.
    """

    group: str
    topics: Sequence[str]
    commits: int
    times: Sequence[int]
    first_offset: int
    last_offset: int
    read: Sequence[tuple[str, int, int, int]] = ()


class SameOffset(Struct, frozen=True):
    """Two producers have committed the same offset, one after the other: `again` may have processed what `before` had."""

    inputs: InputRange
    before: EndOfTransaction
    again: EndOfTransaction


class WentOn(Struct, frozen=True):
    """A committed transaction ends further than an aborted one that began at the same offset: `inputs` are the aborted ones."""

    inputs: InputRange
    aborted: EndOfTransaction
    committed: EndOfTransaction


class TransactionCounts(Struct):
    """Transactions with commits of groups, and the inputs that these have, as far as their beginning is known."""

    committed: int = 0
    aborted: int = 0
    open: int = 0
    inputs_committed: int = 0
    inputs_aborted: int = 0


class GroupInputs(Struct):
    """What one partition of __consumer_offsets shows of transactions. Lists have the first of each kind; `more` counts the others.

    `same_offset` and `went_on` are to be decided by the outputs. `producers`: the groups of each producer id, of so many ids at most.
    `missing`: records that compaction or damage removed, which are not checked; from `since_ms` on none is. `listed`: the newest transactions, where they are
    asked for, and `unlisted` those before them.
    """

    counts: TransactionCounts = field(default_factory=TransactionCounts)
    twice: list[ProcessedTwice] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    outside: list[CommitsOutside] = field(default_factory=list)
    same_offset: list[SameOffset] = field(default_factory=list)
    went_on: list[WentOn] = field(default_factory=list)
    plain: list[CommitTimes] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)
    producers: dict[int, list[str]] = field(default_factory=dict)
    missing: int = 0
    since_ms: int = -1
    listed: list[InputTransaction] = field(default_factory=list)
    unlisted: int = 0
