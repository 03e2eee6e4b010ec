"""Archives and compressed files as file systems: `ARCHIVE!` is what an archive holds, `ARCHIVE!/orders-0` a directory in it."""

import errno
from collections.abc import Sequence

from kaudit.model.limits import DIRECTORY_ENTRIES
from kaudit.source.archives.expanded import Expanded
from kaudit.source.archives.forms import HEAD_BYTES, Form, form_of
from kaudit.source.archives.members import Member, Members, TooManyMembersError
from kaudit.source.archives.parts import FilePart, end_of_whole_batches
from kaudit.source.archives.pieces import decoder
from kaudit.source.archives.tar import tar_members
from kaudit.source.archives.zip import ZipContent
from kaudit.source.bytes import ByteSource, read_bytes
from kaudit.source.filesystem import FileStatus, FileSystem
from kaudit.source.layout import Unreadable
from kaudit.source.uri import Uri


class ArchiveFileSystem(FileSystem):
    """What one archive holds, a directory; or one compressed file, a file. It stays open as long as it is used.

    `refused` says what is not read, `noted` what is read and unusual. `is_compressed`: it is decoded from front to
    back, by each process again.
    """

    is_remote = False

    def __init__(self, source: ByteSource, archive: Uri, held_as: FileStatus) -> None:
        form = form_of(read_bytes(source, 0, HEAD_BYTES))
        if form is None or not form.is_read:
            raise OSError(errno.EINVAL, _not_read(form), str(archive))
        self._archive = archive
        self._held_as = held_as
        self._file: Member | None = None
        self.refused: list[Unreadable] = []
        self.noted: list[Unreadable] = []
        self.is_compressed = form not in {Form.TAR, Form.ZIP}
        if self.is_compressed:
            packed_size = source.size()
            source = Expanded(decoder(form, source), packed_size, str(archive))
            form = form_of(read_bytes(source, 0, HEAD_BYTES))
            if form not in {None, Form.TAR}:
                raise OSError(
                    errno.EINVAL,
                    "an archive or a compressed file in a compressed file: unpack the outer one",
                    str(archive),
                )
        if form is not None and archive.within is not None:
            raise OSError(errno.EINVAL, "an archive in an archive: unpack the outer one", str(archive))
        members = Members(held_as.size or 0)
        try:
            self._read(source, form, members, held_as)
        except TooManyMembersError as error:
            raise OSError(errno.EFBIG, str(error), str(archive)) from None
        self._entries = members.entries
        self.refused += [Unreadable(f"{archive.content}/{name}", reason) for name, reason in members.refused()]
        self.noted += [Unreadable(f"{archive.content}/{name}", reason) for name, reason in members.noted()]

    def _read(self, source: ByteSource, form: Form | None, members: Members, held_as: FileStatus) -> None:
        problem: str | None = None
        if form is Form.ZIP:
            problem = ZipContent(source).add_to(members)
        elif form is Form.TAR:
            problem = tar_members(source, members)
        else:
            self._file = Member(source.size(), held_as.modified_ms or 0, lambda: source)
        if isinstance(source, Expanded):
            source.size()
            problem = source.problem or problem
        if self._file is not None and problem is not None:
            self._file = _whole_batches(source, self._file)
        if problem is not None:
            self.refused.append(Unreadable(str(self._archive), f"{problem}: what comes after that is not checked"))

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        path = self._inner(uri)
        if not path and self._file is not None:
            return self._status(uri.last, self._file)
        if path in self._entries:
            return FileStatus(uri.last, is_directory=True, size=0, modified_ms=0)
        return self._status(uri.last, self._member(uri, path))

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name."""
        found = self._entries.get(self._inner(uri)) if self._file is None else None
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory in the archive", str(uri))
        if len(found) > DIRECTORY_ENTRIES:
            raise OSError(errno.EFBIG, f"more than {DIRECTORY_ENTRIES} files in one directory", str(uri))
        return [
            FileStatus(name, is_directory=True)
            if member is None
            else FileStatus(name, is_directory=False)
            if member.refusal
            else self._status(name, member)
            for name, member in sorted(found.items())
        ]

    def open(self, uri: Uri) -> ByteSource:
        """Open a file for ranged reads."""
        path = self._inner(uri)
        member = self._file if self._file is not None and not path else self._member(uri, path)
        if member.refusal:
            raise OSError(errno.EACCES, member.refusal, str(uri))
        return member.open()

    def _inner(self, uri: Uri) -> str:
        return uri.path[len(self._archive.path) + 2 :]

    def _member(self, uri: Uri, path: str) -> Member:
        above, _, name = path.rpartition("/")
        found = self._entries.get(above, {}).get(name)
        if found is None:
            directory = path in self._entries
            number = errno.EISDIR if directory else errno.ENOENT
            text = "Is a directory" if directory else "no such file in the archive"
            raise OSError(number, text, str(uri))  # OSError makes a FileNotFoundError of ENOENT
        return found

    def _status(self, name: str, member: Member) -> FileStatus:
        if member.refusal:
            raise OSError(errno.EACCES, member.refusal, name)
        of_archive = self._held_as
        return FileStatus(name, False, member.size, member.modified_ms, of_archive.inode, of_archive.changed_ns)


def _whole_batches(source: ByteSource, file: Member) -> Member:
    """Return a segment that is cut off without the batch in which it ends; any other file as it is."""
    whole = end_of_whole_batches(source, 0, file.size)
    part = FilePart(source, 0, whole)
    return Member(whole, file.modified_ms, lambda: part) if whole else file


def _not_read(form: Form | None) -> str:
    if form is None:
        return "neither an archive nor a compressed file"
    return f"{form.value}: kaudit reads .tar, .zip, .gz, .bz2, .xz, .zst and .lz4; unpack it"
