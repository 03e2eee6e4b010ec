"""Committed offsets of a group on the source as offsets of the target, for `kafka-consumer-groups.sh --reset-offsets --from-file`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from kaudit.audits.coordinator.commit_history import CommitHistory
from kaudit.audits.coordinator.group_log import GroupLogReader
from kaudit.model.internal_topics import GROUPS
from kaudit.model.ledger import MappedRange, RepeatedRange, TopicLedger, mapped_ranges
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import PartitionDirectory, furthest_replicas


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
    for directory in furthest_replicas(directories, (GROUPS,)):
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

    A group that has read all that both have goes on after the last of these. Records that were mirrored again begin at their last copy if
    every record that the group has not read follows it, as where a mirror went back and copied all from there once more. Where a
    partition has the records of several ones of the source, the lowest offset counts: nothing is left out, and some may be read again.
    """
    for ledger in ledgers:
        lowest: dict[tuple[str, int], int] = {}
        for commit in commits:
            if commit.topic == ledger.source:
                for partition, offset in _of_commit(ledger, commit):
                    key = commit.group, partition
                    lowest[key] = min(offset, lowest.get(key, offset))
        for (group, partition), offset in sorted(lowest.items()):
            yield GroupOffset(group, ledger.target, partition, offset)


def read_again(ledgers: Iterable[TopicLedger], offsets: Sequence[GroupOffset]) -> Iterator[tuple[GroupOffset, int]]:
    """Yield the offsets from which on a group is given records that the target has several times, and how many of these."""
    for ledger in ledgers:
        for offset in offsets:
            own = (each for each in ledger.repeated_ranges if each.partition == offset.partition)
            records = sum(min(each.records, max(each.last - offset.offset + 1, 0)) for each in own)
            if offset.topic == ledger.target and records:
                yield offset, records


class _Again(NamedTuple):
    """Records of the source, offsets `first` to `last`, that a target's partition has again from `target` on, one after the other."""

    first: int
    last: int
    target: int


def _of_commit(ledger: TopicLedger, commit: GroupOffset) -> Iterator[tuple[int, int]]:
    """Yield the partitions of the target that have records of the commit's partition, and the offset in each."""
    following: dict[int, tuple[int, int]] = {}
    ended: set[int] = set()
    for mapped in _mapped(ledger, commit):
        if mapped.target_partition not in ended:
            following[mapped.target_partition] = _first_unread(mapped, commit.offset)
            if mapped.source_last_offset >= commit.offset:
                ended.add(mapped.target_partition)
    for partition, (unread, first_copy) in following.items():
        again = _again(ledger, commit, partition)
        if partition not in ended:  # it has read them all, and those that are there again
            yield partition, max([first_copy, *(each.target + each.last - each.first + 1 for each in again)])
            continue
        last_copies = [each.target + unread - each.first for each in again if each.first <= unread <= each.last]
        unread_ranges = (each for each in _mapped(ledger, commit) if each.target_partition == partition)
        follow = last_copies and _all_follow(max(last_copies), unread, unread_ranges, again)
        yield partition, max(last_copies) if follow else first_copy


def _again(ledger: TopicLedger, commit: GroupOffset, partition: int) -> list[_Again]:
    """Return the records that are there again without others between them, in pieces without others in the source either."""
    waiting = sorted(
        (
            each
            for each in ledger.repeated_ranges
            if (each.source_partition, each.partition) == (commit.partition, partition)
            and each.records == each.last - each.first + 1
        ),
        key=lambda each: each.source_first_offset,
        reverse=True,
    )
    begun: list[tuple[RepeatedRange, list[_Again]]] = []
    whole: list[_Again] = []
    for mapped in _mapped(ledger, commit):
        while waiting and waiting[-1].source_first_offset <= mapped.source_last_offset:
            begun.append((waiting.pop(), []))
        for each, pieces in begun if mapped.target_partition == partition else ():
            first = max(each.source_first_offset, mapped.source_first_offset)
            last = min(each.source_last_offset, mapped.source_last_offset)
            if first <= last:
                pieces.append(_Again(first, last, each.first + sum(one.last - one.first + 1 for one in pieces)))
        for each, pieces in begun:
            if each.source_last_offset <= mapped.source_last_offset:
                # the records in a row are those of the source in a row
                whole += pieces if sum(one.last - one.first + 1 for one in pieces) == each.records else []
        begun = [one for one in begun if one[0].source_last_offset > mapped.source_last_offset]
    return whole


def _mapped(ledger: TopicLedger, commit: GroupOffset) -> Iterator[MappedRange]:
    return (each for each in mapped_ranges(ledger.map_file) if each.source_partition == commit.partition)


def _all_follow(start: int, unread: int, mapped: Iterable[MappedRange], again: Sequence[_Again]) -> bool:
    """Return whether every record of the source from `unread` on has a copy in the target at `start` or after it."""
    copies = sorted((max(each.first, each.first + start - each.target), each.last) for each in again)
    for each in mapped:
        first = max(each.source_first_offset, unread)
        last = min(each.source_last_offset, each.source_first_offset + start - 1 - each.target_first_offset)
        for begin, end in copies:
            if begin <= first:
                first = max(first, end + 1)
        if first <= last:
            return False
    return True


def _first_unread(mapped: MappedRange, offset: int) -> tuple[int, int]:
    """Return the source's and the target's offset of the first record of a range from `offset` on; those after its end where it has none."""
    if offset > mapped.source_last_offset:
        return mapped.source_last_offset + 1, mapped.target_last_offset + 1
    first = max(offset, mapped.source_first_offset)
    return first, mapped.target_first_offset + first - mapped.source_first_offset


def offsets_file(offsets: Iterable[GroupOffset], *, with_group: bool) -> Iterator[str]:
    """Yield the lines of the file: topic, partition, offset, with the group before them if there are several (ConsumerGroupCommand's CsvUtils)."""
    for each in offsets:
        lead = f"{_quoted(each.group)}," if with_group else ""
        yield f"{lead}{each.topic},{each.partition},{each.offset}\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text
