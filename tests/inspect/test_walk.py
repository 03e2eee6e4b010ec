"""What `inspect` makes of paths: which segments are opened, and files that the operating system refuses to read."""

import builtins
import os
import re
from pathlib import Path

import pytest

from kaudit.errors import NothingToAuditError, UsageError
from kaudit.inspect import walk
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.walk import InspectOptions, inspect_rows
from tests.logs import Log, data

COUNT = 6


@pytest.fixture
def orders(tmp_path):
    """A partition of six segments with one batch each."""
    log = Log(next_offset=10)
    for sequence in range(COUNT):
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "data" / "orders-3", segment_starts=tuple(range(10, 10 + COUNT)))
    return tmp_path / "data"


def rows_of(*paths, batches=True, **options):
    return list(inspect_rows(InspectOptions([str(path) for path in paths], **options), batches=batches))


@pytest.mark.parametrize(
    ("offset", "shown"),
    [(0, [10, 11]), (10, [10, 11]), (11, [10, 11, 12]), (14, [13, 14, 15]), (15, [14, 15]), (99, [14, 15])],
)
def test_around_an_offset_its_segment_is_opened_and_one_on_each_side(orders, offset, shown):
    assert [row["base_offset"] for row in rows_of(orders, around=offset)] == shown


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, {"file"}),
        ({"topic": "orders"}, {"file"}),
        ({"around": 12}, {"batch"}),
        ({"records": True}, {"batch", "record"}),
        ({"wanted": RowFilter(first_offset=12)}, {"batch"}),
    ],
)
def test_of_a_directory_batches_are_shown_where_they_are_asked_for(orders, options, kinds):
    """As `--batches` does; else its files are listed."""
    assert {row["row"] for row in rows_of(orders, batches=False, **options)} == kinds


def test_a_directory_is_searched_to_a_depth_and_says_where_it_is_deeper(orders, monkeypatch):
    monkeypatch.setattr(walk, "MAX_DEPTH", 2)
    deep = orders / "orders-3" / "a" / "b"
    deep.mkdir(parents=True)
    (deep.parent / "seen").write_text("?")
    (deep / "not-seen").write_text("?")
    rows = [row for row in rows_of(orders, batches=False) if not str(row["file"]).endswith(".log")]
    assert [(row["row"], row["file"], row.get("detail")) for row in rows] == [
        ("file", "orders-3/a/seen", None),
        ("damage", str(deep), "deeper than 2 directories"),
    ]


def test_a_directory_that_is_linked_into_itself_is_listed_once(orders):
    (orders / "orders-3" / "again").symlink_to(orders)
    assert len(rows_of(orders, batches=False)) == COUNT


@pytest.fixture
def refused(monkeypatch):
    """Names of files and directories that cannot be opened, each with the error."""
    errors: dict[str, OSError] = {}

    def refusing(function):
        def call(path, *arguments, **options):
            name = Path(path).name if isinstance(path, str | os.PathLike) else ""
            if name in errors:
                raise errors[name]
            return function(path, *arguments, **options)

        return call

    for module, name in ((os, "open"), (os, "scandir"), (builtins, "open")):
        monkeypatch.setattr(module, name, refusing(getattr(module, name)))
    return errors


SECOND = "00000000000000000011.log"
REFUSALS = [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError(), "OSError")]


@pytest.mark.parametrize(("error", "detail"), REFUSALS)
def test_a_segment_that_cannot_be_read_is_a_row_among_the_others(orders, refused, error, detail):
    refused[SECOND] = error
    rows = rows_of(orders)
    assert [row.get("base_offset") for row in rows] == [10, None, 12, 13, 14, 15]
    assert rows[1] == {
        "row": "damage", "topic": "orders", "partition": 3, "replica": "data", "segment": SECOND, "file": SECOND,
        "kind": "unreadable", "detail": detail,
    }  # fmt: skip


@pytest.mark.parametrize(("error", "detail"), REFUSALS)
def test_a_file_that_cannot_be_read_is_a_row_of_the_list(orders, refused, error, detail):
    (orders / "orders-3" / "odd").write_text("?")
    refused[SECOND] = refused["odd"] = error
    files = {row["file"]: (row["status"], row["detail"]) for row in rows_of(orders, batches=False)}
    assert [files.pop(f"orders-3/{name}") for name in (SECOND, "odd")] == [("unreadable", detail)] * 2
    assert {status for status, _ in files.values()} == {"ok"}


@pytest.mark.parametrize(("error", "detail"), REFUSALS)
def test_a_directory_that_cannot_be_listed_is_a_row_of_the_list(orders, refused, error, detail):
    (orders / "pay-0").mkdir()
    refused["pay-0"] = error
    (row,) = [row for row in rows_of(orders, batches=False) if row["row"] == "damage"]
    assert row == {"row": "damage", "file": str(orders / "pay-0"), "kind": "unreadable", "detail": detail}


@pytest.mark.parametrize(
    "options",
    [{"topic": "pay"}, {"partition": 4}, {"topic": "orders", "partition": 0}, {"topic": "pay", "partition": 3}],
)
def test_a_directory_without_what_was_asked_for_holds_nothing(orders, options):
    with pytest.raises(NothingToAuditError, match="no partition with segments"):
        rows_of(orders, **options)


@pytest.mark.parametrize("options", [{"topic": "orders"}, {"partition": 3}, {"topic": "orders", "partition": 3}, {}])
def test_topics_and_partitions_of_a_directory_are_chosen(orders, options):
    assert len(rows_of(orders, **options)) == COUNT


def test_at_needs_a_byte_of_a_file_of_batches(orders):
    path = orders / "orders-3" / SECOND
    size = path.stat().st_size
    for at in (-1, size, size + 1):
        with pytest.raises(UsageError, match=f"has {size} bytes"):
            rows_of(path, at=at)
    for at in (0, size - 1):
        assert [row["field"] for row in rows_of(path, at=at) if row["here"]] == [
            "base_offset" if at == 0 else "payload"
        ]
    (orders / "leader-epoch-checkpoint").write_text("0\n0\n")
    with pytest.raises(UsageError, match="not a segment"):
        rows_of(orders / "leader-epoch-checkpoint", at=0)
    with pytest.raises(UsageError, match="is a directory"):
        rows_of(orders, at=0)


def test_a_damage_is_judged_by_the_segments_behind_it(orders, refused, tmp_path):
    """A torn end is cut off where brokers read the last segment; before it they load the log as it is."""
    directory = orders / "orders-3"
    names = sorted(path.name for path in directory.iterdir())
    for name in names:
        path = directory / name
        path.write_bytes(path.read_bytes() + path.read_bytes()[:-3])
    (directory / "00000000000000000099.index").write_bytes(b"")  # no segment
    verdicts = {name: rows_of(directory / name)[-1]["broker"] for name in names}
    deleted = [re.search("deletes ([0-9]+) later segments?;", verdict) for verdict in verdicts.values()]
    assert [found and int(found[1]) for found in deleted] == [5, 4, 3, 2, 1, None]
    # a name without an offset shows no later segments; a list that cannot be read does not show that there are none
    (directory / "copy").write_bytes((directory / names[0]).read_bytes())
    assert rows_of(directory / "copy")[-1]["broker"] == verdicts[names[-1]]
    refused["orders-3"] = PermissionError(13, "Permission denied")
    with pytest.raises(PermissionError):
        rows_of(directory / names[0])


def test_damage_is_shown_whatever_was_asked_for(orders):
    path = orders / "orders-3" / SECOND
    path.write_bytes(path.read_bytes() + b"\xaa" * 100)
    assert [row["row"] for row in rows_of(path, wanted=RowFilter(producer_ids=frozenset({1})))] == ["damage"]
