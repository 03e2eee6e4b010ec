"""Partitions that were read into files, noted one by one, so that a run that was interrupted does not read them again."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kaudit.audits.records.reading import ReadOptions, ReadPartition, RecordTask, read_partition
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.source.layout import PartitionDirectory

_NOTE = "read-{}.note"
_USED = "used.note"


class Note(Struct, frozen=True):
    """What was read of a partition, and the bytes of all files of the process that read it, when it had."""

    read: ReadPartition
    sizes: Mapping[str, int]


class NotedTask(Struct, frozen=True):
    """A partition to read, and its place among all."""

    index: int
    records: RecordTask

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.records.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The one directory that is read."""
        return self.records.directories


def read_noted(task: NotedTask, options: ReadOptions, open_source: OpenSource) -> ReadPartition:
    """Read one partition, and note it."""
    read, spill = read_partition(task.records, options, open_source), task.records.identified
    note = Path(spill.directory, _NOTE.format(task.index))
    unfinished = note.with_suffix(".unfinished")
    unfinished.write_bytes(pack(Note(read, spill.sizes())))
    unfinished.rename(note)
    return read


def noted(directory: Path) -> dict[int, ReadPartition]:
    """Return by their places the partitions that were read into a directory, and cut off what was written of others.

    Nothing is left of a run that had begun to use up the rows, or that could not read something.
    """
    found: dict[int, Note] = {}
    try:
        for path in directory.glob(_NOTE.format("*")):
            found[int(path.name.partition("-")[2].partition(".")[0])] = unpack(path.read_bytes(), Note)
    except ValueError:
        found = {}
    if (directory / _USED).exists() or any(each.read.unreadable or each.read.removed for each in found.values()):
        found = {}
    known: dict[str, int] = {}
    for note in found.values():
        for name, size in note.sizes.items():
            known[name] = max(size, known.get(name, 0))
    notes = {_NOTE.format(index) for index in found}
    present = {path.name: path for path in directory.iterdir()}
    if any(name not in present or present[name].stat().st_size < size for name, size in known.items()):
        found, known, notes = {}, {}, set()
    for name, path in present.items():
        if name in known:
            with path.open("ab") as file:
                file.truncate(known[name])
        elif name not in notes:
            path.unlink()
    return {index: note.read for index, note in found.items()}


def in_order(found: Mapping[int, ReadPartition], read: Iterable[tuple[int, ReadPartition]]) -> list[ReadPartition]:
    """Return what was noted and what was read now, by place."""
    every = {**found, **dict(read)}
    return [every[index] for index in sorted(every)]


def use_up(directory: Path) -> None:
    """Note that the rows are used up from now on."""
    (directory / _USED).touch()
