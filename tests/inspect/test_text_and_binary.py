"""Rows of every text kafka-dump-log made, from 0.11's to 4.2's, against the rows of the files it was made from."""

import functools
from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from kaudit.formats.dump_text.rows import DumpFile
from kaudit.formats.dump_text.text import read_dump
from kaudit.inspect.rows import identify_by_name
from kaudit.inspect.walk import InspectOptions, inspect_rows
from kaudit.source.inspect_columns import INSPECT_TABLES
from kaudit.source.uri import Uri
from tests.formats.archives import CAPTURES, ORACLES

# what no text prints: it names the directory the tool ran in; the coordinator epoch is a record's
NEVER_PRINTED = {"topic", "partition", "replica", "segment", "base_timestamp", "control_type", "coordinator_epoch"}
# what every text prints of a batch (of magic 2)
ALWAYS_PRINTED = {
    "position",
    "size",
    "base_offset",
    "last_offset",
    "magic",
    "crc",
    "crc_valid",
    "codec",
    "max_timestamp",
}
RECORD_FIELDS = (
    "position",
    "offset",
    "timestamp",
    "timestamp_type",
    "producer_id",
    "producer_epoch",
    "leader_epoch",
    "sequence",
    "is_transactional",
)
MARKER_FIELDS = ("offset", "timestamp", "producer_id", "producer_epoch", "leader_epoch")
SIDE_FIELDS = {
    "snapshot": (
        "snapshot_offset",
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_offset",
        "coordinator_epoch",
    ),
    "txnindex": ("producer_id", "first_offset", "last_offset", "last_stable_offset"),
}
CONTROL_FIELDS = ("position", "offset", "timestamp", "control_type", "type_id")
# what a record of an internal topic means; what else its row has is of the batch, and compared there
CONTENT_ROWS = ("txn_state", "metadata", "offset_commit", "group_metadata")
OF_THE_BATCH = {"replica", "segment", "topic", "partition", "file", "line", "size"}


@pytest.fixture(autouse=True)
def _rows_held_for_one_test():
    yield
    rows_of.cache_clear()


@functools.cache
def rows_of(path: Path) -> list[dict[str, Any]]:
    return list(inspect_rows(InspectOptions([str(path)], records=True), batches=True))


def parts(text: Path, root: Path):
    """(file, the text's rows of it, the file's own rows) of each file under `root` that a text names."""
    with text.open("rb") as lines:
        names = [row.path for row in read_dump(lines) if isinstance(row, DumpFile)]
    by_file = defaultdict(list)
    for row in rows_of(text):
        by_file[row["topic"], row["partition"], row.get("file") or row["segment"]].append(row)
    for name in names:
        path = root / name
        if path.exists():
            place = identify_by_name(Uri.parse(str(path)))
            yield path, by_file[place.topic, place.partition, path.name], rows_of(path)


def compare(printed, own, where):
    """Compare batch with batch and record with record; return how many."""
    sound = list(takewhile(lambda row: row["row"] != "damage", own))  # behind damage the tool has lost its way, or died
    compared = 0
    for ours, theirs in zip(of(printed, batch=True), of(sound, batch=True), strict=False):
        for field in INSPECT_TABLES["batch"]:
            if field not in NEVER_PRINTED and ours[field] is not None:
                assert ours[field] == theirs[field], (where, field)
        missing = {field for field in ALWAYS_PRINTED if ours[field] is None and theirs[field] is not None}
        assert not missing or ours["magic"] < 2, (where, missing)
        compared += 1
    for ours, theirs in zip(of(printed, batch=False), of(sound, batch=False), strict=False):
        compare_record(ours, theirs, where)
        compared += 1
    if len(sound) == len(own):
        kinds = {row["row"] == "batch" for row in printed}
        assert len(printed) == sum((row["row"] == "batch") in kinds for row in own), where
    return compared


def of(rows, *, batch):
    return [row for row in rows if (row["row"] == "batch") == batch and row["row"] != "damage"]


def compare_record(ours, theirs, where):
    kind = theirs["row"]
    if kind in SIDE_FIELDS:
        assert ours["row"] == kind
        for field in SIDE_FIELDS[kind]:
            assert ours[field] == theirs[field], (where, field)
        return
    if kind == "marker":
        # without --print-data-log, versions before 2.3 print no markers, only their sizes
        fields: Iterable[str] = (
            (*MARKER_FIELDS, "control_type", "coordinator_epoch") if ours["row"] == "marker" else MARKER_FIELDS
        )
    elif kind in CONTENT_ROWS:
        # the tool prints what a record means only where it was asked to
        fields = (set(ours) if ours["row"] == kind else {"position", "offset", "timestamp"}) - OF_THE_BATCH
        assert ours["row"] in (kind, "record")
    else:
        fields = CONTROL_FIELDS if kind == "control" else RECORD_FIELDS
    for field in fields:
        if ours[field] is not None:
            assert ours[field] == theirs[field], (where, theirs["offset"], field)
    assert ours["timestamp"] == theirs["timestamp"] or kind not in ("record", "marker")
    if kind != "record" or str(theirs["topic"]).startswith("__"):
        return
    for name in ("key", "value"):
        if theirs[name] is None or ours[name] is None:
            assert ours[name] == theirs[name], (where, theirs["offset"], name)
            continue
        assert ours[name]["size"] == theirs[name]["size"]
        text = ours[name]["text"]
        assert text is None or text == theirs[name]["text"] or "\ufffd" in text


@pytest.mark.parametrize("capture", CAPTURES)
def test_texts_of_captures(evidence, capture):
    root = evidence.capture(capture)
    compared = 0
    for text in sorted((root / "dumps").glob("*.txt")):
        for path, printed, own in parts(text, root):
            compared += compare(printed, own, f"{text.name}: {path.name}")
    assert compared > 200


TEXTS = ("segments-plain", "segments-deep", "segments-print", "segments-print-deep", "txnstate", "txnstate-print-deep")
SIDES = ("snapshots", "txnindex")
METADATA = ("cluster-metadata", "cluster-metadata-pid1")


@pytest.mark.parametrize("version", ORACLES)
def test_texts_of_five_versions(evidence, version):
    root, dumps = evidence.oracle(version, "logdir") / "main", evidence.oracle(version, "dumps")
    for name in TEXTS + SIDES + METADATA:
        text = dumps / f"{name}.txt"
        if name in METADATA and not text.exists():
            continue
        compared = 0
        meanings = set()
        for path, printed, own in parts(text, root):
            compared += compare(printed, own, f"{version} {name}: {path}")
            meanings |= {row["row"] for row in printed}
        assert compared > (8 if name in SIDES else 30), name
        assert ("txn_state" in meanings) == name.startswith("txnstate")
        assert ("metadata" in meanings) == (name in METADATA)
