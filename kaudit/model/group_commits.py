"""What consumer groups committed, as __consumer_offsets shows it: steps back, commits outside the log, commits that never took effect."""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from kaudit.model.coordinator import Committed
from kaudit.model.json_record import JsonRecord

MOST_STEPS = 8
"""Steps listed of one group and partition: the first half and the last half of these."""


class StepKind(Enum):
    """What a step of a committed offset is."""

    BACK = "went back"
    CORRECTED = "went back and was corrected at once"
    """By whoever had committed before, just after the group rebalanced or its coordinator moved: nothing was read again."""
    RESET = "reset"
    """The group had no members, and the commit has no leader epoch: a tool sets offsets so, kafka-consumer-groups.sh for instance."""
    REMOVED = "removed"
    """A tombstone removed the offset, as it expired or was deleted, and the group began again below it."""
    COMPACTED = "went back unseen"
    """Records between the two commits were compacted away: what happened there is not known."""


class Committer(JsonRecord, frozen=True, gc=False):
    """Who committed, as far as the log shows it.

    `producer_id` and `producer_epoch` are those of the transaction; `member_id`, `client_id` and `client_host` of the member that
    the partition was assigned to. `generation` is the group's, its epoch in the consumer protocol (KIP-848); `members` how many it had.
    """

    producer_id: int | None = None
    producer_epoch: int | None = None
    member_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    generation: int | None = None
    members: int | None = None


class CommitStep(JsonRecord, frozen=True, gc=False):
    """The committed offset went from `committed_before` to `committed`, by the record at `offset` of __consumer_offsets.

    `timestamp`: when that was written, ms; `before_offset` and `before_timestamp` are those of the record before. `removed_timestamp`:
    when a tombstone came in between. `restored_offset` and `restored_timestamp` are of the record that committed as much again,
    None where none did.
    """

    kind: StepKind
    offset: int
    timestamp: int
    committed: int
    by: Committer
    committed_before: int
    before_offset: int
    before_timestamp: int
    before: Committer
    removed_timestamp: int | None = None
    restored_offset: int | None = None
    restored_timestamp: int | None = None


class StepSum(Struct, frozen=True, gc=False):
    """Steps of one kind, added up: how many, over how many offsets they went together, and the offsets that were committed before them.

    `read_again`: records that the commits after them show to have been read again, at least.
    """

    times: int = 0
    offsets: int = 0
    committed: int = 0
    read_again: int = 0


class CommittedSteps(Struct, frozen=True, tag=True):
    """The steps of one group's committed offset of one partition of a topic that are not plain progress.

    `steps` are the first and last of them; `sums` has those of each kind.
    `alternating`: two committed in turn, each from its own position. `commits` are those that took effect. `log_start_offset` is the
    topic's, None where its log is not among the inputs.
    """

    group: str
    topic: str
    partition: int
    steps: Sequence[CommitStep]
    sums: Mapping[StepKind, StepSum]
    alternating: bool
    commits: int
    log_start_offset: int | None = None


class CommitsInTransaction(Struct, frozen=True, tag=True):
    """Commits of a transaction whose marker is not in the log, by group and topic partition: they count when it commits."""

    producer_id: int
    producer_epoch: int
    offset: int
    timestamp: int
    partitions: Sequence[tuple[str, str, int]]


class NewestCommit(Struct, frozen=True):
    """The newest commit of a group for a partition, and who reads it: `owner` is None where no member has the partition."""

    committed: Committed
    topic: str
    partition: int
    topic_id: str | None
    offset: int
    timestamp: int
    owner: Committer | None


class CommittedBelowLogStart(Struct, frozen=True, tag=True):
    """The newest commit of a group that is reading lies below the start of the log: what lies between was removed before."""

    commit: NewestCommit
    log_start_offset: int
