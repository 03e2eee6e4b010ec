"""Runs tests in forks of the process that collected them: pytest-xdist's workers would each import and collect all of them.

What other plugins ask xdist's workers for - their variables, a directory for temporary files, an output - forks have as well.
"""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

_UNIT = 8
"""A process takes up to so many tests of a file at a time: what the slowest leave to do at the end is no more."""


class _Units:
    """The tests that no process has taken yet, known to all of them: ranges of indices, each of one file."""

    def __init__(self, items: Sequence[pytest.Item], workers: int) -> None:
        self._ranges: list[range] = []
        for _, group in groupby(range(len(items)), lambda index: items[index].path):
            indices = [*group]
            self._ranges += (range(at, min(at + _UNIT, indices[-1] + 1)) for at in indices[::_UNIT])
        fork = multiprocessing.get_context("fork")
        self._taken = fork.RawArray("b", len(self._ranges))
        self._lock = fork.Lock()
        self.running = fork.RawArray("l", workers)
        """The index of the test that each process runs."""

    def tests(self, share: float) -> Iterator[int]:
        """Take range after range, beginning at a share of all of them; yield the indices of the tests."""
        at = int(share * len(self._ranges))
        while True:
            with self._lock:
                free = [place for place, taken in enumerate(self._taken) if not taken]
                if not free:
                    return
                if at == len(self._ranges) or self._taken[at]:
                    at = self._middle(free)
                self._taken[at] = 1
            yield from self._ranges[at]
            at += 1

    @staticmethod
    def _middle(free: Sequence[int]) -> int:
        """Return the middle of the longest stretch that is free: what is beside another's is soon taken by it."""
        stretches = [
            [place for _, place in group] for _, group in groupby(enumerate(free), lambda pair: pair[1] - pair[0])
        ]
        longest = max(stretches, key=len)
        return longest[len(longest) // 2]


class _Reports:
    """Sends what became of each test to the process that prints it."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config, self._pipe = config, pipe
        self._of_test: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._of_test.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def send(self, index: int) -> None:
        self._pipe.send((index, self._of_test))
        self._of_test = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in as many forks as the option `forks` says; leave them to pytest where it says none."""
    workers: int = getattr(session.config.option, "forks", 0)
    if not workers or session.testsfailed or session.config.option.collectonly:
        return None
    units = _Units(session.items, workers)
    session.config.get_terminal_writer().flush()
    pipes: dict[Connection, tuple[int, int]] = {}
    try:
        for number in range(workers):
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = os.fork()
            if process == 0:
                _work(session, units, number, number / workers, theirs)
            theirs.close()
            pipes[ours] = number, process
        while pipes:
            for pipe in wait([*pipes]):
                assert isinstance(pipe, Connection)
                _receive(session, pipe, pipes, units)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
    finally:
        for _, process in pipes.values():
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)
    return True


def _receive(
    session: pytest.Session, pipe: Connection, pipes: dict[Connection, tuple[int, int]], units: _Units
) -> None:
    """Report the test whose outcome a process has sent; a process without another must have ended well."""
    hook, config = session.config.hook, session.config
    try:
        index, sent = pipe.recv()
    except EOFError:
        number, process = pipes.pop(pipe)
        _, status = os.waitpid(process, 0)
        if status:
            ended = f"the process of {session.items[units.running[number]].nodeid} ended with {os.waitstatus_to_exitcode(status)}"
            raise session.Interrupted(ended) from None
        return
    if index is None:
        hook.pytest_testnodedown(node=SimpleNamespace(config=config, workeroutput=sent), error=None)
        return
    item = session.items[index]
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for data in sent:
        hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=config, data=data))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _work(session: pytest.Session, units: _Units, number: int, share: float, pipe: Connection) -> NoReturn:
    """Run tests in this fork as long as there are any, and end it."""
    code = 1
    try:
        _become_worker(session.config, f"gw{number}")
        reports = _Reports(session.config, pipe)
        session.config.pluginmanager.register(reports)
        tests = units.tests(share)
        index = next(tests, None)
        while index is not None and not session.shouldstop:
            units.running[number] = index
            following = next(tests, None)
            nextitem = None if following is None else session.items[following]
            session.config.hook.pytest_runtest_protocol(item=session.items[index], nextitem=nextitem)
            reports.send(index)
            index = following
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK
        session.config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
        pipe.send((None, session.config.workeroutput))  # type: ignore[attr-defined]
        session.config._ensure_unconfigure()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it was, the fork must not go on as the process that collected
        traceback.print_exc()
    finally:
        os._exit(code)


def _become_worker(config: Any, name: str) -> None:
    """Give this fork what a worker of xdist has, and what it must not share with others: captured output, directories."""
    os.environ["PYTEST_XDIST_WORKER"] = name
    config.workerinput, config.workeroutput = {"workerid": name}, {}
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    directory = config._tmp_path_factory.getbasetemp() / f"popen-{name}"
    directory.mkdir()
    config._tmp_path_factory._basetemp = directory
