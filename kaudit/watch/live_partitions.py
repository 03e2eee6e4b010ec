"""Partitions of live clusters, asked about again and again: one request to each leader for the ends of its logs."""

from collections.abc import Sequence

from msgspec.structs import replace

from kaudit.errors import NothingToAuditError, UsageError
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.kafka.answers import TopicPartition
from kaudit.source.layout import FetchedRange, Layout, PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.schemes import of_brokers, open_segment


class LivePartitions:
    """The partitions under kafka:// inputs. `layout` is as of the last look; None as long as no broker answered."""

    def __init__(self, options: ScanOptions) -> None:
        """Take what to ask about; nothing is sent yet."""
        self.layout: Layout | None = None
        self.open_source: OpenSource = open_segment
        self.nothing: NothingToAuditError | None = None
        self._options = options
        self._unlisted: Sequence[Unreadable] = ()

    def look(self, *, thoroughly: bool = False) -> list[PartitionDirectory]:
        """Return the partitions that have grown since the last look, all of them at the first.

        `thoroughly`: ask for partitions, their log starts and their configuration again, too.

        Raises:
            UsageError: at the first look, a URL or what it names is wrong.

        """
        of_brokers("try_again")()
        if self.layout is None or thoroughly:
            return self._list(self.layout)
        try:
            return self._grown(self.layout)
        except OSError as error:
            return self._not_answered(self.layout, error.filename, error.strerror or str(error))

    def _list(self, before: Layout | None) -> list[PartitionDirectory]:
        try:
            layout = find_input(self._options)
        except NothingToAuditError as error:
            self.nothing = error
            return [] if before is None else self._not_answered(before, None, str(error))
        except UsageError as error:
            if before is None:
                raise
            return self._not_answered(before, None, str(error))
        known = {} if before is None else {entry.directory: entry for entry in before.partitions}
        now = {entry.directory: _going_on(known.get(entry.directory), entry) for entry in layout.partitions}
        if layout.unreadable:  # a partition without a leader is not gone
            now = {**known, **now}
        partitions = sorted(now.values(), key=lambda entry: (entry.topic, entry.partition, entry.directory))
        self._unlisted = layout.unreadable
        self.layout = replace(layout, partitions=partitions)
        return [entry for entry in partitions if entry != known.get(entry.directory)]

    def _not_answered(self, known: Layout, place: str | None, reason: str) -> list[PartitionDirectory]:
        """What is known stays, is not all there is, and the next look asks again."""
        self.layout = replace(known, unreadable=[Unreadable(place or ", ".join(self._options.paths), reason)])
        return []

    def _grown(self, layout: Layout) -> list[PartitionDirectory]:
        ends = self._ends(layout.partitions)
        grown: dict[str, PartitionDirectory] = {}
        for entry in layout.partitions:
            segment, fetched = _segment(entry)
            end = ends.get(entry.directory, fetched.end_offset)
            if end < fetched.end_offset:  # cut back, or made anew
                return self._list(layout)
            if end > fetched.end_offset:
                grown[entry.directory] = _of_range(entry, segment, replace(fetched, end_offset=end))
        partitions = [grown.get(entry.directory, entry) for entry in layout.partitions] if grown else layout.partitions
        silent = [
            Unreadable(entry.directory, "no leader says where it ends")
            for entry in layout.partitions
            if entry.directory not in ends
        ]
        self.layout = replace(layout, partitions=partitions, unreadable=[*self._unlisted, *silent])
        return list(grown.values())

    @staticmethod
    def _ends(partitions: Sequence[PartitionDirectory]) -> dict[str, int]:
        """Return the high watermark of each partition by its directory, of those whose leaders answer."""
        by_cluster: dict[tuple[str, str | None], dict[TopicPartition, str]] = {}
        for entry in partitions:
            _, place = _segment(entry)
            cluster = by_cluster.setdefault((place.servers, place.command_config), {})
            cluster[TopicPartition(entry.topic, entry.partition)] = entry.directory
        ends: dict[str, int] = {}
        for (servers, command_config), directories in by_cluster.items():
            found = of_brokers("client_of")(servers, command_config).high_watermarks(directories)
            ends |= {directories[partition]: end for partition, end in found.items() if partition in directories}
        return ends


def _segment(entry: PartitionDirectory) -> tuple[SegmentFile, FetchedRange]:
    (segment,) = entry.segments
    assert segment.fetched is not None
    return segment, segment.fetched


def _of_range(entry: PartitionDirectory, segment: SegmentFile, fetched: FetchedRange) -> PartitionDirectory:
    return replace(entry, segments=(replace(segment, fetched=fetched, size=fetched.size),))


def _going_on(before: PartitionDirectory | None, now: PartitionDirectory) -> PartitionDirectory:
    """The partition as it is now, with positions that stand for the same offsets as before, unless it was cut back."""
    if before is None:
        return now
    (old_segment, old), (_, new) = _segment(before), _segment(now)
    if new.end_offset < old.end_offset:
        return now
    fetched = replace(old, end_offset=new.end_offset, readable_from=max(new.readable_from, old.readable_from))
    return _of_range(now, old_segment, fetched)
