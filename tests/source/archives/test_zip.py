"""The files of a zip: by its directory as zipfile writes it, and by the headers before the files (PKWARE's APPNOTE.TXT, 4.3)."""

import bz2
import calendar
import io
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from itertools import product

import pytest
import zstandard

from kaudit.source.archives import zip as zips
from kaudit.source.archives.members import Member, Members
from kaudit.source.bytes import read_bytes
from tests.memory import Memory

CONTENT = b"0123456789" * 200
STORED, DEFLATED, BZIP2, ZSTD = 0, 8, 12, 93


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACK: dict[int, Callable[[bytes], bytes]] = {
    STORED: bytes,
    DEFLATED: deflated,
    BZIP2: bz2.compress,
    ZSTD: zstandard.ZstdCompressor().compress,
}


def local(
    name,
    content=CONTENT,
    method=STORED,
    *,
    flags=0,
    extra=b"",
    date=(2026 - 1980) << 9 | 11 << 5 | 28,
    clock=22 << 11 | 31 << 5 | 7,
    crc=None,
    trailer=None,
):
    """A file with the header before it; with `trailer` its sizes follow it."""
    packed = PACK.get(method, bytes)(content)
    crc = zlib.crc32(content) if crc is None else crc
    sizes = (crc, len(packed), len(content)) if trailer is None else (0, 0, 0)
    head = struct.pack(
        "<4s5H3I2H",
        b"PK\x03\x04",
        20,
        flags | (0 if trailer is None else 8),
        method,
        clock,
        date,
        *sizes,
        len(name),
        len(extra),
    )
    return head + name + extra + packed + (b"" if trailer is None else trailer)


def directory():
    """The beginning of the directory after the files, without which none is known to follow."""
    return b"PK\x01\x02" + bytes(20)


def listed(data):
    members = Members(1 << 20)
    problem = zips.ZipContent(Memory(data)).add_to(members)
    found = {
        f"{above}/{name}".lstrip("/"): member
        for above, own in members.entries.items()
        for name, member in own.items()
        if member
    }
    return problem, found, list(members.refused())


def content_of(member):
    return read_bytes(member.open(), 0, 1 << 20)


NO_DIRECTORY = "it has no directory at its end: it is cut off, or damaged there"


@pytest.mark.parametrize(("method", "flags", "extra"), list(product(PACK, (0, 0x800, 4), (b"", b"ab\2\0xy"))))
def test_files_are_found_by_their_headers_where_the_directory_is_gone(method, flags, extra):
    data = b"".join(
        local(name, text, method, flags=flags, extra=extra)
        for name, text in ((b"a/x.log", CONTENT), (b"y", b""), (b"z", b"zz"))
    )
    problem, found, refused = listed(data + directory())
    assert (problem, refused) == (NO_DIRECTORY, [])
    assert {name: (member.size, member.refusal) for name, member in found.items()} == {
        "a/x.log": (2000, ""),
        "y": (0, ""),
        "z": (2, ""),
    }
    assert [content_of(found[name]) for name in ("a/x.log", "y", "z")] == [CONTENT, b"", b"zz"]
    # cut in the last file, and between files
    problem, found, refused = listed(data[: len(data) - 1])
    assert (sorted(found), refused) == (["a/x.log", "y"], [("z", "cut off: the zip ends in the middle of it")])
    first = len(local(b"a/x.log", CONTENT, method, flags=flags, extra=extra))
    for cut in (first, first + 29):
        assert list(listed(data[:cut])[1]) == ["a/x.log"]


@pytest.mark.parametrize("signature", [b"", b"PK\x07\x08"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("end", ["file", "directory"])
def test_sizes_that_follow_a_file_have_any_of_four_forms(signature, wide, end):
    packed = deflated(CONTENT)
    trailer = signature + struct.pack("<IQQ" if wide else "<III", zlib.crc32(CONTENT), len(packed), len(CONTENT))
    data = local(b"a", CONTENT, DEFLATED, trailer=trailer)
    data += local(b"b", b"bb") if end == "file" else directory()
    problem, found, refused = listed(data)
    assert (problem, refused) == (NO_DIRECTORY, [])
    assert {name: content_of(member) for name, member in found.items()} == {"a": CONTENT} | (
        {"b": b"bb"} if end == "file" else {}
    )


def test_what_follows_sizes_that_nobody_writes_is_not_read():
    data = local(b"a", CONTENT, DEFLATED, trailer=bytes(13)) + local(b"b", b"bb")
    assert list(listed(data)[1]) == ["a"]


def test_a_streamed_file_that_is_cut_off():
    data = local(b"a", CONTENT, DEFLATED, trailer=b"")
    problem, found, refused = listed(data[:-3])
    assert (problem, found, refused) == (NO_DIRECTORY, {}, [("a", "cut off: the zip ends in the middle of it")])


@pytest.mark.parametrize(
    ("name", "flags", "read"),
    [
        (b"plain", 0, "plain"),
        ("\u00e9".encode(), 0x800, "\u00e9"),
        (b"\x82", 0, "\u00e9"),  # code page 437
        (b"\xff", 0x800, "\ufffd"),
        (b"", 0, "a file without a name"),
        (b"./a//b", 0, "a/b"),
        (b"a\\b", 0, "a\\b"),
    ],
)
def test_names(name, flags, read):
    assert list(listed(local(name, flags=flags) + directory())[1]) == [read]


def times(extra=b"", **more):
    ((_, member),) = listed(local(b"a", extra=extra, **more) + directory())[1].items()
    return member.modified_ms


def unix_time(seconds, flags=1, length=5):
    return struct.pack("<HHBi", 0x5455, length, flags, seconds)


def test_times_are_those_in_utc_or_else_of_this_machines_zone(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        local_time = (calendar.timegm((2026, 11, 28, 22, 31, 14)) - (5 * 60 + 45) * 60) * 1000
        assert (
            times()
            == times(b"ab\0\0")
            == times(b"UT")
            == times(unix_time(5, flags=2))
            == times(unix_time(5)[:8])
            == local_time
        )
        assert times(unix_time(1_700_000_001)) == 1_700_000_001_000
        assert times(unix_time(-1)) == -1000
        assert times(b"ab\3\0xyz" + unix_time(7, flags=3)) == times(b"ab\0\0" + unix_time(7)) == 7000
        assert times(struct.pack("<HHB", 0x5455, 1, 1) + b"UT" + bytes(20)) == local_time
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(("date", "clock"), [(0, 0), (0xFFFF, 0xFFFF), (0, 0xFFFF), (0xFFFF, 0)])
def test_times_that_no_calendar_has_are_times_all_the_same(date, clock):
    assert (
        calendar.timegm((1979, 11, 29, 0, 0, 0)) * 1000
        < times(date=date, clock=clock)
        < calendar.timegm((2109, 1, 1, 0, 0, 0)) * 1000
    )


def zipped(*files, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as out:
        for info, content in files:
            if method != zipfile.ZIP_DEFLATED:
                info.compress_type = method
            out.writestr(info, content)
    return packed.getvalue()


def file(name, mode=stat.S_IFREG | 0o644, system=3):
    info = zipfile.ZipInfo(name, (2026, 11, 28, 1, 2, 4))
    info.external_attr, info.create_system = mode << 16, system
    return info


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_files_of_the_directory(method):
    data = zipped((file("d/"), b""), (file("d/a"), CONTENT), (file("b"), b""), method=method)
    problem, found, refused = listed(data)
    assert (problem, refused) == (None, [])
    assert {name: content_of(member) for name, member in found.items()} == {"d/a": CONTENT, "b": b""}
    assert found["d/a"].open() is found["d/a"].open()


@pytest.mark.parametrize(
    ("name", "system", "read"), [("a\\b", 0, "a/b"), ("a\\b", 3, "a\\b"), ("c/a\\b", 0, "c/a\\b"), ("a", 0, "a")]
)
def test_names_as_dot_net_has_written_them(name, system, read):
    info = file("x" * len(name), system=system)
    data = zipped((info, b"1")).replace(b"x" * len(name), name.encode())
    assert list(listed(data)[1]) == [read]


@pytest.mark.parametrize(
    ("mode", "refusal"),
    [
        (0, ""),
        (0o644, ""),
        (stat.S_IFREG | 0o600, ""),
        (stat.S_IFLNK | 0o777, "a symbolic link in an archive, which kaudit does not follow"),
        (stat.S_IFIFO | 0o600, "no file in an archive, which kaudit does not follow"),
        (stat.S_IFCHR, "no file in an archive, which kaudit does not follow"),
        (stat.S_IFDIR, "no file in an archive, which kaudit does not follow"),
    ],
)
def test_what_is_no_file_is_refused(mode, refusal):
    (member,) = listed(zipped((file("a", mode), b"abc")))[1].values()
    assert (member.refusal, member.size) == (refusal, 0 if refusal else 3)


@pytest.mark.parametrize(
    ("at", "value", "refusal"),
    [
        (8, 1, "encrypted: kaudit asks for no passwords"),
        (10, 14, "packed by a method (number 14) that kaudit does not read"),
    ],
)
def test_what_is_encrypted_or_packed_otherwise_is_refused(at, value, refusal):
    data = bytearray(zipped((file("a"), b"abc")))
    data[data.find(b"PK\x01\x02") + at] = value
    (member,) = listed(bytes(data))[1].values()
    assert (member.refusal, member.size) == (refusal, 0)


def test_a_zip_with_a_file_of_zstd():
    data = bytearray(zipped((file("a"), PACK[ZSTD](CONTENT)), method=zipfile.ZIP_STORED))
    entry = data.find(b"PK\x01\x02")
    struct.pack_into("<H", data, entry + 10, ZSTD)
    struct.pack_into("<I", data, entry + 16, zlib.crc32(CONTENT))
    struct.pack_into("<I", data, entry + 24, len(CONTENT))
    (member,) = listed(bytes(data))[1].values()
    assert content_of(member) == CONTENT


@pytest.mark.parametrize(("field", "change"), [(16, 1), (24, 1), (24, -1)])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("content", [b"", CONTENT])
def test_a_file_whose_size_or_checksum_is_not_what_the_zip_says(field, change, method, content):
    data = bytearray(zipped((file("a"), content), method=method))
    entry = data.find(b"PK\x01\x02")
    (value,) = struct.unpack_from("<I", data, entry + field)
    struct.pack_into("<I", data, entry + field, (value + change) % (1 << 32))
    (member,) = listed(bytes(data))[1].values()
    with pytest.raises(OSError, match="its size or its CRC-32 is not what the zip says: the zip is damaged") as caught:
        member.open()
    assert caught.value.filename == "a"


@pytest.mark.parametrize("at", [0, 3])
def test_a_directory_that_names_places_where_no_file_is(at):
    data = bytearray(zipped((file("a"), CONTENT)))
    data[at] ^= 0x10
    (member,) = listed(bytes(data))[1].values()
    with pytest.raises(OSError, match="there is no file where its directory says"):
        member.open()


def test_eight_files_are_kept_open_and_those_used_last():
    files = listed(zipped(*((file(f"f{number}"), b"%d" % number) for number in range(10))))[1]
    opened = [files[f"f{number}"].open() for number in range(8)]
    assert files["f0"].open() is opened[0]
    files["f8"].open()
    assert files["f0"].open() is opened[0]
    assert files["f2"].open() is opened[2]
    assert files["f1"].open() is not opened[1]
    assert read_bytes(files["f9"].open(), 0, 9) == b"9"


def test_a_directory_that_is_damaged_after_its_first_files(monkeypatch):
    added: list[str] = []

    def fail_after_the_first(self, members, info):
        if added:
            raise ValueError("odd")
        added.append(info.filename)
        members.add(info.filename, Member(0, 0, lambda: Memory(b"")))

    monkeypatch.setattr(zips.ZipContent, "_add", fail_after_the_first)
    assert listed(zipped((file("a"), b""), (file("b"), b"")))[0] == "its directory is damaged (odd)"


def test_a_directory_of_too_many_bytes_is_not_read(monkeypatch):
    data = zipped(*((file(f"f{number}"), b"") for number in range(100)))
    size = int.from_bytes(data[-10:-6], "little")
    monkeypatch.setattr(zips, "ARCHIVE_DIRECTORY_BYTES", size)
    assert len(listed(data)[1]) == 100
    monkeypatch.setattr(zips, "ARCHIVE_DIRECTORY_BYTES", size - 1)
    with pytest.raises(OSError, match="the directory of the zip has more than 0 MiB"):
        listed(data)
