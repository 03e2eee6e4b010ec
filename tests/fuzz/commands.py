"""Whole commands over hostile directories, texts and documents: one clear answer, never an internal error.

An input is a pack of files, so that one that breaks a command can be kept and fed again.
"""

import hashlib
import io
import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kaudit.cli.app import run
from kaudit.cli.exits import ExitCode
from tests.fuzz import outcomes
from tests.fuzz.mutation import changed_document, mutated

_ENTRY = struct.Struct(">BI")
_FORMATS = ("json", "table", "jsonl", "sarif", "junit", "markdown", "github", "gitlab", "concise")
_CODE = re.compile(r"\bKA[0-9]{3}\b")
AUDITS = ("scan", "timeline", "producers")


def pack(files: Mapping[str, bytes]) -> bytes:
    """One input of these files, by path."""
    return b"".join(
        _ENTRY.pack(len(name.encode()), len(content)) + name.encode() + content for name, content in files.items()
    )


def unpack(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of an input; of one that was changed, those that can still be made out and stay where they belong."""
    at = 0
    while at + _ENTRY.size <= len(data):
        name_size, size = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        name = data[at : at + name_size].decode(errors="replace").replace("\0", "")
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if parts and max(len(part.encode()) for part in parts) < 200:
            yield "/".join(parts), data[at + name_size : at + name_size + size]
        at += name_size + size


def directories(data: bytes) -> None:
    """Every command that takes logs, over the pack and over its two halves as replicas."""
    choice = sum(data[:64]) + len(data)
    with in_directory(data):
        shown = _FORMATS[choice % len(_FORMATS)]
        for command in AUDITS:
            _answered([command, ".", "--output-format", "json"])
        _answered(["scan", ".", "--depth", "records", "--output-format", shown])
        _answered(["dedup", ".", "--depth", ("crc", "records")[choice % 2], "--output-format", "json"])
        for listing in ("transactions", "groups"):
            _answered([listing, ".", "--output-format", "json"])
        _answered(["inspect", ".", "--records", "--output-format", "jsonl"])
        _answered(["inspect", "."])
        if Path("b1").is_dir() and Path("b2").is_dir():
            _answered(["diff", "b1", "b2", "--output-format", "json"])
            _answered(["diff", "b1", "b2"])
            # what the copies hold by their fingerprints, with a narrower one where they differ
            _answered(["diff", "--fingerprint", "b1", "-o", "1.json"])
            if Path("1.json").exists():
                _answered(["diff", "--fingerprint", "1.json", "b2", "-o", "2.json"])
                _answered(["diff", "1.json", "b2"])
            if Path("2.json").exists():
                _answered(["diff", "2.json", "b1", "--output-format", "json"])


def fingerprint_files(data: bytes) -> None:
    """The fingerprint of one half, with some of its values changed, against the other half and against itself."""
    random = Random(data)
    with in_directory(data):
        if not Path("b1").is_dir() or not Path("b2").is_dir():
            return
        _answered(["diff", "--fingerprint", "b1", "-o", "1.json"])
        if not Path("1.json").exists():
            return
        _answered(["diff", "--fingerprint", "1.json", "b2", "-o", "2.json"])
        for name in ("1.json", "2.json"):
            if not Path(name).exists():
                continue
            document = json.loads(Path(name).read_text(encoding="utf-8"))
            for _ in range(3):
                changed_document(random, document)
                Path("changed.json").write_text(json.dumps(document), encoding="utf-8")
                _answered(["diff", "changed.json", "b2", "--output-format", random.choice(("json", "table"))])
                _answered(["diff", "changed.json", "1.json"])
                _answered(["diff", "--fingerprint", "changed.json", "b2", "-o", "answer.json"])


def watch_states(data: bytes) -> None:
    """A watch that goes on from a state that another one saved, with some of its values changed."""
    random = Random(data)
    with in_directory(data):
        watch = ["watch", ".", "--state", "state", "--until-idle", "0s", "--output-format", "jsonl"]
        _answered(watch)
        if not Path("state").exists():
            return
        head, _, body = Path("state").read_bytes().partition(b"\n")
        document = json.loads(body)
        changed_document(random, document)
        changed = json.dumps(document).encode()
        sealed = json.loads(head) | {"bytes": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
        if not random.randrange(4):
            changed_document(random, sealed)
        Path("state").write_bytes(json.dumps(sealed).encode() + b"\n" + changed)
        _answered(watch)


def scan_states(data: bytes) -> None:
    """A scan that goes on from a state whose files were changed: what it says of the log stays the same."""
    random = Random(data)
    with in_directory(data), TemporaryDirectory() as elsewhere:
        scan = ["scan", ".", "--state", f"{elsewhere}/state", "--reproducible", "--output-format", "json"]
        whole = _answered(scan)
        files = sorted(path for path in Path(elsewhere).rglob("*") if path.is_file())
        for path in random.choices(files, k=min(2, len(files))):
            path.write_bytes(mutated(random, [path.read_bytes()]))
        again = _answered(scan)
        assert not again or again == whole


def texts(data: bytes) -> None:
    """Texts of kafka-dump-log, whatever the commands make of them."""
    with in_directory(data) as names:
        for command in AUDITS:
            _answered([command, *names, "--output-format", "json"])
        _answered(["inspect", *names, "--records"])


def attempts(data: bytes) -> None:
    """Lines of attempts, in every format."""
    with in_directory(data) as names:
        for name in names:
            _answered(["replay", name, "--output-format", "jsonl", "-v"])
            _answered(["replay", name])


def server_logs(data: bytes) -> None:
    """Log directories with the logs of their brokers and clients: what a scan and `attempts` take from these, and replay of that."""
    with in_directory(data) as names:
        given = [
            argument
            for name in names
            if name.endswith(".log") and "/" not in name
            for argument in (f"--{name.rsplit('.', 2)[-2]}-log", name)
        ]
        for command in ("scan", "timeline"):
            _answered([command, ".", *given, "--output-format", "json"])
        logs = [argument for name in names if name.endswith("server.log") for argument in ("--server-log", name)]
        made = _answered(["attempts", ".", "--broker-version", ("2.0.1", "4.0.0")[len(data) % 2], *logs])
        Path("attempts.jsonl").write_text(made)
        if made:
            _answered(["replay", "attempts.jsonl", "--output-format", "jsonl"])


def saved(data: bytes) -> None:
    """A saved report, in every format; and as a baseline."""
    with in_directory(data) as names:
        for name in names:
            for shown in _FORMATS:
                out = _answered(["report", name, "--output-format", shown])
                assert "\0" not in out, shown


class in_directory:  # noqa: N801 - used as a function is
    """The files of an input in a directory of their own, and that is the working directory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._directory = TemporaryDirectory()
        self._inside = chdir(self._directory.name)

    def __enter__(self) -> Sequence[str]:
        names = []
        for name, content in unpack(self._data):
            path = Path(self._directory.name, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:
                continue  # a file where a directory should be
            names.append(name)
        self._inside.__enter__()
        return names or ["nothing"]

    def __exit__(self, *_: object) -> None:
        self._inside.__exit__(None, None, None)
        self._directory.cleanup()


def _answered(arguments: Sequence[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    os.environ["KAUDIT_DEBUG"] = "1"
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*arguments])
    assert code != ExitCode.INTERNAL, f"{' '.join(arguments)}: {err.getvalue()[-2000:]}"
    outcomes.note(
        arguments[0],
        ExitCode(code).name,
        *sorted(set(_CODE.findall(out.getvalue()))),
        err.getvalue().partition("\n")[0],
    )
    return out.getvalue()
