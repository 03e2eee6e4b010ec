"""Files that no name of a broker's explains, sorted by what they hold."""

from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET, base_offset_of
from kaudit.source.content import HEAD_BYTES, Content, Recognised
from kaudit.source.file_kinds import leftover_kind
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import EXPECTED, ApplicationLog, Unreadable
from kaudit.source.listing import failure, heads
from kaudit.source.recognition import recognise
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

_MOST_LOOKED_AT = 1000
"""Files of one directory tree whose first bytes are read."""
_LOG_NAME = ".log"
"""In the names of logs, those that were rotated away too: server.log.2026-11-22-03, server.log.1.gz."""


class UnnamedFiles(Struct):
    """What was found. `segments` have their first batch's offset; `dumps` and `other_logs` say what they are."""

    unreadable: list[Unreadable]
    skipped: list[Unreadable]
    segments: list[tuple[Uri, FileStatus, int]] = field(default_factory=list)
    texts: list[tuple[Uri, FileStatus]] = field(default_factory=list)
    logs: list[ApplicationLog] = field(default_factory=list)
    other_logs: list[Unreadable] = field(default_factory=list)
    dumps: list[Unreadable] = field(default_factory=list)

    def take_named(self, path: Uri, entry: FileStatus) -> None:
        """Sort a file that was given by name; `skipped` says why it is none that can be audited."""
        left = leftover_kind(path.name)
        if left is not None:
            self.skipped.append(Unreadable(str(path), f"left behind by a broker ({left})"))
            return
        (head,) = heads([path], HEAD_BYTES)
        if isinstance(head, OSError):
            self.unreadable.append(Unreadable(str(path), failure(head)))
            return
        what = recognise(path.name, head)
        if what.content is Content.TEXT:
            self.logs.append(ApplicationLog(str(path), what.origins))
        elif what.content is Content.RECORDS:
            self.skipped.append(Unreadable(str(path), what.detail))
        elif not self._take(path, entry, what, head):
            self.skipped.append(Unreadable(str(path), f"no segment file but {what.detail}; {EXPECTED}"))

    def take_members(self, paths: Sequence[Uri], *, alone: bool) -> None:
        """Sort files of a directory that was given. `alone`: it holds no segment under a broker's names.

        Beside segments a dump of them is no other evidence, and a file of batches is not a broker's.
        """
        looked_at = paths[:_MOST_LOOKED_AT]
        for path, head in zip(looked_at, heads(looked_at, HEAD_BYTES), strict=True):
            if isinstance(head, FileNotFoundError):
                continue  # a link to nothing, or deleted meanwhile
            if isinstance(head, OSError):
                if _LOG_NAME in path.name:
                    self.unreadable.append(Unreadable(str(path), failure(head)))
                continue
            what = recognise(path.name, head)
            if what.content is Content.TEXT and _LOG_NAME in path.name:
                self.logs.append(ApplicationLog(str(path), what.origins))
            elif alone or what.content not in (Content.SEGMENT, Content.DUMP_TEXT):
                self._take(path, None, what, head)
        if len(paths) > len(looked_at):
            more = f"and {len(paths) - len(looked_at):,} more files were not looked at: no broker names its files so"
            self.skipped.append(Unreadable(str(paths[_MOST_LOOKED_AT]), more))

    def _take(self, path: Uri, entry: FileStatus | None, what: Recognised, head: bytes) -> bool:
        """Take a file for what it holds; return whether that is of any use."""
        if what.content is Content.APPLICATION_LOG:
            self.logs.append(ApplicationLog(str(path), what.origins))
        elif what.content is Content.OTHER_LOG:
            self.other_logs.append(Unreadable(str(path), f"{what.detail}: skipped"))
        elif what.content is Content.RECORDS:
            self.dumps.append(Unreadable(str(path), what.detail))
        elif what.content in (Content.SEGMENT, Content.DUMP_TEXT):
            status = entry or filesystem(path).status(path)
            if what.content is Content.DUMP_TEXT:
                self.texts.append((path, status))
            else:
                # a legacy wrapper names its last offset: the offsets before it need not be missing
                first = max(base_offset_of(head), 0) if head[MAGIC_OFFSET] == CURRENT_MAGIC else 0
                self.segments.append((path, status, first))
        else:
            return False
        return True
