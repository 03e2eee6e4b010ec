"""What became of each record of a source topic, by the list of what a history wrote: no file is read."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.mirrors.histories import History
from tests.mirrors.log import Placed, Record

Place = tuple[int, int]
"""(partition, offset)."""

NOWHERE = 1 << 62


@dataclass
class Truth:
    """Source and target records by what became of them."""

    missing: set[Place] = field(default_factory=set)
    """Source records without a copy."""
    beyond: set[Place] = field(default_factory=set)
    """Source records after the last one that the mirror has, of partitions of which it has one."""
    before: set[Place] = field(default_factory=set)
    """Source records whose copies the target has deleted with its log start, or may have."""
    superseded: set[Place] = field(default_factory=set)
    """Source records whose copies the target's cleaner has removed, or may have."""
    copies: dict[Place, list[Place]] = field(default_factory=dict)
    """Target places of each source record that is there, in the order of the target."""
    added: dict[Place, Place] = field(default_factory=dict)
    """Target records which the source never had, and where the first of their identity is."""
    outlived: set[Place] = field(default_factory=set)
    """Target records which the source had, and has deleted or compacted away."""

    @property
    def repeated(self) -> dict[Place, list[Place]]:
        """Those which are there more than once."""
        return {place: copies for place, copies in self.copies.items() if len(copies) > 1}


def truth(history: History) -> Truth:
    """Say what became of each record that a consumer of the source, and of the target, can read."""
    sides = _Sides(history)
    result = Truth()
    for partition, rows in enumerate(sides.source):
        sides.judge_source(partition, rows, result)
    for partition, rows in enumerate(sides.target):
        sides.judge_target(partition, rows, result)
    return result


class _Sides:
    """Both sides of a history as consumers of its isolation level read them, and by identity as they were written."""

    def __init__(self, history: History) -> None:
        self.settings = history.settings
        self.source, self.target = (
            [log.visible(committed=self.settings.committed) for log in logs]
            for logs in (history.source, history.target)
        )
        # a cleaner whose checkpoint is 0 has removed nothing
        self.source_cleaned, self.target_cleaned = (
            any(log.cleaned for log in logs) for logs in (history.source, history.target)
        )
        self.target_removed = any(log.start for log in history.target)
        self.written = tuple(self._places(rows) for rows in history.written)
        self.places_in_source, self.copies = self._places(self.source), self._places(self.target)

    def identity(self, record: Record) -> Hashable:
        """What is compared: all but the number, which is in no byte, and the timestamp where it says nothing."""
        return record._replace(number=0, timestamp=record.timestamp if self.settings.with_timestamp else 0)

    def _places(self, rows: Sequence[Sequence[Placed]]) -> dict[Hashable, list[Place]]:
        found: dict[Hashable, list[Place]] = defaultdict(list)
        for partition, each in enumerate(rows):
            for offset, record in each:
                found[self.identity(record)].append((partition, offset))
        return found

    def judge_source(self, partition: int, rows: Sequence[Placed], result: Truth) -> None:
        """Say what became of the records of a source partition."""
        matched = [offset for offset, record in rows if self.identity(record) in self.copies]
        begin, end = self._begin(partition), matched[-1] if matched else NOWHERE
        for offset, record in rows:
            place, same = (partition, offset), self.identity(record)
            if same in self.copies:
                # of equal ones in several partitions that with the source's number counts as the first
                result.copies[place] = sorted(self.copies[same], key=lambda copy: (copy[0] != partition, copy))
            elif offset > end:
                result.beyond.add(place)
            elif offset < begin:
                result.before.add(place)
            elif self.target_cleaned and self._superseded(place, record, rows, end, self.copies):
                result.superseded.add(place)
            else:
                result.missing.add(place)

    def judge_target(self, partition: int, rows: Sequence[Placed], result: Truth) -> None:
        """Say of the records of a target partition that the source does not have whether it had them, or may have had."""
        there = self.places_in_source
        known = [offset for offset, record in rows if self.identity(record) in there]
        for offset, record in rows:
            place, same = (partition, offset), self.identity(record)
            # nothing places a log that has no record of the other among its records
            compacted = self.source_cleaned and known
            if same in there:
                continue
            if (compacted and self._superseded(place, record, rows, known[-1], there)) or (
                same in self.written[0] and known and not compacted
            ):
                result.outlived.add(place)
            else:
                result.added[place] = self.copies[same][0]

    def _superseded(
        self, place: Place, record: Record, rows: Sequence[Placed], end: int, there: Mapping[Hashable, object]
    ) -> bool:
        """Whether a log cleaner may have removed a record: without a key, a tombstone, or followed by one of its key that is there.

        A tombstone that is not there may have been removed when it had removed what was before it.
        """
        later = [each for each in rows if each.record.key == record.key and place[1] < each.offset <= end]
        return (
            record.key is None
            or record.value is None
            or any(each.record.value is None or self.identity(each.record) in there for each in later)
        )

    def _begin(self, partition: int) -> int:
        """The source offset with which a target begins that has deleted what lies before."""
        for _, record in self.target[partition] if self.target_removed else ():
            if self.identity(record) in self.places_in_source:
                return self.places_in_source[self.identity(record)][0][1]
        return 0
