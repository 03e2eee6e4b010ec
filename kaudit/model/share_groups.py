"""What __share_group_state shows of share groups (KIP-932): records that are never delivered again, and starts that jumped."""

from collections.abc import Sequence

from msgspec import Struct

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
