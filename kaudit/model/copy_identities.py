"""Whose copies of a partition are given, and where that contradicts itself."""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class LogCopy(Struct, frozen=True):
    """One copy of a partition's log and the ids beside it: of the broker and the cluster (meta.properties), of the topic.

    `name` tells the copies of a partition apart; its offsets are `start_offset` to `end_offset` (exclusive), which is None
    for an empty log; `leader_epoch` is that of its last batch, -1 without one. `directory` is its own path, in `log_dir`.
    """

    topic: str
    partition: int
    name: str
    log_dir: str
    broker_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    topic_id: str | None = None
    start_offset: int = 0
    end_offset: int | None = None
    leader_epoch: int = -1
    in_use: bool = True
    """Not in a directory that a broker has set aside."""
    directory: str = ""

    @property
    def offsets(self) -> str:
        """Its offsets in words."""
        if self.end_offset is None or self.end_offset <= self.start_offset:
            return "empty"
        return f"offsets {self.start_offset}..{self.end_offset - 1}, leader epoch {self.leader_epoch}"


class MixedClusters(Struct, frozen=True):
    """Log directories of several clusters hold the same partitions: log directories by cluster id, partitions by name."""

    log_dirs: Mapping[str, Sequence[str]]
    partitions: Sequence[str]
    same_topic_ids: bool
    """The copies of at least one of these partitions have one topic id."""


class HeldTwice(Struct, frozen=True):
    """Two log directories of one broker hold one partition; the copy with the newest leader epoch is the first."""

    copies: Sequence[LogCopy]


class SetAsideLog(Struct, frozen=True):
    """The log in a directory that a broker has set aside (`directory`, relative to its input), and which offsets it alone has.

    `alone`: first and last offset that no other copy has, None where there are none; `copies` are the copies of the partition,
    those of another topic of that name included. `removed` names where the deletion of its topic is written, None where nothing says it.
    `never_created`: the controller's log, which is there from its first record on, does not have its topic id. `twin` is another directory
    set aside that has these offsets too, and is counted.
    """

    directory: str
    log: LogCopy
    alone: tuple[int, int] | None
    copies: Sequence[LogCopy]
    removed: str | None = None
    never_created: bool = False
    twin: str | None = None


class SeveralTopicIds(Struct, frozen=True):
    """Copies of one cluster give a topic several ids; the copies by topic id."""

    topic: str
    copies: Mapping[str, Sequence[LogCopy]]


class RecreatedLog(Struct, frozen=True):
    """A partition whose topic was deleted and created again: copies of the topic before, `former_id`, hold what is deleted with it.

    The records are at `first_offset` to `end_offset` (exclusive) of the copy that holds the most; `copies` are all with records.
    """

    topic: str
    partition: int
    topic_id: str
    former_id: str
    first_offset: int
    end_offset: int
    copies: Sequence[LogCopy]
