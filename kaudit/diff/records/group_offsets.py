"""Committed offsets of a group on the source as offsets of the target, for `kafka-consumer-groups.sh --reset-offsets --from-file`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kaudit.audits.coordinator.commit_history import CommitHistory
from kaudit.audits.coordinator.group_log import GroupLogReader
from kaudit.model.ledger import MappedRange, TopicLedger, mapped_ranges
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.group_logs import furthest_replicas
from kaudit.source.layout import PartitionDirectory


class GroupOffset(Struct, frozen=True, order=True):
    """The offset from which a group goes on with a partition."""

    group: str
    topic: str
    partition: int
    offset: int


def committed_offsets(
    directories: Iterable[PartitionDirectory], groups: Sequence[str], open_source: OpenSource
) -> tuple[list[GroupOffset], list[str]]:
    """Return what the groups committed last, and what could not be read of __consumer_offsets."""
    reader, found = GroupLogReader(open_source), []
    for directory in furthest_replicas(directories):
        history = CommitHistory()
        reader.follow(directory, [history])
        found += [
            GroupOffset(commit.committed.group, commit.topic, commit.partition, commit.committed.offset)
            for commit in history.newest()
            if commit.committed.group in groups
        ]
    return found, [*reader.unreadable, *(f"{each.path}: {each.reason}" for each in reader.failed)]


def translated(ledgers: Iterable[TopicLedger], commits: Sequence[GroupOffset]) -> Iterator[GroupOffset]:
    """Yield where the groups go on in the target: at the first record there that they have not read, of each partition with records of theirs.

    A group that has read all that both have goes on after the last of these. Where a partition has the records of several ones of the
    source, the lowest offset counts: nothing is left out, and some may be read again.
    """
    for ledger in ledgers:
        own = [commit for commit in commits if commit.topic == ledger.source]
        if own:
            yield from _of_topic(ledger, own)


def _of_topic(ledger: TopicLedger, commits: Sequence[GroupOffset]) -> Iterator[GroupOffset]:
    following: dict[tuple[str, int, int], int] = {}
    by_partition: Mapping[int, list[GroupOffset]] = {}
    by_partition = {
        commit.partition: [each for each in commits if each.partition == commit.partition] for commit in commits
    }
    ended: set[tuple[str, int, int]] = set()
    for mapped in mapped_ranges(ledger.map_file):
        for commit in by_partition.get(mapped.source_partition, ()):
            place = commit.group, mapped.source_partition, mapped.target_partition
            if place in ended:
                continue
            following[place] = _first_unread(mapped, commit.offset)
            if mapped.source_last_offset >= commit.offset:
                ended.add(place)
    lowest: dict[tuple[str, int], int] = {}
    for (group, _, partition), offset in following.items():
        lowest[group, partition] = min(offset, lowest.get((group, partition), offset))
    for (group, partition), offset in sorted(lowest.items()):
        yield GroupOffset(group, ledger.target, partition, offset)


def _first_unread(mapped: MappedRange, offset: int) -> int:
    """Return the target's offset of the first record of a range from `offset` on; the one after its end where it has none."""
    if offset > mapped.source_last_offset:
        return mapped.target_last_offset + 1
    return mapped.target_first_offset + max(offset - mapped.source_first_offset, 0)


def offsets_file(offsets: Iterable[GroupOffset], *, with_group: bool) -> Iterator[str]:
    """Yield the lines of the file: topic, partition, offset, with the group before them if there are several (ConsumerGroupCommand's CsvUtils)."""
    for each in offsets:
        lead = f"{_quoted(each.group)}," if with_group else ""
        yield f"{lead}{each.topic},{each.partition},{each.offset}\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text
