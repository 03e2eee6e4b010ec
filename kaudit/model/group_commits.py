"""What consumer groups committed, as __consumer_offsets shows it: steps back, commits outside the log, commits that never took effect.

What __share_group_state shows of share groups (KIP-932): records that are never delivered again, and starts that jumped.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from kaudit.model.coordinator import Committed
from kaudit.model.json_record import JsonRecord

MOST_RANGES = 100
"""Ranges of offsets listed of one group and partition."""
DELIVERY_LIMIT = 5
"""group.share.delivery.count.limit by default: a record released after so many deliveries is archived."""


class SharedOffsets(JsonRecord, frozen=True, gc=False):
    """Offsets of a topic's partition (both inclusive) in one state, after so many deliveries."""

    first_offset: int
    last_offset: int
    deliveries: int


class StartJump(JsonRecord, frozen=True, gc=False):
    """The share-partition start offset went to `after`, by the record at `offset` of __share_group_state, at `timestamp`.

    All below `before` had been acknowledged or archived.

    `unread` are the offsets between that were neither acknowledged nor archived. `is_reset`: the state epoch went up with it, as when
    a tool sets the start offset.
    """

    offset: int
    timestamp: int
    before: int
    after: int
    unread: int
    is_reset: bool


class SharePartition(Struct, frozen=True, tag=True):
    """One share group's partition of a topic, known by its id.

    `archived`: the ranges, of `rejected` and `exhausted` offsets: those that reached DELIVERY_LIMIT are the latter. `acquired` are
    in that state at the end of the log, since `acquired_timestamp`. `first_record` and `last_record` are those that archived, offsets
    of __share_group_state.
    """

    group: str
    topic_id: str
    partition: int
    archived: Sequence[SharedOffsets]
    rejected: int
    exhausted: int
    first_record: int
    last_record: int
    last_timestamp: int
    acquired: Sequence[SharedOffsets]
    acquired_timestamp: int
    jumps: Sequence[StartJump]
    jump_count: int
    topic: str | None = None


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
