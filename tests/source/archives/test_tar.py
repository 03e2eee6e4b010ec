"""The files of a tar as tarfile writes it, and headers that nobody writes (POSIX ustar, GNU sparse)."""

import io
import tarfile

import pytest

from kaudit.source.archives import tar
from kaudit.source.archives.members import Members
from kaudit.source.bytes import CutOffError, read_bytes
from tests.memory import Memory

BLOCK = 512


def info(name, kind=tarfile.REGTYPE, target="", mtime=1_700_000_000):
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mtime = kind, target, mtime
    return made


def tarred(*members, form=tarfile.USTAR_FORMAT):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as out:
        for made, content in members:
            made.size = len(content)
            out.addfile(made, io.BytesIO(content))
    return packed.getvalue()


def listed(data):
    members = Members(1 << 20)
    problem = tar.tar_members(Memory(data), members)
    found = {
        f"{above}/{name}".lstrip("/"): member
        for above, own in members.entries.items()
        for name, member in own.items()
        if member
    }
    return problem, found, list(members.refused())


def content_of(member):
    return read_bytes(member.open(), 0, 1 << 20)


A, B = b"a" * 700, b"b" * 10


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_files(form):
    long = "d/" + "n" * 99
    data = tarred((info("d/", tarfile.DIRTYPE), b""), (info("d/a"), A), (info(long), B), (info("e"), b""), form=form)
    problem, found, refused = listed(data)
    assert (problem, refused) == (None, [])
    assert {name: content_of(member) for name, member in found.items()} == {"d/a": A, long: B, "e": b""}
    assert {(member.modified_ms, member.size, member.refusal) for member in found.values()} == {
        (1_700_000_000_000, size, "") for size in (0, 10, 700)
    }


@pytest.mark.parametrize(
    ("mtime", "modified_ms"), [(0, 0), (1.0004, 1000), (1.0006, 1001), (-5, 0), (2**43, 2**43 * 1000), (2**60, 1 << 53)]
)
def test_times(mtime, modified_ms):
    (member,) = listed(tarred((info("a", mtime=mtime), A), form=tarfile.PAX_FORMAT))[1].values()
    assert member.modified_ms == modified_ms


LINKS = [
    ((info("x", tarfile.SYMTYPE, "a"), b""), "a symbolic link in an archive, which kaudit does not follow"),
    ((info("x", tarfile.CHRTYPE), b""), "a device in an archive, which kaudit does not follow"),
    ((info("x", tarfile.BLKTYPE), b""), "a device in an archive, which kaudit does not follow"),
    ((info("x", tarfile.FIFOTYPE), b""), "a named pipe in an archive, which kaudit does not follow"),
    ((info("x", tarfile.LNKTYPE, "b"), b""), "a hard link to b, which is not in the archive before it"),
]


@pytest.mark.parametrize(("link", "refusal"), LINKS)
def test_what_is_no_file_is_refused(link, refusal):
    found = listed(tarred((info("a"), A), link))[1]
    assert (found["x"].refusal, found["x"].size, found["a"].refusal) == (refusal, 0, "")


@pytest.mark.parametrize("target", ["d/a", "./d//a"])
def test_a_hard_link_is_the_file_before_it(target):
    found = listed(tarred((info("d/a", mtime=5), A), (info("x", tarfile.LNKTYPE, target, mtime=7), b"")))[1]
    assert (content_of(found["x"]), found["x"].size, found["x"].modified_ms) == (A, 700, 7000)
    again = listed(tarred((info("l", tarfile.SYMTYPE, "/etc/passwd"), b""), (info("x", tarfile.LNKTYPE, "l"), b"")))[1]
    assert again["x"].refusal == "a symbolic link in an archive, which kaudit does not follow"


def test_where_a_tar_is_cut_off():
    data = tarred((info("a"), A), (info("b"), B))
    whole = 2 * BLOCK + 1024 + BLOCK  # two headers, two blocks of the first file, one of the second
    assert listed(data[: whole + BLOCK])[0] is None
    assert listed(data[:whole])[0] == "it ends without its end mark: files after it may be missing"
    for cut in (whole - 1, whole - BLOCK + 1, whole - BLOCK):
        problem, found, _ = listed(data[:cut])
        assert (problem, sorted(found)) == ("it ends in the middle of b", ["a", "b"])
    problem, found, _ = listed(data[: 2 * BLOCK])
    assert (problem, list(found)) == ("it ends in the middle of a", ["a"])
    with pytest.raises(CutOffError):
        content_of(found["a"])
    assert listed(data[: 3 * BLOCK])[0] == "it ends without its end mark: files after it may be missing"
    problem, found, _ = listed(data[: 3 * BLOCK + 100])
    assert str(problem).startswith(f"what follows byte {3 * BLOCK:,} is no header of a tar") or "damaged" in str(
        problem
    )


def test_what_follows_the_files_and_is_no_header():
    data = tarred((info("a"), A))
    damaged = data[: 3 * BLOCK] + b"\1" * BLOCK + data[3 * BLOCK :]
    problem, found, _ = listed(damaged)
    assert (problem, list(found)) == ("what follows byte 1,536 is no header of a tar", ["a"])
    # zeros at last but one byte are no end
    ended = data[: 3 * BLOCK] + bytes(BLOCK - 1) + b"\1" + data[3 * BLOCK :]
    assert listed(ended)[0] == "what follows byte 1,536 is no header of a tar"


def sparse(size, *holed, stored, content):
    """An old GNU header of a file with holes: position and length of what is stored."""
    header = bytearray(tarred((info("a"), content))[:BLOCK])
    header[156:157], header[257:265] = b"S", b"ustar  \0"
    header[124:136] = f"{stored:011o}\0".encode()
    for number, (position, length) in enumerate(holed):
        at = 386 + 24 * number
        header[at : at + 24] = f"{position:011o}\0{length:011o}\0".encode()
    header[483:495] = f"{size:011o}\0".encode()
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header) + content + bytes(-len(content) % BLOCK) + bytes(2 * BLOCK)


def test_a_file_with_holes():
    problem, found, _ = listed(sparse(5000, (10, 3), (100, 4), (5000, 0), stored=7, content=b"abcdefg"))
    assert problem is None
    assert content_of(found["a"]) == bytes(10) + b"abc" + bytes(87) + b"defg" + bytes(4896)
    assert (found["a"].size, found["a"].refusal) == (5000, "")


@pytest.mark.parametrize(
    ("size", "holed", "good"),
    [
        (20, [(0, 3), (3, 4)], True),
        (20, [(13, 3), (16, 4)], True),
        (20, [(0, 4), (3, 3)], False),
        (20, [(13, 3), (17, 4)], False),
        (20, [(9, 3), (2, 4)], False),
    ],
)
def test_holes_lie_one_after_the_other(size, holed, good):
    (member,) = listed(sparse(size, *holed, stored=7, content=b"abcdefg"))[1].values()
    assert (member.refusal, member.size) == (("", size) if good else ("the list of its holes is damaged", 0))


def test_headers_of_one_member_are_bounded(monkeypatch):
    name = "n" * 3000
    data = tarred((info("a"), A), (info(name), B), form=tarfile.PAX_FORMAT)
    assert len(listed(data)[1]) == 2
    monkeypatch.setattr(tar, "ARCHIVE_HEADER_BYTES", 3000)
    with pytest.raises(OSError, match="the headers of one member have more than 0 MiB"):
        listed(data)
    # of each member, not of all together
    monkeypatch.setattr(tar, "ARCHIVE_HEADER_BYTES", 3 * BLOCK)
    assert len(listed(tarred(*((info(f"f{number}"), b"") for number in range(30))))[1]) == 30


@pytest.mark.parametrize("size", [-1, -512])
def test_a_size_below_nothing_is_a_damaged_header(size):
    data = bytearray(tarred((info("first"), B), (info("a"), A)))
    header = data[2 * BLOCK : 3 * BLOCK]
    header[124:136] = (size % (1 << 96)).to_bytes(12, "big")  # base 256
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    data[2 * BLOCK : 3 * BLOCK] = header
    problem, found, _ = listed(bytes(data))
    assert (problem, list(found)) == ("the header of a is damaged", ["first"])
