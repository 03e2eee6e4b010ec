"""What the page of a sequence diagram shows, as data: written into the page as JSON, read by the scripts in assets/sequence.

Offsets and producer ids are decimal text, since a browser's numbers are exact up to 2**53 only; times are ms since the
first message. Lanes, windows and states are listed once; steps refer to them by index.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from kaudit.report.html.page_model import LeftOut
from kaudit.simulate.trace import Client, Int64, Partition, Transaction

SCHEMA = "kaudit.sequence/1"
Role = Literal["client", "broker", "partition", "other"]
Tone = Literal["request", "ok", "duplicate", "refused", "lost", "repeated", "replication", "note", "fault"]
"""How a step is drawn. `repeated`: written although the log holds the same records already."""


class Lane(Struct, frozen=True):
    """A participant."""

    name: str
    role: Role


class Slot(Struct, frozen=True):
    """A remembered batch: its sequences and its offsets, as `3` or `3 to 5`."""

    sequences: str
    offsets: str


class Window(Struct, frozen=True):
    """What a partition's leader remembers of one producer id; epochs are -1 while unknown.

    `slots`, oldest first, are at most `capacity`; `transaction_from` is the first offset of an open transaction, None without.
    """

    partition: str
    producer_id: Int64
    epoch: int
    coordinator_epoch: int
    slots: Sequence[Slot]
    capacity: int
    next_sequence: int
    transaction_from: Int64 | None


class Decision(Struct, frozen=True):
    """What a broker decided about a batch or a request, and why.

    `expected` and `got` are set where a rule refused it; `before` and `after` are indexes of the page's windows, None where
    no producer state was consulted; `matched` is the slot of `before` that a duplicate repeats; `history` is the earlier history
    of the batch.
    """

    partition: str
    outcome: str
    error: str
    rule: str
    expected: str
    got: str
    incoming: str
    before: int | None
    after: int | None
    matched: int | None
    history: str


class State(Struct, frozen=True):
    """The state after a step, as indexes of the page's lists."""

    clients: Sequence[int] = ()
    partitions: Sequence[int] = ()
    windows: Sequence[int] = ()
    transactions: Sequence[int] = ()


class Step(Struct, frozen=True):
    """One message, or what one participant did (`source` is `target`).

    Texts refer to a step by its `number`. `left_out` counts the steps before it that are not shown, `left_out_here` those of
    its partition. Times are None where they are not known. `reason` is the short reason of a refusal. Without `partitions`
    it concerns all of its participants'.
    """

    number: int
    left_out: int
    left_out_here: int
    at: int | None
    sent_at: int | None
    source: int
    target: int
    arrow: str
    tone: Tone
    text: str
    reason: str
    partitions: Sequence[str]
    producer_id: Int64 | None
    decisions: Sequence[Decision]
    state: State


class SequencePage(Struct, frozen=True):
    """The page. `facts` are names and values; `capacity` is how many batches of a producer a broker remembers.

    `unit` is the word for a step.
    """

    title: str
    story: str
    command: str
    made_by: str
    facts: Sequence[tuple[str, str]]
    capacity: int
    lanes: Sequence[Lane]
    steps: Sequence[Step]
    windows: Sequence[Window]
    clients: Sequence[Client]
    partitions: Sequence[Partition]
    transactions: Sequence[Transaction]
    left_out: Sequence[LeftOut]
    unit: Literal["step", "attempt"] = "step"
    schema: str = SCHEMA
