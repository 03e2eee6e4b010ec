"""An archive of a directory, or a compressed file, gives what the directory or the file gives; hostile ones give one line."""

import io
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from kaudit.cli.exits import ExitCode
from tests.logs import Log, data
from tests.packed import COMPRESSIONS, pack

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
