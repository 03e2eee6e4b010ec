"""The files of an archive as a tree of directories: names that lead elsewhere, or stand for two things, are refused and counted."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kaudit.model.limits import ARCHIVE_EXPANDED_BYTES, ARCHIVE_MEMBERS
from kaudit.source.archives.expanded import EXPANSION, is_bomb
from kaudit.source.bytes import ByteSource

_NAME_CHARACTERS: Final = 4096
_NAME_COMPONENTS: Final = 64


class Member(Struct, frozen=True):
    """A file in an archive: `size` bytes, `modified_ms` since 1970, opened by `open`.

    `refusal` says why it is not opened: it is a link, a device, encrypted.
    """

    size: int
    modified_ms: int
    open: Callable[[], ByteSource]
    refusal: str = ""


class TooManyMembersError(ValueError):
    """An archive holds more than kaudit lists."""


class Members:
    """The tree. `entries`: the names in each directory by its path, empty for the top; None for a directory."""

    def __init__(self, archive_size: int) -> None:
        self.entries: dict[str, dict[str, Member | None]] = {"": {}}
        self._archive_size = archive_size
        self._count = 0
        self._bytes = 0
        self._refused: dict[str, tuple[int, str]] = {}
        self._noted: dict[str, tuple[int, str]] = {}

    def refused(self) -> Iterator[tuple[str, str]]:
        """Yield why members are not read: the first that is not for this reason, and the reason."""
        yield from _lines(self._refused)

    def noted(self) -> Iterator[tuple[str, str]]:
        """Yield what is unusual of members that are read, in the same way."""
        yield from _lines(self._noted)

    def refuse(self, name: str, reason: str) -> None:
        """Count a member that is not read."""
        _count(self._refused, name, reason)

    def directory(self, name: str) -> None:
        """Add a directory."""
        self._counted()
        components = self._components(name)
        if components is not None and self._make(components) is None:
            self.refuse(name, "both a file and a directory have this name")

    def add(self, name: str, member: Member) -> None:
        """Add a file: the last of one name stays, as when unpacking."""
        self._counted()
        components = self._components(name)
        if not components:
            return
        if not member.refusal:
            self._bytes += member.size
            if is_bomb(self._bytes, self._archive_size):
                size = f"{ARCHIVE_EXPANDED_BYTES >> 30} GiB and {EXPANSION:,} times the archive"
                self.refuse(name, f"the files up to this one are larger than {size}")
                return
        directory = self._make(components[:-1])
        if directory is None or (components[-1] in directory and directory[components[-1]] is None):
            self.refuse(name, "both a file and a directory have this name")
            return
        if components[-1] in directory:
            _count(self._noted, name, "there more than once: the last is read, as when unpacking")
        directory[components[-1]] = member

    def find(self, name: str) -> Member | None:
        """Return the file of a name that was added, None if there is none."""
        above, _, last = "/".join(part for part in name.split("/") if part not in ("", ".")).rpartition("/")
        return self.entries.get(above, {}).get(last)

    def _counted(self) -> None:
        self._count += 1
        if self._count > ARCHIVE_MEMBERS:
            raise TooManyMembersError(f"more than {ARCHIVE_MEMBERS:,} files in one archive")

    def _components(self, name: str) -> list[str] | None:
        """Return the parts of a name below the archive's top, None where it leads elsewhere or nowhere."""
        components = (
            [part for part in name.split("/") if part not in ("", ".")] if len(name) <= _NAME_CHARACTERS else []
        )
        if len(name) > _NAME_CHARACTERS or len(components) > _NAME_COMPONENTS:
            self.refuse(
                name[:40], f"its name has more than {_NAME_CHARACTERS:,} characters or {_NAME_COMPONENTS} parts"
            )
            return None
        if ".." in components:
            self.refuse(name, "its name leads out of the archive (..)")
            return None
        if name.startswith("/"):
            _count(self._noted, name, "its name begins with /: read as a name in the archive, as when unpacking")
        return components

    def _make(self, components: list[str]) -> dict[str, Member | None] | None:
        """Return the entries of a directory, made with those above it; None where one of them is a file."""
        path = ""
        for component in components:
            above = self.entries[path]
            if above.setdefault(component, None) is not None:
                return None
            path = f"{path}/{component}" if path else component
            self.entries.setdefault(path, {})
        return self.entries[path]


def _count(counted: dict[str, tuple[int, str]], name: str, reason: str) -> None:
    known = counted.get(reason)
    counted[reason] = (1, name) if known is None else (known[0] + 1, known[1])


def _lines(counted: dict[str, tuple[int, str]]) -> Iterator[tuple[str, str]]:
    for reason, (count, first) in counted.items():
        yield first, f"{reason} (and {count - 1:,} more)" if count > 1 else reason
