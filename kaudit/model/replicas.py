"""The result of `diff`: replicas of the same partitions compared with one another."""

import enum
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.model.json_record import JsonRecord
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.result import ScanResult


class Relation(enum.Enum):
    """How the replicas of a partition relate to one another; the most severe relation is the partition's."""

    IDENTICAL = "identical"
    BEHIND = "behind"
    """All agree as far as they go, but some end earlier."""
    DIVERGED = "diverged"
    """At one offset at least two hold different records, or the same under different leader epochs; or one lacks what
    another holds there; or one holds records from an offset on at which another began a newer leader epoch without them."""
    APPENDED = "appended"
    """Two copies of one broker's log: the later one holds all of the earlier one and more after it."""
    TRUNCATED = "truncated"
    """Two copies of one broker's log: the broker cut its log between them, whatever it has written there since."""
    SEPARATE = "separate"
    """The copies are of different logs: of two clusters, of two topics of one name, or on two disks of one broker."""
    MISSING = "missing"
    """Only one of the replicas compared has the partition: nothing to compare it with."""


class Replica(JsonRecord, frozen=True):
    """One side of the comparison: its name in the report, and the path it was given as."""

    name: str
    path: str


class BrokerReplicas(JsonRecord, frozen=True):
    """Replicas that are copies of one broker's log directory (meta.properties) at different times, the oldest first."""

    broker_id: int
    directory_id: str | None
    cluster_id: str | None
    replicas: Sequence[str]


class ReplicaBatch(JsonRecord, frozen=True):
    """One batch as one replica holds it. Fields a batch does not have are -1, as in DefaultRecordBatch."""

    offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    record_count: int
    timestamp: int
    """The batch's max timestamp, ms."""
    crc: int
    size: int
    position: int
    segment: int
    """Index into the replica's segments."""

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """The values that are equal if two replicas hold the same batch."""
        return self.offset, self.last_offset, self.crc, self.leader_epoch

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, as evidence shows batches."""
        fields = super().to_dict()
        del fields["segment"]
        return fields


class OffsetRange(JsonRecord, frozen=True, rename={"first": "first_offset", "last": "last_offset"}):
    """Offsets `first`..`last`, inclusive."""

    first: int
    last: int


class Difference(JsonRecord, frozen=True, rename={"batches": "replicas"}):
    """The first offset at which replicas differ, and the batch each of them holds there."""

    offset: int
    batches: Mapping[str, ReplicaBatch]

    @property
    def in_epoch_alone(self) -> bool:
        """Whether all hold the same records, under different leader epochs."""
        held = list(self.batches.values())
        return len(held) > 1 and len({(one.offset, one.last_offset, one.crc, one.size) for one in held}) == 1

    def same_as(self, name: str) -> list[str]:
        """Return the replicas that hold the same batch there as `name`, itself among them."""
        mine = self.batches[name].identity
        return [other for other, batch in self.batches.items() if batch.identity == mine]


class MissingRecords(JsonRecord, frozen=True):
    """Records of producers at the end of one copy, from an offset on, that another copy does not hold there.

    `records` are in no batch of the other copy from that offset on; `below_high_watermark` of them lie below the high
    watermark that the copy's own broker wrote down, `without_producer_id` are no idempotent producer's and lie above it.
    `elsewhere` are there at other offsets: sent again. `span_ms` lies between the first and the last timestamp. `not_sent_again`
    lie above the high watermark, and their producers no longer waited for an acknowledgement: they went on with the other copy
    without sending them again, or wrote another batch (idempotent ones). `unacknowledged` lie above it in a topic that brokers write, with acks=all.
    """

    records: int
    below_high_watermark: int
    elsewhere: int
    without_producer_id: int = 0
    span_ms: int = 0
    not_sent_again: int = 0
    unacknowledged: int = 0

    @property
    def lost(self) -> tuple[int, int]:
        """How many were lost that had been acknowledged, at least and at most."""
        least = self.below_high_watermark + self.not_sent_again
        return least, self.records if self.below_high_watermark else self.records - self.unacknowledged

    @property
    def nothing(self) -> bool:
        """Whether the other copy holds the same records at the same offsets, under whatever leader epochs."""
        return not self.records and not self.elsewhere


class ReplicaGap(JsonRecord, frozen=True):
    """Offsets `first_offset`..`last_offset`, inclusive, that some copies lack inside their own range and others hold.

    `records` of producers that a holder has there, None where they could not be counted. `may_be_compaction`: the log
    cleaner may have taken them. The first copy's log goes on at byte `position` of `segment`, an index.
    """

    first_offset: int
    last_offset: int
    missing_on: Sequence[str]
    held_by: Sequence[str]
    segment: int
    position: int
    records: int | None = None
    may_be_compaction: bool = True

    def parts(self, names: Sequence[str]) -> bool:
        """Return whether some of these copies hold what others of them lack."""
        return not set(names).isdisjoint(self.missing_on) and not set(names).isdisjoint(self.held_by)


class CopyChange(JsonRecord, frozen=True):
    """What a broker did to its log of a partition between two copies of it: appended, or truncated and went on.

    Both agree below `common_end_offset` (exclusive). `truncated` are the offsets from there to the earlier copy's end and
    `missing` the records that the later one lacks of them; None where nothing was cut off.
    """

    broker_id: int
    earlier: str
    later: str
    relation: Relation
    common_end_offset: int
    truncated: OffsetRange | None = None
    missing: MissingRecords | None = None
    first_difference: Difference | None = None


_JSON_NAMES = {
    "truncation_offsets": "truncation_offset",
    "start_offsets": "start_offset",
    "end_offsets": "end_offset",
    "copy_changes": "moments",
}


class PartitionComparison(JsonRecord, frozen=True, rename=_JSON_NAMES):
    """One partition, its replicas by name. Offsets named `end` are exclusive.

    Of several copies of one broker the newest is a replica; `copy_changes` says what changed from each to the next.
    `reference` is the replica whose log the others would follow: the highest leader epoch, then the longest log.
    `common_end_offset` is where agreement of all holders ends. `truncation_offsets` says for each other replica where it
    would cut its log when it follows the reference (KIP-101, KIP-279), None where that is not known. `only_on` are the
    offsets at a replica's end that no other replica holds as it does.
    """

    topic: str
    partition: int
    relation: Relation
    reference: str | None
    relations: Mapping[str, Relation]
    """The relation of each other holder to the reference."""
    missing_on: Sequence[str]
    common_end_offset: int | None
    first_difference: Difference | None
    leader_epochs: Mapping[str, Sequence[EpochEntry]]
    truncation_offsets: Mapping[str, int | None]
    only_on: Mapping[str, OffsetRange]
    start_offsets: Mapping[str, int | None]
    end_offsets: Mapping[str, int]
    copy_changes: Sequence[CopyChange] = ()
    gaps: Sequence[ReplicaGap] = ()
    """Offsets that copies lack inside their own range, earlier copies of a broker included."""

    @property
    def replica_ends(self) -> Mapping[str, int]:
        """The log ends of the replicas, without earlier copies of their brokers."""
        earlier = {change.earlier for change in self.copy_changes}
        return {name: end for name, end in self.end_offsets.items() if name not in earlier}

    @property
    def followers(self) -> frozenset[str]:
        """The replicas that go on with the reference's log: they agree with it as far as they go, or cut off what differs."""
        cuts = {
            name: cut
            for name, cut in self.truncation_offsets.items()
            if cut is not None and cut < self.end_offsets[name]
        }
        return frozenset(name for name, how in self.relations.items() if how is Relation.BEHIND or name in cuts)

    @property
    def beyond_reference(self) -> list[str]:
        """The replicas that agree with the reference to its end and go on; it is the reference for its newer leader epoch."""
        if self.reference is None:
            return []
        end = self.end_offsets[self.reference]
        longer = [name for name in self.relations if self.end_offsets[name] > end]
        diverged = [name for name in longer if self.relations[name] is Relation.DIVERGED]
        return [name for name in diverged if (cut := self.truncation_offsets[name]) is None or cut >= end]


class ReplicaEvidence(Struct, frozen=True):
    """One partition's comparison and what lies around it, by the holders' names.

    `high_watermarks` are what each one's replication-offset-checkpoint says, where it says anything; `last_common` each
    one's last batch below the first difference; `torn` the replicas whose logs end in damage; `topic_ids` from
    partition.metadata; `missing` what a diverged replica holds and the reference does not, and what is on one copy alone;
    `leaders` the broker that led under each leader epoch, as far as __cluster_metadata is given.
    """

    comparison: PartitionComparison
    high_watermarks: Mapping[str, int]
    last_common: Mapping[str, ReplicaBatch]
    torn: Sequence[str] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, MissingRecords] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)

    @property
    def high_watermark(self) -> tuple[str, int] | None:
        """The replica whose checkpoint has the highest high watermark, and that."""
        replicas = self.comparison.replica_ends
        known = [(offset, name) for name, offset in self.high_watermarks.items() if name in replicas]
        return (max(known)[1], max(known)[0]) if known else None


class ReplicaLag(Struct, frozen=True):
    """A comparison whose replicas may end before others: what followers have not fetched yet."""

    found: ReplicaEvidence


class DiffResult(Struct, frozen=True):
    """Replicas compared, partition by partition in (topic, partition) order; `scan` holds findings and totals."""

    scan: ScanResult
    replicas: Sequence[Replica]
    partitions: Sequence[PartitionComparison] = field(default_factory=tuple)
    broker_copies: Sequence[BrokerReplicas] = ()
