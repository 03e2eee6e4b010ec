"""webhdfs:// and swebhdfs://: HDFS over HTTP, where no client can be installed. Slower: 36 ms per MiB instead of 8."""

import errno
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from kaudit.source.bytes import RemoteFile, nothing_held
from kaudit.source.filesystem import FileStatus, FileSystem, Store, answer_seconds, require_listener
from kaudit.source.uri import Uri

_UNAUTHORIZED, _NOT_FOUND = 401, 404
_STORE = Store("WebHDFS", (http.client.HTTPException,))


class WebHdfsFileSystem(FileSystem):
    """One name node's REST interface; `authority` is its HTTP address. HADOOP_USER_NAME is the user."""

    is_remote = True

    def __init__(self, protocol: str, authority: str) -> None:
        # an answer may take long, a connection may not
        require_listener(f"{protocol}://{authority}", [authority] if ":" in authority else [])
        self._base = f"{protocol}://{authority}/webhdfs/v1"

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        return _entry(self._ask(uri, "GETFILESTATUS")["FileStatus"], uri.last)

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name, with sizes."""
        found = self._ask(uri, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        return sorted((_entry(status, str(status["pathSuffix"])) for status in found), key=lambda entry: entry.name)

    def open(self, uri: Uri) -> RemoteFile:
        """Open a file for ranged reads."""
        return RemoteFile(self.status(uri).size or 0, partial(self.read_range, uri), nothing_held)

    def read_range(self, uri: Uri, position: int, length: int) -> bytes:
        """Return `length` bytes from `position`, which are there; the name node sends us on to a data node."""

        def read(offset: int, length: int) -> bytes:
            return self._request(uri, "OPEN", {"offset": offset, "length": length})

        return _STORE.read(str(uri), read, position, length)

    def _ask(self, uri: Uri, operation: str) -> Any:  # noqa: ANN401 - JSON
        try:
            return json.loads(_STORE.asked(str(uri), lambda: self._request(uri, operation, {})))
        except ValueError as error:
            raise OSError(0, "this is no WebHDFS: the answer is not JSON", str(uri)) from error

    def _request(self, uri: Uri, operation: str, more: Mapping[str, int]) -> bytes:
        query: dict[str, int | str] = {"op": operation, **more}
        user = os.environ.get("HADOOP_USER_NAME")
        if user:
            query["user.name"] = user
        url = f"{self._base}{quote(uri.path)}?{urlencode(query)}"
        try:
            # whoever asks waits no longer than `answer_seconds`: this ends the thread
            with urllib.request.urlopen(url, timeout=2 * answer_seconds()) as answer:  # noqa: S310 - http and https only
                data: bytes = answer.read()
                return data
        except http.client.IncompleteRead as error:
            reason = f"WebHDFS cut the connection off after {len(error.partial):,} bytes"
            raise OSError(errno.EIO, reason, str(uri)) from error
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                raise FileNotFoundError(2, "no such file", str(uri)) from error
            if error.code == _UNAUTHORIZED:
                reason = "this WebHDFS wants Kerberos, which kaudit has for hdfs:// alone"
                raise PermissionError(errno.EACCES, reason, str(uri)) from error
            raise OSError(0, f"WebHDFS answered {error.code} {_reason(error)}", str(uri)) from error
        except urllib.error.URLError as error:
            raise OSError(0, f"WebHDFS: {error.reason}", str(uri)) from error


def _reason(error: urllib.error.HTTPError) -> str:
    """Return the name node's own words, else those of HTTP."""
    try:
        return str(json.loads(error.read())["RemoteException"]["message"]).partition("\n")[0]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return error.reason


def _entry(status: Mapping[str, Any], name: str) -> FileStatus:
    size, modified = int(status["length"]), int(status["modificationTime"])
    return FileStatus(
        name, status["type"] == "DIRECTORY", size, modified, block_bytes=int(status.get("blockSize") or 0)
    )
