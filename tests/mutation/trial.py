"""Mutants tried: each in a forked process with limits on CPU time and memory, by the tests that reach it."""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from tests.mutation.mutants import ROOT, Mutant
from tests.mutation.reach import PYTEST, RecordedTest

KILLED, SURVIVED, UNDECIDED = "killed", "survived", "undecided"
_PYTEST = [*PYTEST, "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
_CPU_SECONDS, _CPU_TIMES = 3, 10
"""A test may take ten times the CPU time it took, and some seconds more."""
_COLLECTION_SECONDS = 3
"""Test files are imported within ten times as much."""
_HANG_SECONDS = 600
"""A process that waits this long hangs; a slow machine is no reason."""
_MEMORY_BYTES = 6 << 30
_EVIDENCE = "EVIDENCE_OF_KAUDIT_TESTS"


@dataclass(frozen=True)
class Trial:
    """A mutant (None: kaudit as it is) and the tests to run, in this order."""

    mutant: Mutant | None
    tests: list[RecordedTest]


@dataclass(frozen=True)
class Result:
    """What came of a trial."""

    outcome: str
    by: str = ""
    """The test that failed, or what else ended it."""


Run = Callable[[Trial, Path, Callable[[Result], None]], None]
"""Runs a trial in this process: the last argument takes the result, and does not return."""


@dataclass
class MutantRunner:
    """Tries mutants, `jobs` at a time, and keeps what it learns about tests."""

    jobs: int
    report: Callable[[Mutant, Result], None]
    _killers: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """By module and function: tests that killed one of its mutants, the latest first."""
    _reliable: set[str] = field(default_factory=set)
    _unreliable: set[str] = field(default_factory=set)
    """Tests that fail without a mutant, too, when run like this."""

    def try_all(self, trials: list[Trial], run: Run) -> None:
        """Try them; each result is reported as soon as it is known."""
        waiting = list(reversed(trials))
        running: list[_Process] = []
        while waiting or running:
            while waiting and len(running) < self.jobs:
                running.append(_Process(self._ordered(waiting.pop()), run))
            time.sleep(0.005)
            for process in [process for process in running if process.has_ended()]:
                running.remove(process)
                again = self._take(process.trial, process.result(), run)
                if again is not None:
                    waiting.append(again)

    def _ordered(self, trial: Trial) -> Trial:
        assert trial.mutant is not None
        killers = self._killers[trial.mutant.path, trial.mutant.function]
        usable = [test for test in trial.tests if test.id not in self._unreliable]
        first = [test for test in usable if test.id in killers]
        return replace(trial, tests=first + [test for test in usable if test.id not in killers])

    def _take(self, trial: Trial, result: Result, run: Run) -> Trial | None:
        """Report a result; a trial whose test proved nothing is to be repeated without it."""
        assert trial.mutant is not None
        if result.by and not self._is_reliable(trial, result.by, run):
            return trial
        if result.by:
            killers = self._killers[trial.mutant.path, trial.mutant.function]
            if result.by in killers:
                killers.remove(result.by)
            killers.insert(0, result.by)
        self.report(trial.mutant, result)
        return None

    def _is_reliable(self, trial: Trial, test_id: str, run: Run) -> bool:
        """Whether a test passes without the mutant, after the tests of its file that had been run before it."""
        if test_id in self._reliable or all(test.id != test_id for test in trial.tests):
            return True
        place = [test.id for test in trial.tests].index(test_id)
        file = trial.tests[place].file
        before = [test for test in trial.tests[: place + 1] if test.file == file]
        process = _Process(Trial(None, before), run)
        while not process.has_ended():
            time.sleep(0.005)
        passed = process.result().outcome == SURVIVED
        (self._reliable if passed else self._unreliable).add(test_id)
        return passed


class _Process:
    """A trial in a forked process."""

    def __init__(self, trial: Trial, run: Run) -> None:
        self.trial = trial
        self._directory = Path(tempfile.mkdtemp(prefix="kaudit-mutant-"))
        self._begun = time.monotonic()
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            self._be_child(run)

    def _be_child(self, run: Run) -> None:
        def finish(result: Result) -> None:
            (self._directory / "result.json").write_text(json.dumps([result.outcome, result.by]))
            os._exit(0)

        try:
            os.setpgid(0, 0)
            tempfile.tempdir = str(self._directory)
            os.environ["TMPDIR"] = tempfile.tempdir
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            run(self.trial, self._directory, finish)
        except BaseException as error:  # noqa: BLE001 - a forked process must not return into its parent's code
            finish(Result(UNDECIDED, repr(error)[:200]))
        finally:
            os._exit(1)

    def has_ended(self) -> bool:
        """Whether the process is gone; one that hangs is ended."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = status
        elif time.monotonic() - self._begun > _HANG_SECONDS:
            os.killpg(self._pid, signal.SIGKILL)
        return bool(pid)

    def result(self) -> Result:
        """What it wrote, or how it died; its files and the processes it left are removed."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        file = self._directory / "result.json"
        written = json.loads(file.read_text()) if file.exists() else None
        shutil.rmtree(self._directory, ignore_errors=True)
        if written is not None:
            return Result(*written)
        assert self._status is not None
        number = os.waitstatus_to_exitcode(self._status)
        return Result(KILLED, signal.Signals(-number).name if number < 0 else f"exit code {number}")


def _allow_cpu(seconds: float) -> None:
    """Limit the CPU time of this process from now on."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    limit = int(used + _CPU_SECONDS + _CPU_TIMES * seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


class _Failures:
    """A plugin of pytest: whether a test failed."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


# What functions do: tried in forks of a process that has collected all tests


def try_functions(runner: MutantRunner, trials: list[Trial], files: list[str]) -> None:
    """Try mutants inside functions. The calling process will have imported kaudit."""
    if not trials:
        return
    _settle_hypothesis()
    with _silence():
        pytest.main([*_PYTEST, *files], plugins=[_Server(runner, trials)])


class _Server(_Failures):
    """A plugin of pytest that tries mutants in place of the tests' one run."""

    def __init__(self, runner: MutantRunner, trials: list[Trial]) -> None:
        self._runner = runner
        self._trials = trials
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[_Place, list[FunctionType]] = {}
        self._caches: list[_lru_cache_wrapper[object]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._import_all()
        gc.collect()
        self._functions, self._caches = functions_and_caches()
        gc.freeze()
        self._runner.try_all(self._trials, self._run)
        return True

    @staticmethod
    def _import_all() -> None:
        import kaudit

        for module in pkgutil.walk_packages(kaudit.__path__, "kaudit."):
            if not module.name.endswith("__main__"):
                import_module(module.name)

    def _run(self, trial: Trial, directory: Path, finish: Callable[[Result], None]) -> None:
        if trial.mutant is not None:
            self._apply(trial.mutant)
        items = [self._items[test.id] for test in trial.tests if test.id in self._items]
        seconds = {test.id: test.seconds for test in trial.tests}
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config._tmp_path_factory._basetemp = directory  # type: ignore[attr-defined]
            _allow_cpu(seconds[item.nodeid])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                finish(Result(KILLED, item.nodeid))
        finish(Result(SURVIVED))

    def _apply(self, mutant: Mutant) -> None:
        """Give the function that a mutant changes its changed code."""
        code = changed_code(mutant)
        functions = self._functions[code.co_filename, code.co_firstlineno, code.co_qualname]
        if not functions:
            raise LookupError(mutant.function)
        for function in functions:
            function.__code__ = code
        for cache in self._caches:
            cache.cache_clear()


_Place = tuple[str, int, str]
"""Where a function is: its file, its first line, its qualified name."""


def functions_and_caches() -> tuple[dict[_Place, list[FunctionType]], list["_lru_cache_wrapper[object]"]]:
    """All functions of this process by place, and the caches of kaudit's functions.

    What is frozen is searched too, and is not any more: tests/conftest.py freezes what was imported by the collection.
    """
    gc.unfreeze()
    functions: dict[_Place, list[FunctionType]] = defaultdict(list)
    caches: list[_lru_cache_wrapper[object]] = []
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            code = thing.__code__
            functions[code.co_filename, code.co_firstlineno, code.co_qualname].append(thing)
        elif isinstance(thing, _lru_cache_wrapper) and thing.__module__.startswith("kaudit"):
            caches.append(thing)
    return functions, caches


def changed_code(mutant: Mutant) -> CodeType:
    """The code of the function around a mutant, with the change."""
    module = compile(mutant.source, str(ROOT / mutant.path), "exec", dont_inherit=True)
    codes = [code for code in _codes(module) if code.co_qualname == mutant.function]
    return max((code for code in codes if code.co_firstlineno <= mutant.line), key=lambda code: code.co_firstlineno)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# What runs at import: tried in forks of a process that has not imported kaudit


def try_imports(runner: MutantRunner, trials: list[Trial]) -> None:
    """Try mutants of what runs at import. The calling process must not have imported kaudit."""
    if not trials:
        return
    assert "kaudit" not in sys.modules
    for library in (
        "hypothesis",
        "numpy",
        "numpy.ma",
        "rich.console",
        "typer",
        "msgspec",
        "syrupy",
        "jsonschema",
        "jinja2",
    ):
        import_module(library)
    _settle_hypothesis()
    with tempfile.TemporaryDirectory(prefix="kaudit-evidence-") as evidence:

        def run(trial: Trial, directory: Path, finish: Callable[[Result], None]) -> None:
            if trial.mutant is not None:
                sys.meta_path.insert(0, _Importer(trial.mutant))
            _allow_cpu(_COLLECTION_SECONDS)
            files = list(dict.fromkeys(test.file for test in trial.tests))
            plugin = _Chosen(trial, evidence, finish)
            pytest.main([*_PYTEST, "-x", "--basetemp", str(directory / "tests"), *files], plugins=[plugin])
            finish(Result(KILLED, "collection"))

        with _silence():
            runner.try_all(trials, run)


class _Chosen(_Failures):
    """A plugin of pytest that runs a trial's tests only, and finishes with them."""

    def __init__(self, trial: Trial, evidence: str, finish: Callable[[Result], None]) -> None:
        self._places = {test.id: place for place, test in enumerate(trial.tests)}
        self._seconds = {test.id: test.seconds for test in trial.tests}
        self._evidence = evidence
        self._finish = finish

    def pytest_sessionstart(self) -> None:
        shutil.rmtree(os.environ.get(_EVIDENCE, ""), ignore_errors=True)
        os.environ[_EVIDENCE] = self._evidence

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        _allow_cpu(self._seconds[item.nodeid])
        result = yield
        if self.failed:
            self._finish(Result(KILLED, item.nodeid))
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._finish(Result(KILLED, "collection") if session.testsfailed else Result(SURVIVED))


class _Importer(importlib.abc.MetaPathFinder):
    """Imports one module with a change."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of the changed module; of no other."""
        if fullname != self._mutant.module:
            return None
        file = str(ROOT / self._mutant.path)
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, file, self._mutant))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """The changed code, not what is cached of the file."""
        return compile(self._mutant.source, self.path, "exec", dont_inherit=True)


def _settle_hypothesis() -> None:
    """The same examples each time, all that tests ask for, no deadline, and no counterexample of a mutant kept."""
    from hypothesis import settings

    os.environ["KAUDIT_TEST_EXAMPLES"] = "all"  # tests/conftest.py
    settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
    settings.load_profile("mutation")


@contextmanager
def _silence() -> Iterator[None]:
    """Neither pytest nor a test writes to the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(fd, os.dup(fd)) for fd in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    for fd, _ in saved:
        os.dup2(null, fd)
    os.close(null)
    try:
        yield
    finally:
        for fd, copy in saved:
            os.dup2(copy, fd)
            os.close(copy)
