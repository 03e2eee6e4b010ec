"""Histories of blocks of producer ids, and which partitions go by which."""

import os
from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.model.result import NotAudited
from kaudit.replay.allocation.coverage import Coverage
from kaudit.replay.allocation.history import BlockHistory, combine
from kaudit.replay.allocation.rules import Step, is_complete, next_block, replay


class Told(Struct):
    """What one source tells. `cluster` is the id of its cluster, empty where unknown; `extent` as in MetadataLog."""

    origin: str
    history: BlockHistory = field(default_factory=BlockHistory)
    cluster: str = ""
    extent: tuple[int, int] | None = None
    notes: list[NotAudited] = field(default_factory=list)


class Blocks(Struct, frozen=True):
    """One cluster's blocks. `origin` names the sources; `following` is the block the next broker will get."""

    origin: str
    history: BlockHistory
    steps: list[Step]
    coverage: Coverage
    complete: bool
    following: tuple[int, int] | None


class BlockBook(Struct):
    """All histories, and who goes by which. `notes` tell what was not read, or not used, and why."""

    books: list[Blocks] = field(default_factory=list)
    notes: list[NotAudited] = field(default_factory=list)
    _by_log_dir: dict[str, int] = field(default_factory=dict)
    _for_all: bool = False

    def of(self, log_dir: str) -> Blocks | None:
        """Return the history that partitions in this log directory go by, if there is one."""
        if self._for_all:
            return self.books[0] if self.books else None
        number = self._by_log_dir.get(os.path.abspath(log_dir))  # noqa: PTH100 - keeps symbolic links
        return self.books[number] if number is not None else None

    def apply(self, told: Sequence[Told], log_dirs: Sequence[str] | None) -> None:
        """Let these log directories (None: all) go by what these sources tell together."""
        history = combine([source.history for source in told])
        if not history.entries:
            return
        steps = replay(history)
        origin = ", ".join(dict.fromkeys(source.origin for source in told if source.history.entries))
        blocks = Blocks(origin, history, steps, Coverage(steps), is_complete(steps), next_block(history))
        if log_dirs is None:
            self._for_all = True
        else:
            self._by_log_dir.update((os.path.abspath(place), len(self.books)) for place in log_dirs)  # noqa: PTH100
        self.books.append(blocks)
