"""Where a file or directory lies: a path, and for a URL the scheme and authority in front of it."""

import os
import re
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import unquote

from msgspec import Struct

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+]*)://(?P<authority>[^/]*)(?P<path>/.*|)", re.DOTALL)


class UrlError(ValueError):
    """A URL kaudit cannot read. The text says why, and what to write or install instead."""


class Place(Struct, frozen=True):
    """A place in one file system. `scheme` is empty for local paths, whose `authority` is empty too."""

    scheme: str
    authority: str
    path: PurePosixPath

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path or URL as given by the user. `file://` URLs become local paths.

        Raises:
            UrlError: a file:// URL names another host.

        """
        url = _URL.fullmatch(text)
        if url is None:
            return cls("", "", PurePosixPath(text))
        scheme, authority, path = url["scheme"], url["authority"], url["path"] or "/"
        if scheme == "file":
            if authority not in ("", "localhost"):
                raise UrlError(f"{text}: a file:// URL has three slashes; {authority} would be another host")
            return cls("", "", PurePosixPath(unquote(path)))
        # a leading // means something else to PurePosixPath
        return cls(scheme, authority, PurePosixPath("/" + path.lstrip("/")))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}" if self.scheme else str(self.path)

    def __truediv__(self, name: str) -> Self:
        return self._at(self.path / name)

    @property
    def name(self) -> str:
        """Last component of the path; a local `.` has its directory's name."""
        return self.path.name or self.absolute().path.name

    @property
    def parent(self) -> Self:
        """The directory that holds it."""
        return self._at(self.path.parent)

    @property
    def is_local(self) -> bool:
        """Tell whether the operating system opens it."""
        return not self.scheme

    def absolute(self) -> Self:
        """The same place from the root; symbolic links and `..` stay as they are."""
        if self.scheme or self.path.is_absolute():
            return self
        return self._at(PurePosixPath(os.getcwd()) / self.path)  # noqa: PTH109 - a pure path is wanted

    def relative_to(self, root: "Place") -> str:
        """Path below `root`, the own name for `root` itself."""
        relative = self.path.relative_to(root.path).as_posix()
        return self.absolute().path.name if relative == "." else relative

    def parts(self) -> tuple[str, ...]:
        """Components from the root, `..` resolved by text: what tells log directories apart."""
        if self.scheme:
            return (f"{self.scheme}://{self.authority}", *self.path.parts[1:])
        return PurePosixPath(os.path.abspath(self.path)).parts  # noqa: PTH100 - keeps symlinks

    def _at(self, path: PurePosixPath) -> Self:
        return type(self)(self.scheme, self.authority, path)
