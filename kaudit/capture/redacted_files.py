"""The files beside segments with hashes in place of names: numbers stay, and where a file is damaged nothing but its numbers."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import numpy as np

from kaudit.capture.account import parse_account
from kaudit.capture.directory import OccupiedError
from kaudit.capture.redacted_segments import Moves
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import (
    MetaProperties,
    meta_properties,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_partition_metadata,
)
from kaudit.results.redaction import Redactor
from kaudit.source.file_kinds import (
    CAPTURE_ACCOUNT,
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT_NAMES,
    PARTITION_METADATA,
)

NUMERIC: Final = frozenset({"index", "timeindex", "txnindex", "snapshot"})
"""Kinds of files that hold numbers alone."""
_NO_NUMBER: Final = re.compile(rb"[^\s\d+-]")
_ROW: Final = re.compile(rb"(?P<topic>\S+)(?P<rest>[ \t]+-?\d+[ \t]+-?\d+[ \t]*)").fullmatch
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_NODES: Final = frozenset({"broker.id", "node.id"})
_KEPT_KEYS: Final = frozenset({"data_version", "version"})
_PAIRS: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])


def redacted_file(name: str, data: bytes, redactor: Redactor) -> bytes | None:
    """Return what stands for a text file of a log directory, None if kaudit knows no such file."""
    rewrite = _REWRITES.get(name)
    return None if rewrite is None else rewrite(data, redactor)


def moved_index(data: bytes, moves: Moves) -> bytes:
    """Return an offset index whose rows point to where their batches lie in the copy; a row of zeros stays."""
    rows = np.frombuffer(data[: len(data) // _PAIRS.itemsize * _PAIRS.itemsize], dtype=_PAIRS).copy()
    positions = rows["position"]
    for at in np.flatnonzero(positions > 0):
        positions[at] = min(moves(int(positions[at])), np.iinfo(np.int32).max)
    return rows.tobytes() + data[len(rows) * _PAIRS.itemsize :]


def _offsets(data: bytes, redactor: Redactor) -> bytes:
    """Rows of topic, partition and offset."""
    lines = []
    for line in data.split(b"\n"):
        row = _ROW(line)
        topic = None if row is None else row["topic"].decode("utf-8", "surrogateescape")
        lines.append(_numbers(line) if row is None or topic is None else redactor.topic(topic).encode() + row["rest"])
    return b"\n".join(lines)


def _numbers(data: bytes, _: Redactor | None = None) -> bytes:
    return _NO_NUMBER.sub(b"x", data)


def _meta(data: bytes, redactor: Redactor) -> bytes:
    try:
        found = parse_meta_properties(data)
    except WireError:
        return _numbers(data)
    others = tuple(
        (key, value) if key in _NODES and value.isdecimal() else (redactor.name(key, key), redactor.name(key, value))
        for key, value in found.others
    )
    ids = (_id(found.cluster_id, redactor), _id(found.directory_id, redactor))
    return meta_properties(MetaProperties(found.version, found.node_id, *ids, others)).encode("ascii", "replace")


def _id(text: str | None, redactor: Redactor) -> str | None:
    """Return an id as it is where Kafka drew it at random."""
    return text if text is None or _ID.fullmatch(text) else redactor.name("id", text)


def _partition(data: bytes, _: Redactor) -> bytes:
    try:
        parse_partition_metadata(data)
    except WireError:
        return _numbers(data)
    return data


def _clean_shutdown(data: bytes, _: Redactor) -> bytes:
    try:
        epoch = parse_clean_shutdown(data)
    except WireError:
        return _numbers(data)
    return b"" if epoch is None else msgspec.json.encode({"version": 0, "brokerEpoch": epoch})


def _quorum(data: bytes, redactor: Redactor) -> bytes:
    def named(value: object, key: str) -> object:
        if isinstance(value, dict):
            return {name: named(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [named(item, key) for item in value]
        return _id(value, redactor) if isinstance(value, str) and value and key not in _KEPT_KEYS else value

    try:
        return msgspec.json.encode(named(msgspec.json.decode(data), ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _numbers(data)


def _account(data: bytes, redactor: Redactor) -> bytes:
    try:
        account = parse_account(data, "")
    except OccupiedError:
        return _numbers(data)
    account.topics = {redactor.topic(topic): config for topic, config in account.topics.items()}
    for part in account.partitions:
        part.topic = redactor.topic(part.topic)
        part.problem = None if part.problem is None else "redacted"
    for run in account.runs:
        run.servers = ",".join(redactor.name("host", server) for server in run.servers.split(","))
    return account.text().encode()


_REWRITES: Final[Mapping[str, Callable[[bytes, Redactor], bytes]]] = {
    **dict.fromkeys(OFFSET_CHECKPOINT_NAMES, _offsets),
    LEADER_EPOCH_CHECKPOINT: _numbers,
    META_PROPERTIES: _meta,
    PARTITION_METADATA: _partition,
    CLEAN_SHUTDOWN: _clean_shutdown,
    "quorum-state": _quorum,
    CAPTURE_ACCOUNT: _account,
}
