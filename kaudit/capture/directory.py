"""The directory of a capture, local or in a store. Segments appear in it only with whole batches.

What grows lies beside the partitions, where no scan looks: in the capture itself if that is local, else in a temporary
directory. It is renamed or uploaded when it ends with a whole batch.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from kaudit.source.bytes import read_bytes
from kaudit.source.file_kinds import CAPTURE_ACCOUNT, segment_base_offset
from kaudit.source.filesystem import COPIED_AT_ONCE
from kaudit.source.schemes import writable_filesystem
from kaudit.source.uri import Uri

GROWING = ".capturing"
LOCK = ".lock"
"""A broker's own name for it (LogManager)."""
_LARGEST_TEXT = 256 << 20


class OccupiedError(ValueError):
    """The directory holds something else, or another process is writing there. The text says which."""


class CaptureDirectory:
    """The files of one capture. Texts are UTF-8; partitions and files go by name."""

    def __init__(self, target: str) -> None:
        """Make the directory unless it is there, and lock it where it is local.

        Raises OccupiedError where it holds what is not a capture, or while another process writes it; UrlError where
        kaudit cannot write; OSError.
        """
        self._root = Uri.parse(target)
        self._files = writable_filesystem(self._root)
        names = self._names()
        if names and CAPTURE_ACCOUNT not in names:
            raise OccupiedError(
                f"{target} holds {names[0]} and no {CAPTURE_ACCOUNT}: not a directory of kaudit capture"
            )
        self._files.make_directory(self._root)
        self._lock = self._locked() if self._root.is_local else None
        self._temporary = None if self._root.is_local else tempfile.TemporaryDirectory(prefix="kaudit-capture-")

    def __str__(self) -> str:
        return str(self._root)

    def close(self) -> None:
        """Release the lock and remove temporary files."""
        if self._lock is not None:
            os.close(self._lock)
        if self._temporary is not None:
            self._temporary.cleanup()
        else:
            with suppress(OSError):  # a segment that was never put in its place keeps it
                Path(self._root.path, GROWING).rmdir()

    def _locked(self) -> int:
        import fcntl  # noqa: PLC0415 - not on every system

        lock = os.open(f"{self._root.path}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise OccupiedError(f"{self._root} is being written by another kaudit capture") from None
        return lock

    # -- texts ---------------------------------------------------------------------------------------------------------
    def _names(self) -> Sequence[str]:
        try:
            # a run that was refused leaves the lock alone
            return [entry.name for entry in self._files.entries(self._root) if entry.name != LOCK]
        except FileNotFoundError:
            return ()
        except NotADirectoryError:
            raise OccupiedError(f"{self._root} is not a directory") from None

    def read(self, *path: str) -> bytes | None:
        """Return a file's content, None where it is not there."""
        try:
            return self._files.read_start(self._at(*path), _LARGEST_TEXT)
        except FileNotFoundError:
            return None

    def write(self, text: str, *path: str) -> None:
        """Replace a file."""
        self._files.put(self._at(*path), BytesIO(text.encode()))

    def _at(self, *path: str) -> Uri:
        uri = self._root
        for name in path:
            uri /= name
        return uri

    # -- segments ------------------------------------------------------------------------------------------------------
    def make_partition(self, partition: str) -> None:
        """Make a partition's directory unless it is there."""
        self._files.make_directory(self._at(partition))

    def segments(self, partition: str) -> list[tuple[int, int]]:
        """Return (base offset, bytes) of a partition's segments, oldest first."""
        try:
            entries = self._files.entries(self._at(partition))
        except FileNotFoundError:
            return []
        found = []
        for entry in entries:
            base = segment_base_offset(entry.name)
            if base is not None:
                size = entry.size
                found.append(
                    (base, self._files.status(self._at(partition, entry.name)).size or 0 if size is None else size)
                )
        return sorted(found)

    def growing(self, partition: str) -> list[int]:
        """Return the base offsets of segments that a killed run left growing."""
        names = (path.name for path in self._growing_directory().glob(f"{partition}.*"))
        return sorted(int(name.rpartition(".")[2]) for name in names)

    def growing_file(self, partition: str, base_offset: int) -> Path:
        """Return the local file in which a segment grows."""
        return self._growing_directory() / f"{partition}.{base_offset:020d}"

    def _growing_directory(self) -> Path:
        directory = Path(self._root.path if self._temporary is None else self._temporary.name, GROWING)
        directory.mkdir(exist_ok=True)
        return directory

    def publish(self, partition: str, base_offset: int, *, grows_on: bool) -> None:
        """Put a segment in its place: what has grown so far, on disk. `grows_on`: `take_back` will be called for it."""
        growing, place = self.growing_file(partition, base_offset), self._segment(partition, base_offset)
        if self._temporary is None:
            growing.replace(place.path)
            return
        with growing.open("rb") as content:
            self._files.put(place, content)
        if not grows_on:
            growing.unlink()

    def take_back(self, partition: str, base_offset: int) -> None:
        """Let a segment grow on: from a store it is fetched, unless this process has written it."""
        growing, place = self.growing_file(partition, base_offset), self._segment(partition, base_offset)
        if self._temporary is None:
            Path(place.path).replace(growing)
        elif not growing.exists():
            with growing.open("wb") as out:
                for data in self.pieces(partition, base_offset):
                    out.write(data)

    def pieces(self, partition: str, base_offset: int) -> Iterator[bytes]:
        """Yield a segment's bytes."""
        source = self._files.open(self._segment(partition, base_offset))
        try:
            at, size = 0, source.size()
            while at < size:
                data = read_bytes(source, at, min(COPIED_AT_ONCE, size - at))
                at += len(data)
                yield data
        finally:
            source.close()

    def _segment(self, partition: str, base_offset: int) -> Uri:
        return self._at(partition, f"{base_offset:020d}.log")
