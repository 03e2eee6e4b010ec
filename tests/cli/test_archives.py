"""An archive of a directory, or a compressed file, gives what the directory or the file gives; hostile ones give one line."""

import io
import json
import os
import re
import shutil
import tarfile
import zipfile
from pathlib import Path
from random import Random

import pytest

from kaudit.cli.exits import ExitCode
from tests.logs import Log, data
from tests.packed import COMPRESSIONS, pack, zip_of

SAMPLES = sorted(path.name for path in Path("samples").iterdir() if path.is_dir())
PACKED = ("tar", "tar.gz", "tar.zst", "zip")
SEGMENT = "00000000000000000000.log"


def document(kaudit, path, *options):
    """Exit code and JSON of a scan, without the time of the run; Kafka's tools open no archive: kaudit's are named for them there."""
    outcome = kaudit("scan", "--output-format", "json", *options, str(path))
    result = json.loads(re.sub(r'"(kafka-dump-log --files|kaudit inspect --at \d+) ', '"show ', outcome.out))
    for name in ("run", "inputs", "paths"):
        result.pop(name, None)
    return outcome.code, result


def as_directory(value, archive: Path, directory: Path):
    text = re.sub(rf"'({re.escape(str(archive))}![^']*)'", r"\1", json.dumps(value))  # a shell needs quotes around !
    return json.loads(text.replace(f"{archive}!", str(directory)).replace(str(archive), str(directory)))


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_sample_is_audited_alike_however_it_is_packed(kaudit, tmp_path, sample):
    root = tmp_path / "root"
    shutil.copytree(Path("samples") / sample, root / sample)
    code, expected = document(kaudit, root)
    for form in PACKED:
        archive = tmp_path / f"evidence.{form}"
        archive.write_bytes(pack(root / sample, form))
        found = document(kaudit, archive)
        assert (form, found[0], as_directory(found[1], archive, root)) == (form, code, expected)


def partition(directory: Path, batches: int = 5) -> Path:
    log = Log()
    for sequence in range(batches):
        log.append(data(7, 0, sequence))
    return log.write(directory)


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_compressed_segment_is_audited_as_the_segment(kaudit, tmp_path, suffix):
    log = Log()
    for sequence in (0, 1, 2, 7, 8):
        log.append(data(7, 0, sequence))
    segment = log.write(tmp_path / "plain/orders-0") / SEGMENT
    code, expected = document(kaudit, segment)
    packed = tmp_path / f"plain/orders-0/{SEGMENT}.{suffix}"
    packed.write_bytes(COMPRESSIONS[suffix](segment.read_bytes()))
    segment.unlink()
    found = document(kaudit, packed)
    assert code == ExitCode.FINDINGS
    assert (
        json.loads(
            json.dumps(found[1]).replace(f"{SEGMENT}.{suffix}!", SEGMENT).replace(f"{SEGMENT}.{suffix}", SEGMENT)
        )
        == expected
    )


def test_segments_compressed_one_by_one_are_one_partition(kaudit, tmp_path):
    log = Log()
    for sequence in range(20):
        log.append(data(7, 0, sequence))
    directory = log.write(tmp_path / "orders-0", segment_starts=(10,))
    names = sorted(path.name for path in directory.glob("*.log"))
    for name in names:
        content = (directory / name).read_bytes()
        (directory / name).unlink()
        (directory / f"{name}.gz").write_bytes(COMPRESSIONS["gz"](content))
    outcome = kaudit("scan", *(str(directory / f"{name}.gz") for name in names))
    assert (outcome.code, "in 2 segments, 1 partition" in outcome.err) == (0, True)


def test_the_name_says_nothing(kaudit, tmp_path):
    partition(tmp_path / "b1/orders-0")
    for name, form in ((SEGMENT, "zip"), ("logs.zip", "tar.gz"), ("orders-0", "tar"), ("dump.txt", "tar.xz")):
        (tmp_path / name).write_bytes(pack(tmp_path / "b1", form))
        outcome = kaudit("scan", str(tmp_path / name))
        assert (outcome.code, "in 1 segment, 1 partition" in outcome.err) == (0, True), outcome.err


def test_a_directory_may_have_the_name_of_an_archives_content(kaudit, tmp_path):
    partition(tmp_path / "logs!/orders-0")
    assert kaudit("scan", str(tmp_path / "logs!")).code == 0


def test_segments_at_the_top_of_an_archive_are_the_partition_that_it_is_called_after(kaudit, tmp_path):
    directory = partition(tmp_path / "orders-0")
    for form, add in (("tar", tar_top), ("zip", zip_top)):
        (tmp_path / f"orders-0.{form}").write_bytes(add(directory))
        found = document(kaudit, tmp_path / f"orders-0.{form}", "--verbose")
        assert [entry["topic"] for entry in found[1]["coverage"]] == ["orders"]


def tar_top(directory):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in directory.iterdir():
            tar.add(path, f"./{path.name}")
    return packed.getvalue()


def zip_top(directory):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as found:
        for path in directory.iterdir():
            found.write(path, path.name)
    return packed.getvalue()


# hostile and damaged ones: one line each, nothing outside of the archive is read


def one_line(kaudit, path, code):
    outcome = kaudit("scan", str(path))
    assert outcome.code == code, outcome.err + outcome.out
    assert "Traceback" not in outcome.err
    return outcome


def tar_with(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def file(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def segment(tmp_path):
    return (partition(tmp_path / "plain/orders-0") / SEGMENT).read_bytes()


HOSTILE = {
    "a name above the archive": (file(f"../orders-1/{SEGMENT}"), "leads out of the archive"),
    "a link to a file outside": (
        file(f"orders-1/{SEGMENT}", tarfile.SYMTYPE, "/etc/passwd"),
        "a symbolic link in an archive",
    ),
    "a hard link to a file outside": (
        file(f"orders-1/{SEGMENT}", tarfile.LNKTYPE, "/etc/passwd"),
        "a hard link to /etc/passwd",
    ),
    "a device": (file(f"orders-1/{SEGMENT}", tarfile.CHRTYPE), "a device in an archive"),
    "a named pipe": (file(f"orders-1/{SEGMENT}", tarfile.FIFOTYPE), "a named pipe in an archive"),
    "a directory in a file": (file(f"orders-0/{SEGMENT}/{SEGMENT}"), "both a file and a directory"),
    "a name of a hundred directories": (file("a/" * 100 + SEGMENT), "its name has more than"),
    "a name of a megabyte": (file("a" * 1_000_000), "its name has more than"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_tar_must_not_hold_is_named_and_the_rest_is_audited(kaudit, tmp_path, segment, case):
    info, said = HOSTILE[case]
    (tmp_path / "x.tar").write_bytes(tar_with((file(f"orders-0/{SEGMENT}"), segment), (info, b"")))
    outcome = one_line(kaudit, tmp_path / "x.tar", ExitCode.UNREADABLE)
    assert outcome.out.count(said) == 1
    assert len(outcome.out) < 5000


@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.zst", "tar.xz", "tar.bz2", "tar.lz4"])
def test_the_batches_before_the_end_of_a_truncated_tar_are_audited(kaudit, tmp_path, form):
    log = Log()
    random = Random(5)
    for sequence in range(2000):
        log.append(data(7, 0, sequence, payload=random.randbytes(1500)))  # bzip2 has blocks of 900 kB
    log.write(tmp_path / "orders-0")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        out.add(tmp_path / "orders-0" / SEGMENT, f"b1/orders-0/{SEGMENT}")
    packed = tar.getvalue() if form == "tar" else COMPRESSIONS[form.removeprefix("tar.")](tar.getvalue())
    archive = tmp_path / f"x.{form}"
    archive.write_bytes(packed[: len(packed) * 3 // 4])
    outcome = kaudit("scan", str(archive), "-v")
    assert outcome.code == ExitCode.UNREADABLE, outcome.out
    assert "what comes after that is not checked" in outcome.out
    assert "the archive ends after" in outcome.out
    assert "error[" not in outcome.out
    assert re.findall(r"warning\[(\w+)", outcome.out) == ["KA012"]
    (there,) = re.findall(r"KA012.*after ([0-9,]+) of its", outcome.out)
    assert int(there.replace(",", "")) > 1_500_000


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_the_batches_before_the_end_of_a_truncated_segment_are_audited(kaudit, tmp_path, suffix):
    log = Log()
    for sequence in range(4000):
        log.append(data(7, 0, sequence, payload=sequence.to_bytes(4, "big") * 16))
    segment = log.write(tmp_path / "orders-0") / SEGMENT
    packed = COMPRESSIONS[suffix](segment.read_bytes())
    (tmp_path / f"orders-0/{SEGMENT}.{suffix}").write_bytes(packed[: len(packed) - 100])
    outcome = kaudit("scan", str(tmp_path / f"orders-0/{SEGMENT}.{suffix}"), "-v")
    assert outcome.code == ExitCode.UNREADABLE, outcome.out
    assert outcome.out.count("what comes after that is not checked") == 1
    assert "error[" not in outcome.out


def flagged(packed: bytes, bit: int) -> bytes:
    """The zip with a flag set in every entry of its directory."""
    data = bytearray(packed)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= bit
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(data)


def test_an_encrypted_zip_is_named(kaudit, tmp_path, segment):
    (tmp_path / "x.zip").write_bytes(flagged(zip_of(tmp_path / "plain"), 1))
    outcome = one_line(kaudit, tmp_path / "x.zip", ExitCode.UNREADABLE)
    assert outcome.err.count("encrypted: kaudit asks for no passwords") == 1


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_whose_checksum_does_not_hold_is_not_audited(kaudit, tmp_path, segment, method):
    data = bytearray(zip_of(tmp_path / "plain", method))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 16] ^= 0x10
        at = data.find(b"PK\x01\x02", at + 1)
    (tmp_path / "x.zip").write_bytes(data)
    outcome = one_line(kaudit, tmp_path / "x.zip", ExitCode.UNREADABLE)
    assert "its size or its CRC-32 is not what the zip says" in outcome.out


def test_a_zip_of_zip64_is_audited(kaudit, tmp_path, segment):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as found, found.open(f"b1/orders-0/{SEGMENT}", "w", force_zip64=True) as out:
        out.write(segment)
    (tmp_path / "x.zip").write_bytes(packed.getvalue())
    assert kaudit("scan", str(tmp_path / "x.zip")).code == 0


class Pipe(io.RawIOBase):
    """What a zip is written to when it cannot go back: sizes follow the files then."""

    def __init__(self):
        super().__init__()
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += data
        return len(data)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_files_before_the_end_of_a_truncated_zip_are_audited(kaudit, tmp_path, streamed):
    for number, batches in enumerate((4000, 200, 200, 200)):  # the first is longer than what is inflated at once
        partition(tmp_path / f"b1/orders-{number}", batches)
    out = Pipe() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as found:
        for number in range(4):
            found.write(tmp_path / f"b1/orders-{number}" / SEGMENT, f"b1/orders-{number}/{SEGMENT}")
    data = bytes(out.data) if isinstance(out, Pipe) else out.getvalue()
    (tmp_path / "x.zip").write_bytes(data[: data.rfind(b"PK\x03\x04") + 200])
    outcome = one_line(kaudit, tmp_path / "x.zip", ExitCode.UNREADABLE)
    assert "in 3 segments, 3 partitions" in outcome.err
    assert "it has no directory at its end" in outcome.out
    assert f"b1/orders-3/{SEGMENT}: cut off" in outcome.out


def test_a_hard_link_is_the_file_that_it_names(kaudit, tmp_path, segment):
    link = file(f"copy/orders-0/{SEGMENT}", tarfile.LNKTYPE, f"b1/orders-0/{SEGMENT}")
    (tmp_path / "x.tar").write_bytes(tar_with((file(f"b1/orders-0/{SEGMENT}"), segment), (link, b"")))
    outcome = kaudit("scan", str(tmp_path / "x.tar"))
    assert (outcome.code, "in 2 segments, 2 partitions" in outcome.err) == (0, True)


def test_names_that_occur_twice_and_absolute_names_are_read_as_when_unpacking(kaudit, tmp_path, segment):
    name = f"/orders-0/{SEGMENT}"
    (tmp_path / "x.tar").write_bytes(tar_with((file(name), b"old"), (file(name), segment)))
    outcome = kaudit("scan", str(tmp_path / "x.tar"), "-v")
    assert outcome.code == 0, outcome.out
    assert "there more than once: the last is read" in outcome.out
    assert "its name begins with /" in outcome.out


@pytest.mark.parametrize("form", ["gz", "xz", "zst"])
def test_an_archive_in_a_compressed_file_is_refused_in_a_line(kaudit, tmp_path, segment, form):
    (tmp_path / "x").write_bytes(COMPRESSIONS[form](zip_of(tmp_path / "plain")))
    outcome = one_line(kaudit, tmp_path / "x", ExitCode.UNREADABLE)
    assert "unpack the outer one" in outcome.err
    assert outcome.err.count("\n") == 1


def test_other_archives_are_refused_in_a_line(kaudit, tmp_path):
    (tmp_path / "logs.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(600))
    outcome = one_line(kaudit, tmp_path / "logs.7z", ExitCode.UNREADABLE)
    assert "7z: kaudit reads .tar, .zip, .gz, .bz2, .xz, .zst and .lz4; unpack it" in outcome.err


def test_a_file_with_holes_is_read_with_them(kaudit, tmp_path, segment):
    # as GNU tar --sparse --format=gnu writes it: the beginning, then a hole to the end
    size = len(segment) + 100_000
    info = file(f"b1/orders-0/{SEGMENT}")
    info.mtime = 1_800_000_000
    header = bytearray(tar_with((info, segment))[:512])
    header[156:157] = b"S"
    header[257:265] = b"ustar  \0"
    header[386:398] = b"00000000000\0"
    header[398:410] = f"{len(segment):011o}\0".encode()
    header[410:422] = f"{size:011o}\0".encode()
    header[422:434] = b"00000000000\0"
    header[483:495] = f"{size:011o}\0".encode()
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "x.tar").write_bytes(bytes(header) + segment + bytes(-len(segment) % 512) + bytes(1024))
    plain = tmp_path / "y/b1/orders-0"
    plain.mkdir(parents=True)
    (plain / SEGMENT).write_bytes(segment + bytes(100_000))
    os.utime(plain / SEGMENT, (info.mtime, info.mtime))
    code, expected = document(kaudit, tmp_path / "y")
    found = document(kaudit, tmp_path / "x.tar")
    assert (found[0], as_directory(found[1], tmp_path / "x.tar", tmp_path / "y")) == (code, expected)


def test_compressed_files_in_an_archive_are_read_and_archives_in_it_are_named(kaudit, tmp_path, segment):
    log = b"[2026-11-22 03:00:00,000] INFO [ReplicaManager broker=1] Stopping serving replica (kafka.server.ReplicaManager)\n"
    inner = zip_of(tmp_path / "plain")
    members = (
        (file(f"b1/orders-0/{SEGMENT}"), segment),
        (file("b1/logs/server.log.2026-11-22-03.gz"), COMPRESSIONS["gz"](log)),
    )
    (tmp_path / "x.tar").write_bytes(tar_with(*members))
    outcome = kaudit("scan", "-v", "--output-format", "json", str(tmp_path / "x.tar"))
    assert outcome.code == 0
    assert "x.tar!/b1/logs/server.log.2026-11-22-03.gz" in outcome.out
    (tmp_path / "y.tar").write_bytes(
        tar_with((file("inner.zip"), inner), (file("inner.tar.gz"), COMPRESSIONS["gz"](tar_with())))
    )
    outcome = one_line(kaudit, tmp_path / "y.tar", ExitCode.UNREADABLE)
    assert "an archive in an archive: unpack the outer one" in outcome.err
    assert outcome.err.count("\n") == 1
