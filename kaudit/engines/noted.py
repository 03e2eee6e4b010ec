"""Work on records that lie in files, noted one by one, so that a run that was interrupted does not do it again."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from kaudit.audits.records.spill import Spill, sizes_written
from kaudit.engines.engine import PartitionTask
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory

_SUFFIX = ".note"
_Result = TypeVar("_Result")


class NotedTask(Struct, frozen=True):
    """The `number`th work of a kind, what does it, where that is noted, and the rows that nobody needs once it is: of these numbers."""

    directory: str
    kind: str
    number: int
    work: PartitionTask
    job: Callable[..., Any]
    spent: Sequence[tuple[Spill, int]] = ()

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.work.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """What is read of the log."""
        return self.work.directories


class _Note(Struct, frozen=True):
    """The packed result of some work, the bytes of all files of the process that did it, when it had, and which files' rows are spent."""

    result: bytes
    sizes: dict[str, int]
    spent: list[str]


def do_noted(task: NotedTask, options: ScanOptions, open_source: OpenSource) -> Any:  # noqa: ANN401 - what the job returns
    """Do some work, note it, and remove the rows that are spent then."""
    result = task.job(task.work, options, open_source)
    directory = Path(task.directory)
    note = directory / f"{task.kind}-{task.number}{_SUFFIX}"
    unfinished = note.with_suffix(".unfinished")
    spent = [f"{spill.name}.{number}" for spill, number in task.spent]
    unfinished.write_bytes(pack(_Note(pack(result), sizes_written(directory), spent)))
    unfinished.rename(note)
    for spill, number in task.spent:
        spill.remove(number)
    return result


class Notes:
    """The notes in a directory that runs before this one left; what work wrote that is not noted is cut off.

    There are none where a file lacks rows that nobody had spent, as of a run that had begun to use up what all work left.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found: dict[str, _Note] = {}
        try:
            for path in directory.glob(f"*{_SUFFIX}"):
                self._found[path.name] = unpack(path.read_bytes(), _Note)
        except ValueError:
            self._found = {}
        sizes = self._sizes()
        present = {path.name: path for path in directory.iterdir()}
        if any(name not in present or present[name].stat().st_size < size for name, size in sizes.items()):
            self._found, sizes = {}, {}
        for name, path in present.items():
            if name in sizes:
                with path.open("ab") as file:
                    file.truncate(sizes[name])
            elif name not in self._found:
                path.unlink()

    def _sizes(self) -> dict[str, int]:
        spent = {file for note in self._found.values() for file in note.spent}
        sizes: dict[str, int] = {}
        for note in self._found.values():
            for name, size in note.sizes.items():
                if name.rpartition(".")[0] not in spent:
                    sizes[name] = max(size, sizes.get(name, 0))
        return sizes

    def results(self, kind: str, of: type[_Result]) -> dict[int, _Result]:
        """Return the results of noted work of a kind, by its number."""
        names = ((name.removesuffix(_SUFFIX).rpartition("-"), note) for name, note in self._found.items())
        return {int(number): unpack(note.result, of) for (own, _, number), note in names if own == kind}

    def forget(self) -> None:
        """Remove all of the runs before this one."""
        self._found = {}
        for path in self._directory.iterdir():
            path.unlink()


def in_order(found: dict[int, _Result], more: Iterable[tuple[int, _Result]]) -> list[_Result]:
    """Return what was noted and what was done now, by number."""
    every = {**found, **dict(more)}
    return [every[number] for number in sorted(every)]
