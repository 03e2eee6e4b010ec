"""JSON documents that people hand over whole: saved reports, baselines."""

import errno
import sys
from typing import IO

from kaudit.model.limits import DOCUMENT_BYTES

STDIN = "-"


def read_document(file: str) -> str:
    """Return a document's text; `-` is stdin.

    Raises:
        OSError: it cannot be read, or is longer than DOCUMENT_BYTES.
        UnicodeDecodeError: it is not UTF-8.

    """
    if file == STDIN:
        return _whole(sys.stdin, file)
    with open(file, encoding="utf-8") as document:  # noqa: PTH123 - 3 ms, and few runs read one
        return _whole(document, file)


def _whole(document: IO[str], file: str) -> str:
    text = document.read(DOCUMENT_BYTES + 1)
    if len(text) > DOCUMENT_BYTES:
        raise OSError(errno.EFBIG, f"more than {DOCUMENT_BYTES >> 20} MiB", file)
    return text
