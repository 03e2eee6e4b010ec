"""The account of a capture, capture.json: the cluster, the runs, the offsets captured, and those missing."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from kaudit import __version__
from kaudit.capture.directory import OccupiedError
from kaudit.source.file_kinds import CAPTURE_ACCOUNT, parse_partition_name

SCHEMA: Final = "kaudit.capture/1"
MOST_MISSING: Final = 1000
"""Ranges listed for a partition; further ones are counted."""
MOST_RUNS: Final = 100
"""Runs listed, the last ones."""


class Missing(Struct, frozen=True):
    """Offsets, first and last, that are not in the capture, and why."""

    first_offset: int
    last_offset: int
    reason: str


class PartitionAccount(Struct):
    """One partition: what was captured, and what its broker said when it was last asked. Offsets are -1 where unknown.

    `first_segment` is the base offset of its oldest segment, `next_offset` is where the next run goes on; `brokers` are the node ids of the brokers that sent the batches;
    `compacted_offsets` counts offsets between batches in a topic that is compacted, the last of them is below `compacted_to`;
    `problem` is why the last run ended before it had all.
    """

    topic: str
    partition: int
    topic_id: str | None = None
    brokers: list[int] = field(default_factory=list)
    first_offset: int = -1
    next_offset: int = -1
    first_segment: int = -1
    bytes: int = 0
    log_start_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    leader_epoch: int = -1
    missing: list[Missing] = field(default_factory=list)
    missing_unlisted: int = 0
    compacted_offsets: int = 0
    compacted_to: int = 0
    recovery_point: int = 0
    """Segments that begin before it are in their places and accounted for; the next run reads the others again."""
    problem: str | None = None

    @property
    def name(self) -> str:
        """Its directory's name."""
        return f"{self.topic}-{self.partition}"

    def miss(self, first: int, last: int, reason: str) -> None:
        """Add a range, or count it where there are too many."""
        if self.missing and self.missing[-1].first_offset == first:
            self.missing.pop()  # noted by a run that was killed before it went on
        if len(self.missing) < MOST_MISSING:
            self.missing.append(Missing(first, last, reason))
        else:
            self.missing_unlisted += 1


class Run(Struct):
    """One run of kaudit capture: times in RFC 3339, `outcome` running, complete, interrupted or incomplete."""

    started_at: str
    servers: str
    ended_at: str | None = None
    bytes: int = 0
    outcome: str = "running"


class Origin(Struct):
    """The cluster: its id, the levels of its finalized features, and whether KRaft runs it; None where unknown."""

    cluster_id: str | None = None
    from_replica: int | None = None
    """The broker that batches were fetched from; None: each partition's leader."""
    features: Mapping[str, int] = field(default_factory=dict)
    kraft: bool | None = None


class Account(Struct):
    """The whole document. `topics` holds the topics' configurations by name."""

    schema: str = SCHEMA
    tool: Mapping[str, str] = field(default_factory=lambda: {"name": "kaudit", "version": __version__})
    origin: Origin = field(default_factory=Origin)
    topics: dict[str, Mapping[str, str]] = field(default_factory=dict)
    partitions: list[PartitionAccount] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def by_name(self) -> dict[str, PartitionAccount]:
        """Return the partitions by the names of their directories."""
        return {each.name: each for each in self.partitions}

    def text(self) -> str:
        """Return the document."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1).decode() + "\n"


def parse_account(data: bytes, place: str) -> Account:
    """Read capture.json; `place` is the directory's name. Raises OccupiedError for any other document."""
    try:
        account = msgspec.json.decode(data, type=Account)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OccupiedError(f"{place}/{CAPTURE_ACCOUNT} is not an account of kaudit capture: {error}") from None
    if account.schema != SCHEMA:
        raise OccupiedError(
            f"{place}/{CAPTURE_ACCOUNT} has the schema {account.schema!r}: this kaudit continues {SCHEMA}"
        )
    for name, each in account.by_name().items():
        named = parse_partition_name(name)
        if named is None or named.topic != each.topic:
            raise OccupiedError(f"{place}/{CAPTURE_ACCOUNT} names a partition {name!r}, which no topic can have")
    return account
