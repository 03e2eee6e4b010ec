"""Consumer groups as `kaudit groups` lists them: their members, and what they have committed against the logs given."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from kaudit.audits.coordinator.commit_history import MOST_TAKEN, CommitHistory
from kaudit.audits.coordinator.group_log import GroupLogReader
from kaudit.audits.coordinator.group_members import Group, GroupMembers
from kaudit.model.group_commits import CommittedSteps
from kaudit.model.grouping import grouped
from kaudit.model.internal_topics import GROUPS
from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.reading.log_tail import end_of
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.layout import Layout, PartitionDirectory, furthest_replicas
from kaudit.source.schemes import open_segment

Row = dict[str, object]
OF_ONE_GROUP = ("commit", "generation")
"""Rows that are listed of one group, or drawn."""
_Bounds = tuple[int, int]
"""Log start offset, and log end offset (exclusive)."""


class GroupListing(Struct):
    """The rows of groups, in the order of their names; `not_checked`: what could not be read, and what compaction hides."""

    inputs: Sequence[str]
    rows: list[Row] = field(default_factory=list)
    not_checked: list[NotAudited] = field(default_factory=list)
    incomplete: bool = False


class GroupTask(Struct, frozen=True):
    """A partition of __consumer_offsets to read; the bounds of the logs, and the topics' names by id; `group`: the one that is listed, None: all.

    `commits`: each commit is listed, and each change of the group.
    """

    directory: PartitionDirectory
    bounds: Mapping[tuple[str, int], _Bounds]
    topic_names: Mapping[str, str]
    group: str | None
    commits: bool

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.directory.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The directory that is read."""
        return (self.directory,)


ListedGroups = tuple[Sequence[tuple[str, bytes]], Sequence[NotAudited]]
"""What one partition of __consumer_offsets shows: groups with their rows as JSON, and what of it is not known."""
ReadGroups = Callable[[Sequence[GroupTask]], Iterable[ListedGroups]]
"""Does each task by `list_partition`, in order, in any process."""


def list_groups(options: ScanOptions, group: str | None, read: ReadGroups, *, commits: bool) -> GroupListing:
    """Read `__consumer_offsets` and the ends of the logs that groups read; of one group, if given.

    `commits`: with every commit and every change of a group.

    Raises:
        NothingToAuditError: there is no segment; UsageError, UnreadableInputError: as find_input.

    """
    layout, reads = find_input(options), FailedReads(open_segment)
    listing = GroupListing(options.given)
    logs = furthest_replicas(layout.everything, (GROUPS,))
    if not logs:
        listing.not_checked.append(NotAudited(GROUPS, "not among the inputs: nothing is known of groups"))
    bounds = _bounds(layout, reads)
    names = {directory.topic_id: directory.topic for directory in layout.everything if directory.topic_id is not None}
    answers = list(read([GroupTask(log, bounds, names, group, commits) for log in logs])) if logs else []
    found = sorted(chain.from_iterable(groups for groups, _ in answers))
    listing.rows = [row for _, rows in found for row in msgspec.json.decode(rows, type=list[Row])]
    listing.not_checked += chain.from_iterable(notes for _, notes in answers)
    listing.not_checked += [
        NotAudited(entry.path, entry.reason, unreadable=True) for entry in (*layout.unreadable, *reads.unreadable)
    ]
    listing.incomplete = any(note.unreadable for note in listing.not_checked)
    return listing


def list_partition(task: GroupTask, options: ScanOptions, open_source: OpenSource) -> ListedGroups:  # noqa: ARG001 - as jobs are
    """Read one partition of __consumer_offsets, in any process."""
    reads, log = FailedReads(open_source), task.directory
    reader, members = GroupLogReader(reads), GroupMembers(topic_names=dict(task.topic_names))
    history = CommitHistory(members, of_group=task.group, keeps_commits=task.commits)
    reader.follow(log, [history])
    groups = [
        (name, msgspec.json.encode(rows))
        for name, rows in _of_groups(history, task.bounds)
        if task.group in (None, name)
    ]
    notes = [NotAudited(log.name, text) for text in reader.unreadable]
    if history.missing:
        text = f"{history.missing:,} offsets up to {history.last_missing} are compacted away, and what was in them is not known"
        notes.append(NotAudited(log.name, text))
    if history.not_followed or len(history.taken) == MOST_TAKEN:
        notes.append(NotAudited(log.name, "more commits than are listed"))
    notes += [NotAudited(entry.path, entry.reason, unreadable=True) for entry in reads.unreadable]
    return groups, notes


def _of_groups(history: CommitHistory, bounds: Mapping[tuple[str, int], _Bounds]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each group: itself, its members, its offsets, its commits if they were kept, its steps."""
    offsets: dict[str, list[Row]] = {}
    steps = grouped((steps_of.group, steps_of) for steps_of in history.steps())
    back = {(one.group, one.topic, one.partition): one for each in steps.values() for one in each}
    for newest in history.newest():
        name, place = newest.committed.group, (newest.topic, newest.partition)
        start, end = bounds.get(place, (None, None))
        stepped = back.get((name, *place))
        offsets.setdefault(name, []).append(
            {
                "row": "offset",
                "group": name,
                "topic": newest.topic,
                "partition": newest.partition,
                "committed": newest.committed.offset,
                "leader_epoch": newest.committed.leader_epoch,
                "timestamp": newest.timestamp,
                "offset": newest.offset,
                "log_start_offset": start,
                "log_end_offset": end,
                "lag": None if end is None else max(end - newest.committed.offset, 0),
                "member_id": None if newest.owner is None else newest.owner.member_id,
                "steps": 0 if stepped is None else sum(each.times for each in stepped.sums.values()),
            }
        )
    commits = sorted(chain(_commits(history), _generations(history)), key=lambda row: int(str(row["offset"])))
    for name in {*offsets, *steps, *history.members.groups}:
        group = history.members.groups.get(name, Group())
        own = sorted(offsets.get(name, ()), key=lambda row: (str(row["topic"]), int(str(row["partition"]))))
        own_steps = steps.get(name, [])
        lags = [int(str(row["lag"])) for row in own if row["lag"] is not None]
        yield (
            name,
            [
                {
                    "row": "group",
                    "group": name,
                    "generation": group.generation if group.seen else None,
                    "members": len(group.members) if group.seen else None,
                    "partitions": len(own),
                    "lag": sum(lags) if lags else None,
                    "steps": sum(own.times for each in own_steps for own in each.sums.values()),
                },
                *(
                    {
                        "row": "member",
                        "group": name,
                        "member_id": member_id,
                        "client_id": member.client_id,
                        "host": member.client_host,
                        "partitions": sum(owner == member_id for owner in group.owners.values()),
                    }
                    for member_id, member in sorted(group.members.items())
                ),
                *own,
                *(row for row in commits if row["group"] == name),
                *_steps(own_steps),
            ],
        )


def _generations(history: CommitHistory) -> Iterator[Row]:
    for each in history.generations:
        yield {"row": "generation", **asdict(each)}


def _commits(history: CommitHistory) -> Iterator[Row]:
    for commit, by in history.taken:
        name, topic, partition = commit.key
        yield {
            "row": "commit",
            "group": name,
            "topic": topic,
            "partition": partition,
            "committed": commit.committed,
            "offset": commit.offset,
            "timestamp": commit.timestamp,
            "producer_id": by.producer_id,
            "producer_epoch": by.producer_epoch,
            "generation": by.generation,
            "member_id": by.member_id,
        }


def _steps(found: Iterable[CommittedSteps]) -> Iterator[Row]:
    for each in found:
        for step in each.steps:
            yield {
                "row": "step",
                "group": each.group,
                "topic": each.topic,
                "partition": each.partition,
                "kind": step.kind.value,
                "committed_before": step.committed_before,
                "committed": step.committed,
                "offset": step.offset,
                "timestamp": step.timestamp,
                "producer_id": step.by.producer_id,
                "generation": step.by.generation,
                "member_id": step.by.member_id,
                "before_producer_id": step.before.producer_id,
                "before_member_id": step.before.member_id,
            }


def _bounds(layout: Layout, reads: FailedReads) -> dict[tuple[str, int], _Bounds]:
    """Return the least start and the greatest end of the copies of each partition that can be read."""
    found: dict[tuple[str, int], _Bounds] = {}
    for directory in layout.everything:
        end = _end_of(directory, reads)
        if end is not None:
            place = directory.topic, directory.partition
            start, known = found.get(place, (directory.first_readable_offset, end))
            found[place] = min(start, directory.first_readable_offset), max(end, known)
    return found


def _end_of(directory: PartitionDirectory, reads: FailedReads) -> int | None:
    if not directory.segments or directory.topic == GROUPS:
        return None
    fetched = directory.segments[-1].fetched
    try:
        return end_of(directory.segments, reads) if fetched is None else fetched.end_offset
    except OSError:
        return None  # noted by `reads`
