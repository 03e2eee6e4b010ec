"""Histories of blocks of producer ids, and which partitions go by which."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.model.result import NotAudited

if TYPE_CHECKING:  # few logs come with a history: 2 ms less for the others
    from kaudit.analysis.producer_ids.source_blocks import Blocks, BlockSource


class BlockBook(Struct):
    """All histories, and who goes by which. `notes` tell what was not read, or not used, and why."""

    books: "list[Blocks]" = field(default_factory=list)
    notes: list[NotAudited] = field(default_factory=list)
    _by_log_dir: dict[str, int] = field(default_factory=dict)
    _for_all: bool = False

    def of(self, log_dir: str) -> "Blocks | None":
        """Return the history that partitions in this log directory go by, if there is one."""
        if self._for_all:
            return self.books[0] if self.books else None
        number = self._by_log_dir.get(os.path.abspath(log_dir))  # noqa: PTH100 - keeps symbolic links
        return self.books[number] if number is not None else None

    def apply(self, told: "Sequence[BlockSource]", log_dirs: Sequence[str] | None) -> None:
        """Let these log directories (None: all) go by what these sources tell together."""
        from kaudit.analysis.producer_ids.source_blocks import together  # noqa: PLC0415

        blocks = together(told)
        if blocks is None:
            return
        if log_dirs is None:
            self._for_all = True
        else:
            self._by_log_dir.update((os.path.abspath(place), len(self.books)) for place in log_dirs)  # noqa: PTH100
        self.books.append(blocks)
