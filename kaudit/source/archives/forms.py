"""Which archives and compressed files there are, recognised by their first bytes."""

import enum
from collections.abc import Mapping
from typing import Final

HEAD_BYTES: Final = 512
"""Bytes at the beginning of a file that show what it is: the header of a tar."""


class Form(enum.Enum):
    """A kind of archive, or of compressed file, by its name for people."""

    TAR = "tar"
    ZIP = "zip"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"
    LZ4 = "lz4"
    SEVEN_ZIP = "7z"
    RAR = "rar"
    COMPRESS = "compress (.Z)"
    SPANNED_ZIP = "zip in several parts"

    @property
    def is_read(self) -> bool:
        """Return whether kaudit reads it."""
        return self not in {Form.SEVEN_ZIP, Form.RAR, Form.COMPRESS, Form.SPANNED_ZIP}


_MAGICS: Final[Mapping[bytes, Form]] = {
    b"PK\x03\x04": Form.ZIP,
    b"PK\x05\x06": Form.ZIP,
    b"PK\x07\x08": Form.SPANNED_ZIP,
    b"\x1f\x8b\x08": Form.GZIP,
    b"BZh": Form.BZIP2,
    b"\xfd7zXZ\x00": Form.XZ,
    b"\x28\xb5\x2f\xfd": Form.ZSTD,
    b"\x04\x22\x4d\x18": Form.LZ4,
    b"7z\xbc\xaf\x27\x1c": Form.SEVEN_ZIP,
    b"Rar!\x1a\x07": Form.RAR,
    b"\x1f\x9d": Form.COMPRESS,
}
"""None begins a segment: the offset of its first batch would be beyond 10^17."""
_CHECKSUM: Final = slice(148, 156)


def form_of(head: bytes) -> Form | None:
    """Return what a file is by its first HEAD_BYTES, None for one that is neither an archive nor compressed."""
    for magic, form in _MAGICS.items():
        if head.startswith(magic):
            return form if form is not Form.BZIP2 or head[3:4].isdigit() else None
    return Form.TAR if _starts_tar(head) else None


def _starts_tar(head: bytes) -> bool:
    """Whether the checksum of a tar header holds: the sum of its bytes, the checksum's own taken as blanks."""
    if len(head) < HEAD_BYTES:
        return False
    digits = head[_CHECKSUM].strip(b" \x00")
    if not digits or not digits.isdigit() or len(digits) > 7 or any(digit > ord("7") for digit in digits):
        return False
    return int(digits, 8) == sum(head[:HEAD_BYTES]) - sum(head[_CHECKSUM]) + 8 * ord(" ")
