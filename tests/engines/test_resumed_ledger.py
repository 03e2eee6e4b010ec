"""A ledger whose run was killed goes on in its temporary directory, and gives what a run of its own gives."""

import functools
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kaudit.audits.records import reading
from kaudit.audits.records.spill import Spill
from kaudit.diff.records import assembly, bucket
from kaudit.engines import record_ledger as engine
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UsageError
from kaudit.model.ledger import mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions
from tests.mirrors.log import Log, Record

PARTITIONS = 4
PATCHES = pytest.MonkeyPatch()
"""Of processes that end with them."""
Ledger = tuple[dict[str, object], list[Any]]


@pytest.fixture
def sides(tmp_path):
    """Two sides of four partitions each; the target lacks a record in every one."""
    return written(tmp_path)


def written(root: Path, times: int = 1) -> Path:
    """The sides; the target has each of its records so many times."""
    for partition in range(PARTITIONS):
        for side, lost, copies in (("a", -1, 1), ("b", 5 + partition, times)):
            log = Log()
            for number in (number for number in range(40) if number != lost for _ in range(copies)):
                value = b"%d %d" % (partition, number)
                log.append([Record(number, b"key%d" % (number % 3), value, (), 1_000_000 + number)])
            log.write(root / side / f"orders-{partition}")
    (root / "held").mkdir()
    return root


def ledger(root: Path, held: str | None = "held", **request: Any) -> Ledger:
    places = Replica("source", str(root / "a")), Replica("target", str(root / "b"))
    asked = engine.LedgerRequest(temporary_directory=None if held is None else str(root / held), **request)
    options = ScanOptions([place.path for place in places], jobs=1)
    with engine.record_ledger(options, places, asked, SilentProgress()) as result:
        (found,) = result.ledgers
        return found.to_dict(), list(mapped_ranges(found.map_file))


def killed(root: Path, where: Callable[[Callable[[], None]], None], **request: Any) -> None:
    """Run a comparison in a process that `where` makes kill itself."""

    def run() -> None:
        where(lambda: os.kill(os.getpid(), signal.SIGKILL))
        ledger(root, **request)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def before_read(number: int, *, written: bool = False) -> Callable[[Callable[[], None]], None]:
    """Die at the `number`th partition: before it is read, or when its rows are `written` and nothing is noted."""

    def where(die: Callable[[], None]) -> None:
        read, left = reading.read_partition, iter(range(number))

        def dying(*arguments: Any) -> Any:
            if next(left, None) is not None:
                return read(*arguments)
            if written:
                read(*arguments)
            return die()

        PATCHES.setattr(engine, "read_partition", dying)

    return where


def in_matching(number: int, where: str) -> Callable[[Callable[[], None]], None]:
    """Die at the `number`th bucket: before it is matched, when its rows are `written`, or when it is `noted` and its rows are there."""

    def patch(die: Callable[[], None]) -> None:
        match, left = bucket.match_bucket, iter(range(number))

        def dying(*arguments: Any, **rest: Any) -> Any:
            if next(left, None) is not None:
                return match(*arguments, **rest)
            if where == "before":
                die()
            found = match(*arguments, **rest)
            if where == "written":
                die()
            PATCHES.setattr(Spill, "remove", lambda *_: die())
            return found

        PATCHES.setattr(engine, "match_bucket", dying)

    return patch


def counted(monkeypatch: Any, kind: str = "read") -> list[int]:
    """The numbers of the work of a kind that is done from now on: of the partitions that are read."""
    found: list[int] = []
    do = vars(engine)["do_noted"]

    def counting(task: Any, **rest: Any) -> Any:
        if task.kind == kind:
            found.append(task.number)
        return do(task, **rest)

    monkeypatch.setattr(engine, "do_noted", counting)
    return found


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("number", [0, 1, 3, 7])
def test_what_was_read_is_not_read_again(sides, monkeypatch, number, written):
    expected = ledger(sides, None)
    killed(sides, before_read(number, written=written))
    assert len(list((sides / "held").iterdir())) == 2
    read = counted(monkeypatch)
    assert ledger(sides) == expected
    assert read == list(range(number, 2 * PARTITIONS))
    assert not list((sides / "held").iterdir())


def test_a_run_may_be_killed_again_and_again(sides, monkeypatch):
    expected = ledger(sides, None)
    for number in (2, 2, 1):
        killed(sides, before_read(number, written=True))
    read = counted(monkeypatch)
    assert ledger(sides) == expected
    assert read == [5, 6, 7]


KINDS = "read", "single", "grouped"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Sides, and for a number of rows that a bucket has at most: the ledger of a run of its own, and the numbers of what it matched."""
    sides = written(tmp_path_factory.mktemp("sides"), times=2)

    @functools.cache
    def of(most_rows: int) -> tuple[Path, Ledger, list[int], list[int]]:
        with pytest.MonkeyPatch.context() as patch:
            _, single, grouped = (counted(patch, kind) for kind in KINDS)
            return sides, ledger(sides, None), single, grouped

    return of


@pytest.mark.parametrize("most_rows", [bucket.MOST_ROWS, 8], ids=["buckets", "split buckets"])
@pytest.mark.parametrize("where", ["before", "written", "noted"])
@pytest.mark.parametrize("number", [0, 1, 7, 9])
def test_what_was_matched_is_not_matched_again(whole, monkeypatch, number, where, most_rows):
    """Eight buckets of all records, then eight of those that a side has twice."""
    monkeypatch.setattr(engine, "_BUCKET_BYTES", 1)
    monkeypatch.setattr(engine, "_MOST_BITS", 3)
    monkeypatch.setattr(bucket, "MOST_ROWS", most_rows)
    sides, expected, single, grouped = whole(most_rows)
    assert [len(numbers) >= 8 for numbers in (single, grouped)] == [True, True]
    killed(sides, in_matching(number, where))
    again = [counted(monkeypatch, kind) for kind in KINDS]
    assert ledger(sides) == expected
    done = number + (where == "noted")
    assert again == [[], single[min(done, 8) : 8], grouped[max(done - 8, 0) :]]
    assert not list((sides / "held").iterdir())


def test_a_run_killed_while_it_put_the_ledger_together_does_that_alone(sides, monkeypatch):
    expected = ledger(sides, None)
    killed(sides, lambda die: PATCHES.setattr(assembly, "sorted_rows", lambda *_: die()))
    work = [counted(monkeypatch, kind) for kind in KINDS]
    assert ledger(sides) == expected
    assert work == [[], [], []]


def test_a_run_killed_when_rows_were_used_up_begins_anew(sides, monkeypatch):
    expected = ledger(sides, None)

    def where(die: Callable[[], None]) -> None:
        def use_up(placed: Spill, *_: Any) -> None:
            placed.remove(placed.numbers()[0])
            die()

        PATCHES.setattr(assembly, "_order", use_up)

    killed(sides, where)
    read = counted(monkeypatch)
    assert ledger(sides) == expected
    assert len(read) == 2 * PARTITIONS


@pytest.mark.parametrize("change", ["log", "identity", "note", "rows"])
def test_what_was_read_otherwise_is_not_used(sides, monkeypatch, change):
    killed(sides, before_read(3))
    (held,) = (path for path in (sides / "held").iterdir() if path.is_dir())
    request: dict[str, Any] = {}
    if change == "log":
        (segment,) = (sides / "a" / "orders-0").glob("*.log")
        os.utime(segment, ns=(0, 0))
    elif change == "identity":
        request["read_committed"] = True
    elif change == "note":
        next(held.rglob("*.note")).write_bytes(b"")
    else:
        next(path for path in held.rglob("source.*")).write_bytes(b"")
    expected = ledger(sides, None, **request)
    read = counted(monkeypatch)
    assert ledger(sides, **request) == expected
    assert len(read) == 2 * PARTITIONS


def test_windows_are_counted_again_and_what_was_read_after_them_is_not(sides, monkeypatch):
    expected = ledger(sides, None, window_ms=10)
    killed(sides, before_read(2), window_ms=10)
    read = counted(monkeypatch)
    assert ledger(sides, window_ms=10) == expected
    assert len(read) == 2 * PARTITIONS - 2


def test_two_runs_of_one_comparison_do_not_share_a_place(sides):
    waiting, done = multiprocessing.Pipe()

    def where(die: Callable[[], None]) -> None:
        read = reading.read_partition

        def slow(*arguments: Any) -> Any:
            done.send("reads")
            done.recv()
            return read(*arguments)

        PATCHES.setattr(engine, "read_partition", slow)

    def run() -> None:
        where(lambda: None)
        ledger(sides)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    assert waiting.recv() == "reads"
    with pytest.raises(UsageError, match="another process makes the same comparison here"):
        ledger(sides)
    process.kill()
    process.join()
    assert ledger(sides) == ledger(sides, None)


def test_an_error_leaves_nothing(sides, monkeypatch):
    monkeypatch.setattr(engine, "do_noted", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("stop")))
    with pytest.raises(RuntimeError):
        ledger(sides)
    assert not list((sides / "held").iterdir())
