"""What a file is by its first bytes: the magics of the formats' specifications, and the checksum of a tar's header."""

import io
import tarfile

import pytest

from kaudit.source.archives.forms import Form, form_of


@pytest.mark.parametrize(
    ("head", "form", "is_read"),
    [
        (b"PK\x03\x04", Form.ZIP, True),
        (b"PK\x05\x06", Form.ZIP, True),
        (b"PK\x07\x08", Form.SPANNED_ZIP, False),
        (b"\x1f\x8b\x08", Form.GZIP, True),
        (b"\x1f\x8b\x07", None, None),
        (b"BZh1", Form.BZIP2, True),
        (b"BZh9", Form.BZIP2, True),
        (b"BZh", None, None),
        (b"BZhx", None, None),
        (b"\xfd7zXZ\x00", Form.XZ, True),
        (b"\x28\xb5\x2f\xfd", Form.ZSTD, True),
        (b"\x04\x22\x4d\x18", Form.LZ4, True),
        (b"7z\xbc\xaf\x27\x1c", Form.SEVEN_ZIP, False),
        (b"Rar!\x1a\x07", Form.RAR, False),
        (b"\x1f\x9d", Form.COMPRESS, False),
        (b"", None, None),
        (bytes(600), None, None),
    ],
)
def test_first_bytes(head, form, is_read):
    found = form_of(head + b"xyz" * 300 if form is not None and head != b"BZh" else head)
    assert found is form
    assert found is None or found.is_read is is_read


def header(name="a", mode=0o644):
    made = tarfile.TarInfo(name)
    made.mode = mode
    return made.tobuf(tarfile.USTAR_FORMAT)


def with_checksum(head, text):
    return head[:148] + text.ljust(8, b"\0") + head[156:]


def test_a_tar_is_known_by_the_checksum_of_its_first_header():
    head = header()
    total = sum(head[:148]) + sum(head[156:]) + 8 * 0x20  # POSIX ustar: the field itself counts as blanks
    for text in (b"%06o\0 " % total, b"%o" % total, b" %o " % total, b"%07o" % total, b"%06o  " % total):
        assert form_of(with_checksum(head, text)) is Form.TAR
        assert form_of(with_checksum(head, text) + b"\xff" * 9) is Form.TAR
        assert form_of(with_checksum(head, text)[:511]) is None
    for text in (
        b"%06o\0 " % (total + 1),
        b"%06o\0 " % (total - 1),
        b"%08o" % total,
        b"",
        b" " * 8,
        b"-%o" % total,
        b"%od" % total,
        b"%x" % total,
        b"12345678",
    ):
        assert form_of(with_checksum(head, text)) is None


def test_a_digit_that_is_not_octal_is_no_checksum():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as out:
        out.addfile(tarfile.TarInfo("a"))
    head = packed.getvalue()[:512]
    assert form_of(head) is Form.TAR
    assert form_of(with_checksum(head, b"0000008")) is None
    assert form_of(with_checksum(head, b"0000009")) is None
