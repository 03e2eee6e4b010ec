"""A copy of log directories that can be shown to anybody: every name and every content in it is a hash, its findings are the same.

The copy has the layout of its inputs. What kaudit does not decode is not copied, and listed.
"""

import codecs
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Final

from msgspec import Struct, field

from kaudit.audits.log_events.application_logs import log_events
from kaudit.capture.directory import OccupiedError
from kaudit.capture.redacted_contents import RedactedContents
from kaudit.capture.redacted_files import NUMERIC, moved_index, redacted_file
from kaudit.capture.redacted_segments import Counts, Moves, RedactedSegment
from kaudit.formats.application_log.patterns import PROGRAMS
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.plain_text.forms import encoding_of
from kaudit.model.internal_topics import CLUSTER
from kaudit.results.log_words import redacted_line
from kaudit.results.redaction import Redactor
from kaudit.source.archives.forms import Form, form_of
from kaudit.source.bytes import ByteSource
from kaudit.source.content import HEAD_BYTES, Content
from kaudit.source.file_kinds import (
    REMOTE_INDEX_CACHE,
    PartitionName,
    copied_partition_name,
    is_broker_file,
    kind_by_name,
    leftover_kind,
    parse_partition_name,
    segment_base_offset,
)
from kaudit.source.filesystem import FileStatus, WritableFileSystem
from kaudit.source.layout import Unreadable
from kaudit.source.listing import failure
from kaudit.source.recognition import recognise
from kaudit.source.schemes import content_of, filesystem, writable_filesystem
from kaudit.source.text import pieces_of
from kaudit.source.uri import Uri

_MAX_DEPTH: Final = 12
_SIDE_FILE_BYTES: Final = 256 << 20
_LOCK: Final = ".lock"
_LINE_CHARACTERS: Final = 1 << 20
_COORDINATED: Final = ("__transaction_state", "__consumer_offsets")
_NAMED: Final = {
    "topic": "topic",
    "transactional_id": "transactional_id",
    "client_id": "client_id",
    "group": "group_id",
}
"""Names in events of logs, and the fields of results that have them."""
_MOST_NAMES: Final = 100_000
_ARCHIVE: Final = "an archive: give it as an input of its own"


class RedactedAccount(Struct):
    """What was written and what was not. `undecoded`: records of internal topics hashed as a whole, by topic; `left_out` by redacted path."""

    inputs: int = 0
    side_files: int = 0
    logs: int = 0
    counts: Counts = field(default_factory=Counts)
    undecoded: dict[str, int] = field(default_factory=dict)
    left_out: list[Unreadable] = field(default_factory=list)
    unread: list[Unreadable] = field(default_factory=list)
    """What could not be read: the copy lacks it."""


def redacted_copy(inputs: Sequence[str], target: str, redactor: Redactor) -> RedactedAccount:
    """Write a redacted copy of what lies at the inputs; return the account of it.

    Raises OccupiedError for a target that holds something, or lies in an input; UrlError; FileNotFoundError for an input that is not
    there; OSError where the target cannot be written.
    """
    root = Uri.parse(target)
    places = [Uri.parse(text) for text in inputs]
    for place in places:
        if root.absolute().lies_in(place.absolute()):
            raise OccupiedError(f"{target} lies in {place}: kaudit writes nothing beside what it reads")
    copy = _Copy(root, redactor)
    copy.require_empty()
    found = [(place, content_of(place)) for place in places]
    listed = [_File(content, filesystem(content).status(content)) for _, content in found]
    copy.learn(listed)
    for (place, _), file in zip(found, listed, strict=True):
        inner = root if len(places) == 1 else root / redactor.component(str(place.absolute()).replace("/", "-"))
        copy.take(file, inner, top=True)
    copy.take_logs()
    return copy.finished(len(places))


class _File(Struct, frozen=True):
    place: Uri
    status: FileStatus


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # Python's stub has a wider buffer
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


class _Copy:
    """One copy. Logs are written last: the names that they may hold are known by then."""

    def __init__(self, root: Uri, redactor: Redactor) -> None:
        self._root = root
        self._files: WritableFileSystem = writable_filesystem(root)
        self._redactor = redactor
        self._contents = RedactedContents(redactor)
        self._account = RedactedAccount()
        self._logs: list[tuple[_File, Uri]] = []
        self._seen: set[object] = set()

    def require_empty(self) -> None:
        try:
            held = self._files.entries(self._root)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise OccupiedError(f"{self._root} is not a directory") from None
        if held:
            raise OccupiedError(f"{self._root} holds {held[0].name}: a redacted copy is written into a new directory")

    def finished(self, inputs: int) -> RedactedAccount:
        self._account.inputs = inputs
        self._account.undecoded = dict(sorted(self._contents.undecoded.items()))
        return self._account

    # -- names ---------------------------------------------------------------------------------------------------------
    def learn(self, files: Sequence[_File]) -> None:
        """Note the topics that directories are named after, and how many partitions coordinators' topics have."""
        names = [name for file in files for name in self._partitions(file, 0)]
        self._redactor.learn({"topic": sorted({name.topic for name in names})})
        counts = [len({name.partition for name in names if name.topic == topic}) for topic in _COORDINATED]
        self._redactor.partitions = sorted({*self._redactor.partitions, *filter(None, counts)})

    def _partitions(self, file: _File, depth: int) -> Iterator[PartitionName]:
        name = _partition_of(file.place.name)
        if name is not None:
            yield name
        elif file.status.is_directory and depth < _MAX_DEPTH:
            for entry in self._entries(file.place):
                if entry.status.is_directory:
                    yield from self._partitions(entry, depth + 1)

    def _entries(self, place: Uri) -> list[_File]:
        try:
            return [_File(place / entry.name, entry) for entry in filesystem(place).entries(place)]
        except OSError as error:
            self._unread(place, error)
            return []

    def _shown(self, place: Uri) -> str:
        return self._redactor.path(str(place))

    def _unread(self, place: Uri, error: OSError) -> None:
        entry = Unreadable(self._shown(place), failure(error))
        if entry not in self._account.unread:
            self._account.unread.append(entry)

    def _component(self, name: str) -> str:
        """Return what stands for a file's or a directory's name; a copy of a partition stays one."""
        if name == REMOTE_INDEX_CACHE:
            return name
        copied = _partition_of(name)
        if copied is not None and parse_partition_name(name) is None:
            return f"{self._redactor.topic(copied.topic)}-{copied.partition}.copy"
        return self._redactor.component(name)

    # -- files ---------------------------------------------------------------------------------------------------------
    def take(self, file: _File, target: Uri, *, top: bool = False, depth: int = 0) -> None:
        """Copy a file or a directory; `target` is where a directory's files go, and the directory of a file."""
        if not file.status.is_directory:
            parent = _partition_of(file.place.parent.name)
            inner = target / self._component(file.place.parent.name) if parent is not None else target
            self._take_file(file, inner, parent, {})
            return
        if top and _partition_of(file.place.name) is not None:
            target /= self._component(file.place.name)
        try:
            identity = filesystem(file.place).identity(file.place)
        except OSError as error:
            self._unread(file.place, error)
            return
        if identity in self._seen or depth > _MAX_DEPTH:
            self._leave(file.place, "a link to a directory that is copied" if identity in self._seen else "too deep")
            return
        self._seen.add(identity)
        partition = _partition_of(file.place.name)
        entries = self._entries(file.place)
        moves: dict[str, Moves] = {}
        if partition is not None or file.place.name == REMOTE_INDEX_CACHE:
            self._files.make_directory(target)  # it may be empty
        # what points into a segment is written after it
        for entry in sorted(
            entries, key=lambda each: (each.status.is_directory, segment_base_offset(each.status.name) is None)
        ):
            if entry.status.is_directory:
                self.take(entry, target / self._component(entry.status.name), depth=depth + 1)
            else:
                self._take_file(entry, target, partition, moves)

    def _take_file(self, file: _File, target: Uri, partition: PartitionName | None, moves: dict[str, Moves]) -> None:
        try:
            self._copy_file(file, target, partition, moves)
        except OSError as error:
            if not (error.filename or "").startswith(str(self._root.path)):
                self._unread(file.place, error)
                return
            raise

    def _copy_file(self, file: _File, target: Uri, partition: PartitionName | None, moves: dict[str, Moves]) -> None:
        name = file.place.name
        plain = name.removesuffix(f".{leftover_kind(name)}").removesuffix(".tmp")
        kind, base = kind_by_name(plain)
        if name == _LOCK:
            return
        if kind.holds_batches:
            topic = CLUSTER if base is None or partition is None else partition.topic
            moves[name] = self._segment(file, target / name, topic if partition is None else partition.topic)
            return
        if kind.name in NUMERIC:
            data = filesystem(file.place).read_start(file.place, _SIDE_FILE_BYTES)
            moved = moves.get(f"{base:020d}.log") if kind.name == "index" else None
            self._write(file, target / name, [moved_index(data, moved) if moved else data])
            self._account.side_files += 1
            return
        known = is_broker_file(name)
        data = filesystem(file.place).read_start(file.place, _SIDE_FILE_BYTES) if known else b""
        redacted = redacted_file(plain, data, self._redactor) if known else None
        if redacted is not None:
            self._write(file, target / name, [redacted])
            self._account.side_files += 1
        else:
            self._take_unnamed(file, target)

    def _take_unnamed(self, file: _File, target: Uri) -> None:
        """Copy a file by what it holds: a log, or a segment under another name."""
        head = filesystem(file.place).read_start(file.place, HEAD_BYTES)
        form = form_of(head)
        if form is not None and form not in {Form.TAR, Form.ZIP} and form.is_read:
            file = _File(file.place.content, file.status)
            head = filesystem(file.place).read_start(file.place, HEAD_BYTES)
        what = recognise(file.place.name, head)
        place = target / f"{self._component(file.place.name)}.log"
        if what.content is Content.SEGMENT:
            self._segment(file, place.parent / self._component(file.place.name), "")
        elif what.content is Content.APPLICATION_LOG:
            self._logs.append((file, place))
        else:
            self._leave(file.place, _ARCHIVE if what.content is Content.PACKED else what.detail)

    def _leave(self, place: Uri, reason: str) -> None:
        self._account.left_out.append(Unreadable(self._shown(place), reason))

    def _segment(self, file: _File, target: Uri, topic: str) -> Moves:
        with closing(filesystem(file.place).open(file.place)) as source:
            copy = RedactedSegment(source, topic, self._contents, self._account.counts)
            self._write(file, target, copy.pieces())
            return copy.moves

    def _write(self, file: _File, target: Uri, pieces: Iterable[bytes]) -> None:
        """Write a file; a local one keeps the time of its last change, by which an audit bounds the clock."""
        self._files.make_directory(target.parent)
        self._files.put(target, io.BufferedReader(_Pieces(pieces)))
        if target.is_local:
            status = file.status if file.status.modified_ms is not None else filesystem(file.place).status(file.place)
            modified = (status.modified_ms or 0) * 1_000_000
            os.utime(target.path, ns=(modified, modified))

    # -- logs ----------------------------------------------------------------------------------------------------------
    def take_logs(self) -> None:
        """Write the logs of brokers and clients that were found, with the words of Kafka's messages alone."""
        for file, _ in self._logs:
            self._learn_log(str(file.place))
        self._redactor.learn({kind: sorted(names) for kind, names in self._contents.names.items()})
        for file, target in self._logs:
            try:
                with closing(filesystem(file.place).open(file.place)) as source:
                    self._write(file, target, self._lines(source))
                self._account.logs += 1
            except OSError as error:
                self._unread(file.place, error)

    def _learn_log(self, path: str) -> None:
        """Note what the messages of a log name; what cannot be read is said when it is copied."""
        names = self._contents.names
        with suppress(OSError):
            for origin in PROGRAMS:
                for event in log_events(path, origin, LogCounts()):
                    for attribute, kind in _NAMED.items():
                        name = getattr(event, attribute)
                        if name and len(names.setdefault(kind, set())) < _MOST_NAMES:
                            names[kind].add(name)

    def _lines(self, source: ByteSource) -> Iterator[bytes]:
        rest = ""
        decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")("replace")
        for number, piece in enumerate(pieces_of(source, 0, source.size())):
            if not number:
                encoding, mark = encoding_of(piece[:HEAD_BYTES])
                decoder = codecs.getincrementaldecoder(encoding)("replace")
            *lines, rest = (rest + decoder.decode(piece if number else piece[mark:])).split("\n")
            if len(rest) > _LINE_CHARACTERS:
                lines, rest = [*lines, rest], ""
            for line in lines:
                yield self._line(line) + b"\n"
        if rest:
            yield self._line(rest)

    def _line(self, line: str) -> bytes:
        redactor = self._redactor
        return redacted_line(redactor.text(line), lambda word: redactor.name("word", word)).encode("utf-8", "replace")


def _partition_of(name: str) -> PartitionName | None:
    """Return the partition that a directory is named after, or was before somebody copied it."""
    found = parse_partition_name(name)
    if found is None:
        copied = copied_partition_name(name)
        found = None if copied.topic == name else copied
    return found
