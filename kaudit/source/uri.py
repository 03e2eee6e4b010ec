"""Where a file or directory lies: a path, and for a URL the scheme and authority in front of it.

Paths are strings in pathlib's normal form. They are not pathlib's objects, which take 5 us each to make.
"""

import os
import posixpath
import re
from collections.abc import Iterator
from typing import Self
from urllib.parse import unquote

from msgspec import Struct

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+]*)://(?P<authority>[^/]*)(?P<path>/.*|)", re.DOTALL)

KAFKA = "kafka"
"""Scheme of live partitions (not files)."""
STDIN = "-"
_NAME_OF_STDIN = "stdin"
"""What is made of standard input where a directory's name is wanted."""


class UrlError(ValueError):
    """A URL kaudit cannot read. The text says why, and what to write or install instead."""


class Uri(Struct, frozen=True):
    """A place in one file system. `scheme` is empty for local paths, whose `authority` is empty too.

    `path` has no empty and no `.` components; it is `.` where there are none.
    """

    scheme: str
    authority: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path or URL as given by the user. `file://` URLs become local paths.

        Raises:
            UrlError: a file:// URL names another host.

        """
        url = _URL.fullmatch(text)
        if url is None:
            local = cls("", "", _normal(text))
            return local._from_root() if local.is_stdin and text != STDIN else local  # a file that is called so
        scheme, authority, path = url["scheme"], url["authority"], url["path"] or "/"
        if scheme == "file":
            if authority not in ("", "localhost"):
                raise UrlError(f"{text}: a file:// URL has three slashes; {authority} would be another host")
            return cls("", "", _normal(unquote(path)))
        # a leading // means something else
        return cls(scheme, authority, _normal("/" + path.lstrip("/")))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}" if self.scheme else self.path

    def __truediv__(self, name: str) -> Self:
        if "/" in name or name in {"", "."}:
            return self._at(posixpath.join(self.path, name))
        above = "" if self.path == "." else self.path if self.path.endswith("/") else self.path + "/"
        return type(self)(self.scheme, self.authority, above + name)

    @property
    def name(self) -> str:
        """Last component of the path; a local `.` has its directory's name, an archive's content its name without suffixes."""
        if self.is_stdin:
            return _NAME_OF_STDIN
        last = self.last or self.absolute().last
        return without_packing(last) if last.endswith("!") else last

    @property
    def last(self) -> str:
        """Last component of the path as it is, empty where there is none."""
        return "" if self.path == "." else self.path.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        """The directory that holds it."""
        if self.is_stdin:
            return type(self)("", "", _NAME_OF_STDIN)
        above, _, last = self.path.rpartition("/")
        if above.strip("/"):
            return type(self)(self.scheme, self.authority, above)
        return type(self)(self.scheme, self.authority, self.path.removesuffix(last) or ".")

    @property
    def content(self) -> Self:
        """Where the content of an archive or compressed file lies."""
        return type(self)(self.scheme, self.authority, self.path + "!")

    @property
    def within(self) -> "tuple[Self, str] | None":
        """The innermost archive in which it lies by its text, and the path there, empty for all that the archive holds; None if in none.

        A directory may be called as `ARCHIVE!` is: what is there decides (`filesystem`).
        """
        return next(self.archives(), None)

    def archives(self) -> "Iterator[tuple[Self, str]]":
        """Yield the archives in which it lies by its text, the innermost first, and its path in each."""
        at = self.path.rfind("!") if "!" in self.path else -1
        while at > 0:
            if self.path.startswith("/", at + 1) or at + 1 == len(self.path):
                yield type(self)(self.scheme, self.authority, self.path[:at]), self.path[at + 2 :]
            at = self.path.rfind("!", 0, at)

    @property
    def is_stdin(self) -> bool:
        """Return whether it is standard input."""
        return self.path == STDIN and not self.scheme

    @property
    def is_local(self) -> bool:
        """Return whether the operating system opens it."""
        return not self.scheme

    def absolute(self, working_directory: str | None = None) -> Self:
        """Return the same place with a path from the root; symbolic links and `..` are not resolved.

        A relative path begins in `working_directory`, this process' own if None.
        """
        if self.scheme or self.path.startswith(("/", f"{STDIN}!")) or self.is_stdin:
            return self
        return self._from_root(working_directory)

    def _from_root(self, working_directory: str | None = None) -> Self:
        return self._at(posixpath.join(working_directory or os.getcwd(), self.path))  # noqa: PTH109 - a text is wanted

    def lies_in(self, root: "Uri") -> bool:
        """Return whether it is `root` or lies below it, by their texts."""
        own, above = self.absolute(), root.absolute()
        return own == above or str(own).startswith((str(above).rstrip("/") + "/", str(above) + "!"))

    def relative_to(self, root: "Uri") -> str:
        """Return the path below `root`, the last component for `root` itself. Raises ValueError where it does not lie there."""
        lead = root.path + "/"
        if root.path != "/" and self.path.startswith(lead):
            return self.path[len(lead) :]
        own, above = _split(self.path), _split(root.path)
        if own[0] != above[0] or own[1][: len(above[1])] != above[1]:
            raise ValueError(f"{self.path} does not lie below {root.path}")
        return "/".join(own[1][len(above[1]) :]) or self.absolute().last

    def parts(self) -> tuple[str, ...]:
        """Return the components from the root, with `..` resolved by text; log directories are compared by them."""
        if self.scheme:
            return (f"{self.scheme}://{self.authority}", *_split(self.path)[1])
        root, components = _split(os.path.abspath(self.path))  # noqa: PTH100 - keeps symlinks
        return (root, *components)

    def components(self) -> tuple[str, ...]:
        """Return the root and the components as they are written; paths are sorted by them."""
        root, components = _split(self.path)
        return (root, *components) if root else tuple(components)

    def _at(self, path: str) -> Self:
        return type(self)(self.scheme, self.authority, _normal(path))


_PACKING = re.compile(r"(\.tar)?\.(gz|bz2|xz|zst|zstd|lz4)!|\.(tar|zip|tgz|tbz|tbz2|txz|tzst)!|!", re.IGNORECASE)


def without_packing(name: str) -> str:
    """Return the name of `ARCHIVE!` without what packing added to it."""
    packed = next(found for found in _PACKING.finditer(name) if found.end() == len(name))
    return name[: packed.start()] or name


def _split(path: str) -> tuple[str, list[str]]:
    """Return the root, empty for a relative path, and the components. Two slashes, and no more, are a root of their own."""
    root = "" if not path.startswith("/") else "//" if path.startswith("//") and not path.startswith("///") else "/"
    return root, [component for component in path.split("/") if component not in ("", ".")]


def _normal(path: str) -> str:
    if path and path[0] != "." and path[-1] != "/" and "//" not in path and "/." not in path:
        return path  # as nearly all are
    root, components = _split(path)
    return root + "/".join(components) or "."
