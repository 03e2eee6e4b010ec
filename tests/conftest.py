"""How many workers run the tests, and recorded evidence of real brokers, unpacked once per test run and shared by them."""

import contextlib
import fcntl
import gc
import lzma
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.forked import pytest_runtestloop  # noqa: F401 - a hook
from tests.unpacked import DIRECTORY, unpacked

DATA = Path(__file__).parent / "data"
ORACLE_VERSIONS = ("1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0")


class Evidence:
    """The archives under tests/data, unpacked on demand."""

    @staticmethod
    def capture(name: str) -> Path:
        """The unpacked directory of one capture, e.g. `txn-mix-2.8.2`. Read only: tests that edit copy first."""
        return unpacked(DATA / "captures" / f"{name}.tar.xz")

    @staticmethod
    def oracle(version: str, archive: str) -> Path:
        """The unpacked directory of one oracle archive: `logdir`, `logdir-failover`, `zk` or `dumps`."""
        return unpacked(DATA / "oracle" / version / f"{archive}.tar.xz")

    @staticmethod
    def oracle_lines(version: str, name: str) -> list[str]:
        """The lines of one recorded file, e.g. `main.attempts.jsonl`: under oracle, or recorded by our own recorder."""
        given, own = (DATA / folder / version / f"{name}.xz" for folder in ("oracle", "recorded"))
        with lzma.open(given if given.exists() else own, "rt", encoding="utf-8") as lines:
            return list(lines)


_WHOLE_RECORDINGS = {
    "tests/audits/producer_ids/test_recorded_producers.py",
    "tests/scanning/test_damage.py",
    "tests/scanning/test_long_texts.py",
    "tests/reading/test_range_joining.py",
    "tests/inspect/test_text_and_binary.py",
    "tests/simulate/test_auditor_on_trial.py",
    "tests/simulate/test_scenario_pages.py",
    "tests/simulate/test_trouble.py",
    "tests/test_hints.py",
}


_FEW_FILES = 8
"""Up to this many test files run in this process."""
_MORE_FORKS = 1
"""Beyond the number of cores: tests wait for processes, files and clocks a tenth of the time."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Use all cores where many files run; -n on the command line wins. pytest-xdist may be disabled.

    Forks take a tenth of the CPU time less than xdist's workers, but pytest-cov measures only those.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # a worker runs this hook too, without the controller's -n: it must not start workers
    if config.pluginmanager.hasplugin("xdist") and config.option.numprocesses is None and not config.option.tx:
        many = _many_files(config.args) and not (config.option.collectonly or config.option.usepdb)
        forks = sys.platform == "linux" and not getattr(config.option, "cov_source", None)
        config.option.numprocesses = "auto" if many and not forks else 0
        config.option.forks = len(os.sched_getaffinity(0)) + _MORE_FORKS if many and forks else 0


def _many_files(arguments: list[str]) -> bool:
    """Whether pytest's arguments - files, node ids, directories - name more than a few test files."""
    files: set[Path] = set()
    for argument in arguments:
        path = Path(argument.partition("::")[0])
        files.update(path.rglob("test_*.py") if path.is_dir() else [path])
        if len(files) > _FEW_FILES:
            return True
    return False


_PREFIX = "kaudit-recordings-"
_LOCK = pytest.StashKey[int | None]()


def _locked(directory: str | Path) -> int | None:
    """Return a descriptor that keeps a directory locked until this process ends; None where another process has it."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_those_of_killed_runs(own: Path) -> None:
    """Remove directories like this run's own whose run was killed: hundreds of megabytes each."""
    for other in own.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError, PermissionError):  # another run removes them, or another user's
            if other != own and time.time() - other.stat().st_mtime > _SECONDS_TO_START:
                lock = _locked(other)
                if lock is not None:
                    shutil.rmtree(other, ignore_errors=True)
                    os.close(lock)


_SECONDS_TO_START = 60
"""A directory younger than this may be one that its run has not locked yet."""


_MEMORY = "/dev/shm"
_ROOM = 4 << 30
"""Bytes that the tests' files need, of many cores at once, and those of runs that were killed."""


def _has_room(place: str) -> bool:
    """Return whether programs can be run in a directory, and the tests' files fit into it."""
    if not os.access(place, os.W_OK):
        return False
    found = os.statvfs(place)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= _ROOM


def pytest_configure(config: pytest.Config) -> None:
    """Search for no garbage while tests are collected; keep files in memory, for on a disk they cost a tenth of the run.

    Make one directory per run: workers inherit its name from the controller, and processes compile modules once into it.
    """
    gc.disable()
    if not hasattr(config, "workerinput"):
        if "TMPDIR" not in os.environ and _has_room(_MEMORY):
            os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
        os.environ[DIRECTORY] = directory = tempfile.mkdtemp(prefix=_PREFIX)
        config.stash[_LOCK] = _locked(directory)
        _remove_those_of_killed_runs(Path(directory))
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
            os.environ["PYTHONPYCACHEPREFIX"] = f"{os.environ[DIRECTORY]}/compiled"


_LONG_ID = 80


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Call a long text or a block of bytes by its length and digest: pytest would put all of it into the test's name."""
    if isinstance(val, (str, bytes)) and len(val) > _LONG_ID:
        digest = zlib.crc32(val if isinstance(val, bytes) else val.encode(errors="surrogatepass"))
        return f"{argname}-{len(val)}-{digest:08x}"
    return None


_ELSEWHERE = ("browser", "cluster", "release", "spark")
"""Directories of tests, and the marks of what is in them: their modules import what only the group `dev` installs, or start Pythons."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a directory out whose tests `-m` deselects: the README's command has an environment without Spark."""
    name = collection_path.name
    left_out = name in _ELSEWHERE and collection_path.parent == Path(__file__).parent
    return True if left_out and f"not {name}" in config.option.markexpr else None


class _FromTheEnd(pytest.Package):
    """A package whose last file is collected first."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return reversed(list(super().collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Let every second worker begin at the other end: each then finds half of the modules compiled by the others."""
    odd = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    return _FromTheEnd.from_parent(parent, path=path) if odd and (path / "__init__.py").exists() else None


_FEW, _FEWEST = 4, 8
"""Hypothesis draws a fourth of the examples a test asks for, and no fewer than 8 of those; .ci/full and mutants have all of them."""


def _draw_few(function: Any) -> None:
    asked = function._hypothesis_internal_use_settings or settings.default
    assert asked is not None
    few = max(asked.max_examples // _FEW, min(asked.max_examples, _FEWEST))
    function._hypothesis_internal_use_settings = settings(asked, max_examples=few)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all workers the same order, and the tests their marks.

    Tracing takes minutes where thousands of examples are drawn, or the same commands are run over all recordings: what these
    reach does not count as covered, that is for the tests of each part.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path.parts)
    drawing = {function for item in items if is_hypothesis_test(function := getattr(item, "function", None))}
    if os.environ.get("KAUDIT_TEST_EXAMPLES") != "all":
        for function in drawing:
            _draw_few(function)
    for item in items:
        file = item.nodeid.partition("::")[0]
        starts_jvm = item.get_closest_marker("jvm") is not None
        if starts_jvm or file.startswith("tests/spark/"):
            item.add_marker(pytest.mark.spark)
        if starts_jvm:  # all of them on one worker, so that one JVM starts and not one a core
            item.add_marker(pytest.mark.xdist_group("spark"))
        if getattr(item, "function", None) in drawing or file in _WHOLE_RECORDINGS:
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected out of every later search for garbage, and search rarely: by default it is a twentieth of the run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()
    config = session.config
    if "not spark" in config.option.markexpr:  # only tests of Spark look at what was logged
        config.pluginmanager.unregister(name="logging-plugin")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what was unpacked."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(DIRECTORY), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever makes temporary files, here, in processes or in a JVM, makes them below pytest's own, and they are removed."""
    directory = tmp_path_factory.mktemp("t")  # short: sockets lie in it
    before = tempfile.tempdir
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(directory))
        patch.setenv("SPARK_SUBMIT_OPTS", f"-Djava.io.tmpdir={directory} -XX:-UsePerfData")
        tempfile.tempdir = None
        yield
        tempfile.tempdir = before
    shutil.rmtree(directory, ignore_errors=True)  # a JVM that is still ending may write into it


@pytest.fixture(scope="session")
def evidence() -> Evidence:
    """One directory per test run, whatever the number of workers."""
    return Evidence()


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory):
    """One session for the whole run, started by the first test that asks."""
    from kaudit.spark.session import SparkOptions, session

    # nobody looks at the UI, and its server costs a second
    tables = f"spark.sql.warehouse.dir={tmp_path_factory.mktemp('warehouse')}"
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false", tables]), None) as started:
        yield started


@pytest.fixture
def s3_server(monkeypatch):
    """An S3 server in this process, with an empty bucket `kafka`, that this process and those it starts find."""
    from kaudit.source.schemes import _connect
    from tests.source.s3_server import S3Server

    _connect.cache_clear()  # clients of other servers
    with S3Server().running() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        yield server
    _connect.cache_clear()
