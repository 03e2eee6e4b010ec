"""Archives: any bytes are the tree of an archive, or refused; what a tree lists can be opened, or says why not."""

import gzip
import io
import json
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.scanning.options import ScanOptions
from kaudit.source.archives.filesystem import ArchiveFileSystem
from kaudit.source.bytes import read_bytes
from kaudit.source.filesystem import FileStatus
from kaudit.source.uri import Uri
from tests import logs
from tests.fuzz import outcomes
from tests.fuzz.mutation import BEYOND
from tests.logs import Log
from tests.memory import Memory
from tests.packed import COMPRESSIONS

_ARCHIVE = Uri("", "", "x")
_LONGEST_READ = 1 << 20
SEGMENT = "b1/orders-0/00000000000000000000.log"
_NAMES = (
    SEGMENT,
    "b1/meta.properties",
    "../x",
    "/etc/passwd",
    "b1",
    "b1/orders-0",
    "a/" * 40,
    "",
    ".",
    "//",
    "é\udcff",
    "b1\\x\\y",
    "a\nb",
)


def read(data: bytes) -> None:
    """Open an archive, list it, and read all that it lists."""
    try:
        archive = ArchiveFileSystem(Memory(data), _ARCHIVE, FileStatus("x", is_directory=False, size=len(data)))
    except OSError as error:
        outcomes.note(error.strerror)
        return
    outcomes.note(*(entry.reason for entry in (*archive.refused, *archive.noted)))
    waiting = [_ARCHIVE.content]
    while waiting:
        place = waiting.pop()
        status = archive.status(place)
        if not status.is_directory:
            _read_file(archive, place)
            continue
        for entry in archive.entries(place):
            assert entry.name not in {"", ".", ".."}
            assert "/" not in entry.name
            if entry.is_directory:
                waiting.append(place / entry.name)
            else:
                _read_file(archive, place / entry.name)


def scan(data: bytes) -> None:
    """Any file is audited, or refused: what the tree of an archive says reaches every part of an audit."""
    with TemporaryDirectory() as root:
        path = Path(root) / "x"
        path.write_bytes(data)
        try:
            result = local.scan(ScanOptions([str(path)], jobs=1), SilentProgress())
        except NothingToAuditError as error:
            outcomes.note(error)
            return
        json.dumps([finding.to_dict() for finding in result.findings], allow_nan=False)
        outcomes.note(*(note.reason for note in result.not_audited))


def _read_file(archive: ArchiveFileSystem, place: Uri) -> None:
    try:
        size = archive.status(place).size
        source = archive.open(place)
        assert source.size() == size
        beginning = read_bytes(source, 0, min(size or 0, _LONGEST_READ))
        assert read_bytes(source, len(beginning) // 2, len(beginning)).startswith(beginning[len(beginning) // 2 :])
        outcomes.note("read")
    except OSError as error:
        outcomes.note(error.strerror)


def seeds() -> list[bytes]:
    """Archives and compressed files of each kind."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, content in ((SEGMENT, _log()), ("b1/meta.properties", b"version=1\n"), ("n" * 150, b"long")):
            _add(out, name, content)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as found:
        found.writestr(SEGMENT, _log())
        found.writestr(zipfile.ZipInfo("b1/meta.properties"), b"version=1\n")
    plain = tar.getvalue()
    return [
        plain,
        packed.getvalue(),
        *(compress(part) for compress in COMPRESSIONS.values() for part in (plain, b"text" * 50)),
    ]


def _log() -> bytes:
    log = Log()
    for sequence in range(4):
        log.append(logs.data(7, 0, sequence))
    return log.encode()


def _add(out: tarfile.TarFile, name: str, content: bytes, **fields: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    out.addfile(info, io.BytesIO(content))


def made(random: Random) -> bytes:
    """A tar or a zip whose names, links, sizes and headers say what nobody packs."""
    data = _tar(random) if random.randrange(2) else _zip(random)
    if random.randrange(4) == 0:
        data = data[: random.randrange(len(data) + 1)]
    return data if random.randrange(3) else random.choice([*COMPRESSIONS.values()])(data)


def _tar(random: Random) -> bytes:
    packed = io.BytesIO()
    form = random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=packed, mode="w", format=form, errors="surrogateescape") as out:
        for _ in range(random.randrange(5)):
            kind = random.choice((b"0", b"0", b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"L", b"x", b"g", b"K"))
            headers = {}
            if form == tarfile.PAX_FORMAT and random.randrange(2):
                key = random.choice(
                    ("size", "path", "mtime", "GNU.sparse.map", "GNU.sparse.major", "GNU.sparse.size", "linkpath")
                )
                headers = {key: random.choice(("0", "-1", "1", "0,1,5,9", "x", "", "9" * 30, "nan", "../" * 3))}
            content = random.choice((b"", _log(), bytes(random.randrange(700))))
            _add(out, random.choice(_NAMES), content, type=kind, linkname=random.choice(_NAMES), pax_headers=headers)
    data = bytearray(packed.getvalue())
    for at in range(0, len(data) - 511, 512):
        if random.randrange(6) == 0 and data[at + 257 : at + 262] == b"ustar":
            _damage(random, data, at)
    return bytes(data)


def _damage(random: Random, data: bytearray, at: int) -> None:
    """Change a field of a header and make its checksum right: the size, of base 256 too, the time, the map of holes."""
    field = random.choice((slice(124, 136), slice(136, 148), slice(386, 410), slice(483, 495), slice(156, 157)))
    data[at + field.start : at + field.stop] = random.choice((b"\xff", b"\x80", b"7", b" ", b"S")) * (
        field.stop - field.start
    )
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = f"{sum(data[at : at + 512]):06o}\0 ".encode()


def _zip(random: Random) -> bytes:
    packed = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w") as found:
        warnings.simplefilter("ignore")  # of names that occur twice
        for number in range(random.randrange(4)):
            name = random.choice(_NAMES).encode("utf-8", "replace").decode() or "x"
            info = zipfile.ZipInfo(f"{number}{name}" if random.randrange(3) else name)
            info.compress_type = random.choice(
                (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
            )
            info.external_attr = random.choice((0, 0o100644, 0o120777, 0o040755, 0o010644)) << 16
            info.extra = random.choice((b"", b"UT\x05\x00\x01\xff\xff\xff\xff", b"UT\x05\x00\x01", b"\x01\x00\xff"))
            with_data = random.choice((_log(), bytes(random.randrange(500))))
            if len(info.extra) % 4 == 1 or not info.extra:
                found.writestr(info, with_data)
    data = bytearray(packed.getvalue())
    at = data.find(b"PK\x01\x02")
    while at >= 0 and at + 46 <= len(data):
        if random.randrange(3) == 0:
            field = random.choice((8, 10, 16, 20, 24, 28, 30, 42))
            struct.pack_into("<H", data, at + field, random.choice((1, 8, 0xFFFF, random.randrange(1 << 16))))
        at = data.find(b"PK\x01\x02", at + 1)
    if random.randrange(6) == 0 and len(data) > 22:
        struct.pack_into("<I", data, len(data) - random.choice((6, 10, 12)), random.choice(BEYOND) % (1 << 32))
    return bytes(data)


def seal(data: bytes) -> bytes:
    """Compress what was changed, so that what is decoded is hostile too."""
    return gzip.compress(data, 1)
