"""The state file of a watch: what it reported and how far it read, for the watch that goes on after it.

One line of JSON says whose it is, how long the rest is and what its SHA-256 is; the rest is JSON too. It takes the place
of its predecessor whole, so that a watch that is killed leaves the one before.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kaudit import __version__
from kaudit.cli.streams import whole_file
from kaudit.errors import UsageError
from kaudit.watch.memory import Memory

SCHEMA = "kaudit.watch-state/1"
_LONGEST_HEADER = 1 << 20
_LARGEST = 4 << 30


class _Header(Struct):
    schema: str
    kaudit: str
    inputs: list[str]
    bytes: int
    sha256: str


def load_state(file: Path, inputs: Sequence[str]) -> Memory | None:
    """Return what a state file remembers, None if there is none yet.

    Raises:
        UsageError: it is damaged, no state file, of another version, or of a watch of other inputs.

    """
    try:
        with file.open("rb") as stream:
            first = stream.readline(_LONGEST_HEADER)
            body = stream.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"--state {file} cannot be read: {error.strerror or error}") from error
    header = _header(file, first)
    if header.inputs != _absolute(inputs):
        raise UsageError(f"--state {file}: belongs to a watch of {', '.join(header.inputs)}; name another file")
    if len(body) != header.bytes or hashlib.sha256(body).hexdigest() != header.sha256:
        raise UsageError(f"--state {file}: damaged; delete it to begin again, which reports all findings again")
    try:
        return msgspec.json.decode(body, type=Memory)
    except msgspec.DecodeError as error:
        raise UsageError(f"--state {file}: {error}; delete it to begin again") from error


def save_state(file: Path, inputs: Sequence[str], memory: Memory) -> None:
    """Write the state, whole or not at all.

    Raises:
        UsageError: it cannot be written.

    """
    body = msgspec.json.encode(memory)
    header = _Header(SCHEMA, __version__, _absolute(inputs), len(body), hashlib.sha256(body).hexdigest())
    with whole_file(file, "--state") as out:
        out.write(msgspec.json.encode(header) + b"\n" + body)


def _header(file: Path, line: bytes) -> _Header:
    try:
        schema = json.loads(line).get("schema")
    except (ValueError, AttributeError, RecursionError):
        schema = None
    if not isinstance(schema, str) or not schema.startswith("kaudit.watch-state/"):
        raise UsageError(f"--state {file}: not a state file of kaudit watch")
    if schema != SCHEMA:
        raise UsageError(f"--state {file}: has the form {schema}, this kaudit reads {SCHEMA}; delete it to begin again")
    try:
        return msgspec.json.decode(line, type=_Header)
    except msgspec.DecodeError as error:
        raise UsageError(f"--state {file}: damaged ({error}); delete it to begin again") from error


def _absolute(inputs: Sequence[str]) -> list[str]:
    return sorted(entry if "://" in entry else os.path.realpath(entry) for entry in inputs)
