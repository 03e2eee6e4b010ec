"""Records that a consumer gets twice."""

import enum

from msgspec import Struct, field

from kaudit.model.severity import Confidence

RECURRING_COPY = 4
"""From this copy on, records are taken to recur for their own reasons, not because a client sent them again."""


class Relation(enum.Enum):
    """The relation of the producer of a batch, or record, to that of an earlier one."""

    SAME_SEQUENCE = "same-sequence"
    """The same producer id, epoch and sequence: what a broker should have refused."""
    NO_PRODUCER_ID = "no-producer-id"
    OTHER_PRODUCER_ID = "other-producer-id"
    OTHER_EPOCH = "other-epoch"
    OTHER_SEQUENCE = "other-sequence"
    """The same producer id and epoch: the application sent it once more."""
    SEQUENCE_REUSED = "sequence-reused"
    """The same producer id, epoch and sequence, and other records."""


class Cause(enum.Enum):
    """What put records into the log again."""

    RETRY = "retry"
    RESTART = "restart"
    REPROCESSING = "reprocessing"
    RE_SNAPSHOT = "re-snapshot"
    MIRROR = "mirror"
    RECURRING = "recurring"
    """Equal records that are written over and over, such as heartbeats."""
    UNKNOWN = "unknown"


class Duplicate(Struct, frozen=True):
    """A record that repeats an earlier one, or its sequence. `last_offset` is `offset`, `record_count` 1.

    `repeats`: it says what the original says; else only the sequence is the same. `copy`: 2 is the first repeat.
    `dropped_by_key`, `dropped_by_sequence`: whether a consumer drops it that remembers keys, or producer id, epoch and
    sequence; None where that is not known. `read_committed`: whether such a consumer is given both. `key_hash`: SHA-256 of the key
    that all its records have, in hex, None without one. Timestamps are ms, of the latest record.
    """

    offset: int
    last_offset: int
    record_count: int
    segment: str | None
    position: int | None
    timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    transaction_outcome: str | None
    original_offset: int
    original_last_offset: int
    original_timestamp: int | None
    original_producer_id: int | None
    original_producer_epoch: int | None
    original_sequence: int | None
    original_transaction_outcome: str | None
    relation: Relation
    repeats: bool
    copy: int | None
    dropped_by_key: bool | None
    dropped_by_sequence: bool
    read_committed: bool
    key_hash: str | None


class RepeatedRange(Struct, frozen=True):
    """Repeats in a row of records in a row: offsets `offset`..`last_offset` repeat `original_offset`..`original_last_offset`.

    Both ascend; records that are no repeats may lie between. Timestamps are ms, of the first record. `same_timestamps`: of
    all of them. `differs_in`: the parts of the records that are not the same, None if they are equal. `recognisable_by`: by
    which a consumer can tell that it had them before.
    """

    offset: int
    last_offset: int
    original_offset: int
    original_last_offset: int
    record_count: int
    timestamp: int | None
    original_timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    original_producer_id: int | None
    original_producer_epoch: int | None
    relation: Relation
    cause: Cause
    confidence: Confidence
    """That they repeat the others, and are not alike by chance or by intention."""
    same_timestamps: bool
    differs_in: str | None
    recognisable_by: str | None


class DuplicateCounts(Struct):
    """Counts of duplicate records. `dropped`: the consumer recognises them; `lost`: it drops them although they are new."""

    repeated: int = 0
    recurring: int = 0
    """Repeated, from the fourth copy on."""
    dropped_by_key: int = 0
    dropped_by_sequence: int = 0
    lost_by_sequence: int = 0
    given_twice_by_sequence: dict[str, int] = field(default_factory=dict)
    """Repeated and not recognised by sequence, by relation."""

    by_cause: dict[str, int] = field(default_factory=dict)
    by_confidence: dict[str, int] = field(default_factory=dict)

    def add_range(self, found: RepeatedRange) -> None:
        """Count the records of a range, which `add` has counted, by cause and confidence."""
        for counted, name in ((self.by_cause, found.cause.value), (self.by_confidence, found.confidence.value)):
            counted[name] = counted.get(name, 0) + found.record_count

    def add(self, found: Duplicate) -> None:
        """Count one more."""
        if not found.repeats:
            self.lost_by_sequence += found.record_count
            return
        self.repeated += found.record_count
        if found.copy is not None and found.copy >= RECURRING_COPY:
            self.recurring += found.record_count
        self.dropped_by_key += found.record_count if found.dropped_by_key else 0
        if found.dropped_by_sequence:
            self.dropped_by_sequence += found.record_count
        else:
            seen, relation = self.given_twice_by_sequence, found.relation.value
            seen[relation] = seen.get(relation, 0) + found.record_count

    def merge(self, other: "DuplicateCounts") -> None:
        """Add another partition's."""
        for name in ("repeated", "recurring", "dropped_by_key", "dropped_by_sequence", "lost_by_sequence"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("given_twice_by_sequence", "by_cause", "by_confidence"):
            own = getattr(self, name)
            for key, records in getattr(other, name).items():
                own[key] = own.get(key, 0) + records
