"""A ledger whose run was killed goes on in its temporary directory, and gives what a run of its own gives."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kaudit.audits.records import noted, reading
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
    for partition in range(PARTITIONS):
        for side, lost in (("a", -1), ("b", 5 + partition)):
            log = Log()
            for number in range(40):
                if number != lost:
                    value = b"%d %d" % (partition, number)
                    log.append([Record(number, b"key%d" % (number % 3), value, (), 1_000_000 + number)])
            log.write(tmp_path / side / f"orders-{partition}")
    (tmp_path / "held").mkdir()
    return tmp_path


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

        PATCHES.setattr(noted, "read_partition", dying)

    return where


def in_matching(die: Callable[[], None]) -> None:
    PATCHES.setattr(engine, "match_bucket", lambda *_, **__: die())


def counted(monkeypatch: Any) -> list[int]:
    """The places of the partitions that are read from now on."""
    found: list[int] = []
    read = noted.read_noted

    def counting(task: Any, **rest: Any) -> Any:
        found.append(task.index)
        return read(task, **rest)

    monkeypatch.setattr(engine, "read_noted", counting)
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


def test_a_run_killed_while_it_matched_begins_anew(sides, monkeypatch):
    expected = ledger(sides, None)
    killed(sides, in_matching)
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

        PATCHES.setattr(noted, "read_partition", slow)

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
    monkeypatch.setattr(engine, "read_noted", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("stop")))
    with pytest.raises(RuntimeError):
        ledger(sides)
    assert not list((sides / "held").iterdir())
