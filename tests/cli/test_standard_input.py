"""`-` among the inputs: what comes on standard input, a file or a pipe, of any kind that kaudit reads."""

import gzip
import json
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest

from kaudit.source import standard_input
from kaudit.source.bytes import LocalFile
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri
from tests.logs import Log, data

ROOT = Path(__file__).parents[2]
LINE = (
    b"[2024-06-24 08:11:02,411] ERROR [ReplicaManager broker=2] Error processing append operation on partition merchants-0"
    b" (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for"
    b" producer 29003 at offset 1641969 in partition merchants-0: 158 (incoming seq. number), 155 (current end sequence number)\n"
)


def run(*arguments: str, **more):
    return subprocess.run(
        [sys.executable, "-m", "kaudit", *arguments], cwd=ROOT, capture_output=True, check=False, timeout=120, **more
    )


def document(*arguments: str, **more):
    done = run("scan", "--output-format", "json", "--reproducible", *arguments, **more)
    return done.returncode, json.loads(done.stdout)


def gap() -> bytes:
    """A segment that lacks sequences of its producer, under no gap in the offsets."""
    log = Log()
    log.append(data(7, 0, 0, 3))
    log.append(data(7, 0, 9, 3))
    return log.encode()


def test_a_log(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(LINE)
    with path.open("rb") as held:
        found = [document("-", input=LINE), document("-", stdin=held), document("-", input=gzip.compress(LINE))]
    for code, result in found:
        assert code == found[0][0]
        assert result["log_events"]["events"] == {"out_of_order_sequence": 1}
        assert [file["path"] for file in result["log_events"]["files"]] == ["-"]
        assert result["inputs"] == ["-"]


def test_a_segment_under_the_name_that_is_given():
    code, result = document("--topic", "orders", "--partition", "3", "-", input=gap())
    assert (code, [(one["code"], one["topic"], one["partition"]) for one in result["findings"]]) == (
        1, [("KA104", "orders", 3)],
    )  # fmt: skip
    code, result = document("-", input=gap())
    (finding,) = result["findings"]
    assert (finding["topic"], finding["partition"]) == ("stdin", 0)
    assert finding["next"] == ["kaudit timeline - --producer-id 7"]


def test_an_archive_of_a_log_directory():
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(ROOT / "samples/zombie", "zombie")
    code, piped = document("-", input=packed.getvalue())
    expected_code, expected = document("samples/zombie")
    assert code == expected_code
    assert [one["fingerprint"] for one in piped["findings"]] == [one["fingerprint"] for one in expected["findings"]]


@pytest.mark.parametrize(("content", "what"), [(b"", "an empty file"), (bytes(range(256)), "binary data")])
def test_what_is_no_evidence_is_one_line(content, what):
    done = run("scan", "-", input=content)
    assert (done.returncode, done.stdout) == (3, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"kaudit: nothing to audit under -: no segment file but {what}; expected are ")


@pytest.fixture
def stands_on(monkeypatch):
    """Makes a file this process' standard input."""
    with ExitStack() as opened:
        yield lambda path: monkeypatch.setattr("sys.stdin", opened.enter_context(Path(path).open("rb")))


def test_a_pipe_that_is_too_long_is_refused(stands_on, monkeypatch):
    monkeypatch.setattr(standard_input, "STANDARD_INPUT_BYTES", 1 << 20)
    monkeypatch.setattr(standard_input, "COPIED_AT_ONCE", 1 << 16)
    stands_on("/dev/zero")
    with pytest.raises(OSError, match="more than 0 GiB: write it to a file, and give that"):
        standard_input.StandardInput().status(Uri.parse("-"))


def test_a_process_that_was_not_forked_cannot_read_it(monkeypatch):
    monkeypatch.setattr(standard_input, "parent_process", lambda: "kaudit")
    with pytest.raises(OSError, match="by the process alone that kaudit was started as"):
        standard_input.StandardInput().read_start(Uri.parse("-"), 9)


def test_it_is_a_file_without_a_place(tmp_path, stands_on):
    path = tmp_path / "held"
    path.write_bytes(b"0123456789")
    stands_on(path)
    held, place = standard_input.StandardInput(), Uri.parse("-")
    assert (held.status(place).size, held.read_start(place, 4), held.identity(place)) == (10, b"0123", "-")
    with pytest.raises(NotADirectoryError):
        held.entries(place)
    source = held.open(place)
    assert isinstance(source, LocalFile)
    source.close()


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = Uri.parse("-")
    assert (str(place), str(place.absolute()), place.name, str(place.parent), place.is_local) == (
        "-",
        "-",
        "stdin",
        "stdin",
        True,
    )
    assert str(place.content.absolute()) == "-!"
    (tmp_path / "-").write_bytes(b"a file that is called so")
    for text in ("./-", f"{tmp_path}/-"):
        file = Uri.parse(text)
        assert (str(file), file.is_stdin) == (f"{tmp_path}/-", False)
        assert filesystem(file).read_start(file, 6) == b"a file"
