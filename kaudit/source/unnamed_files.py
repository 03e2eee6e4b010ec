"""Files that no name of a broker's explains, sorted by what they hold; archives and compressed files by their content."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import closing

from msgspec import Struct, field

from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET, base_offset_of
from kaudit.model.limits import UNNAMED_FILES
from kaudit.source.archives.forms import Form, form_of
from kaudit.source.content import HEAD_BYTES, Content, Recognised
from kaudit.source.file_kinds import leftover_kind
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import EXPECTED, ApplicationLog, Unreadable
from kaudit.source.listing import failure, heads
from kaudit.source.recognition import first_batch, recognise
from kaudit.source.schemes import archive_at, filesystem
from kaudit.source.uri import Uri

_LOG_NAME = ".log"
"""In the names of logs, those that were rotated away too: server.log.2026-11-22-03, server.log.1.gz."""
_BESIDE = "lies beside segments and was not read; an input of its own is"


class UnnamedFiles(Struct):
    """What was found. `segments` have the offset of their first batch that is sound; `dumps` and `other_logs` say what they are."""

    unreadable: list[Unreadable]
    skipped: list[Unreadable]
    segments: list[tuple[Uri, FileStatus, int]] = field(default_factory=list)
    texts: list[tuple[Uri, FileStatus]] = field(default_factory=list)
    logs: list[ApplicationLog] = field(default_factory=list)
    other_logs: list[Unreadable] = field(default_factory=list)
    dumps: list[Unreadable] = field(default_factory=list)
    others: list[Unreadable] = field(default_factory=list)
    """Files of directories that are no evidence at all: said where there is nothing else."""

    def entered(self, place: Uri) -> tuple[Uri, FileStatus]:
        """Return what is at a place, by place and status: of an archive or a compressed file its content; what is not read of that is noted.

        Raises:
            OSError: there is nothing, or an archive that kaudit does not read.

        """
        entry = filesystem(place).status(place)
        archive = None if entry.is_directory else archive_at(place)
        if archive is None:
            return place, entry
        self.unreadable += archive.refused
        self.skipped += archive.noted
        return place.content, archive.status(place.content)

    def take_named(self, place: Uri, entry: FileStatus) -> None:
        """Sort a file that was given by name; `skipped` says why it is none that can be audited."""
        left = leftover_kind(place.name)
        if left is not None:
            self.skipped.append(Unreadable(str(place), f"left behind by a broker ({left})"))
            return
        (head,) = heads([place], HEAD_BYTES)
        if isinstance(head, OSError):
            self.unreadable.append(Unreadable(str(place), failure(head)))
            return
        what = recognise(place.name, head)
        if what.content is Content.TEXT:
            self._take_log(place, what)
        elif what.content is Content.RECORDS:
            self.skipped.append(Unreadable(str(place), what.detail))
        elif not self._take(place, entry, what, head):
            self.skipped.append(Unreadable(str(place), f"no segment file but {what.detail}; {EXPECTED}"))

    def take_members(self, paths: Sequence[Uri], *, alone: bool) -> Iterator[Uri]:
        """Sort files of a directory that was given, and yield the archives among them that are to be read too.

        `alone`: it holds no segment under a broker's names. Beside segments nothing but logs is taken: a dump of segments, or an archive
        of a log directory, most likely shows the same once more.
        """
        looked_at = paths[:UNNAMED_FILES]
        for path, head in zip(looked_at, heads(looked_at, HEAD_BYTES), strict=True):
            if isinstance(head, FileNotFoundError):
                continue  # a link to nothing, or deleted meanwhile
            try:
                if isinstance(head, OSError):
                    raise head
                if self._take_member(path, head, alone=alone):
                    yield path
            except OSError as error:
                # what a stranger may not read, or is no regular file, need not be evidence where it is not named as a log
                is_evidence = (
                    _LOG_NAME in path.name or alone or error.errno not in {errno.EACCES, errno.EPERM, errno.EINVAL}
                )
                (self.unreadable if is_evidence else self.skipped).append(Unreadable(str(path), failure(error)))
        if len(paths) > len(looked_at):
            more = f"and {len(paths) - len(looked_at):,} more files were not looked at: no broker names its files so"
            self.skipped.append(Unreadable(str(paths[UNNAMED_FILES]), more))

    def _take_member(self, path: Uri, head: bytes, *, alone: bool) -> bool:
        """Sort one file of a directory; return whether it is an archive that is to be read."""
        form = form_of(head)
        place = path
        if form is not None and form.is_read:
            head = head if form in {Form.TAR, Form.ZIP} else _content_head(path, form)
            if form_of(head) is not None:
                if not alone:
                    self.skipped.append(Unreadable(str(path), f"an archive ({form.value}) that {_BESIDE}"))
                return alone
            place = path.content
        what = recognise(place.name, head)
        if what.content is Content.TEXT and _LOG_NAME in path.name:
            what = Recognised(Content.APPLICATION_LOG, what.detail, what.origins)
        if what.content is Content.APPLICATION_LOG and place != path:
            self.entered(path)  # it may end early
        if not alone and what.content in {Content.SEGMENT, Content.DUMP_TEXT}:
            self.skipped.append(Unreadable(str(path), f"{what.detail}: it {_BESIDE}"))
        elif not self._take(place, None, what, head):
            self.others.append(Unreadable(str(path), what.detail))
        return False

    def _take(self, place: Uri, entry: FileStatus | None, what: Recognised, head: bytes) -> bool:
        """Take a file for what it holds; return whether that is of any use."""
        if what.content is Content.APPLICATION_LOG:
            self._take_log(place, what)
        elif what.content is Content.OTHER_LOG:
            self.other_logs.append(Unreadable(str(place), f"{what.detail}: skipped"))
        elif what.content is Content.RECORDS:
            self.dumps.append(Unreadable(str(place), what.detail))
        elif what.content in {Content.SEGMENT, Content.DUMP_TEXT}:
            status = entry or filesystem(place).status(place)
            if what.content is Content.DUMP_TEXT:
                self.texts.append((place, status))
            else:
                at = first_batch(head) or 0
                # a legacy wrapper names its last offset: the offsets before it need not be missing
                first = max(base_offset_of(head, at), 0) if head[at + MAGIC_OFFSET] == CURRENT_MAGIC else 0
                self.segments.append((place, status, first))
        else:
            return False
        return True

    def _take_log(self, place: Uri, what: Recognised) -> None:
        packed = place.within
        name = str(place if packed is None or packed[1] else packed[0])
        self.logs.append(ApplicationLog(str(place), name, what.origins))


def _content_head(path: Uri, form: Form) -> bytes:
    """Return the first bytes of a compressed file's content, which is not decoded further. Raises OSError where it cannot be read."""
    from kaudit.source.archives.pieces import decoder  # noqa: PLC0415 - few directories hold compressed files

    with closing(filesystem(path).open(path)) as source:
        return decoder(form, source).read(HEAD_BYTES)
