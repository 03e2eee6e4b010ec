"""Which test reaches which line, and how much CPU time it takes: recorded once, kept between runs.

The record of a test file is kept until the file or a helper that it imports changes. When a module of kaudit changes, its lines
are found again in the new source; a new line counts as reached by what reaches its neighbours. `--record` records all anew.
A file that cannot be imported, or has a test that fails, is recorded again by the next run: kaudit may have been broken.
"""

import ast
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import SupportsIndex

import pytest
from coverage.numbits import numbits_to_nums, nums_to_numbits

from tests.mutation.mutants import ROOT, python_files

CACHE = ROOT / ".mutation"
MARKS = "not cluster and not browser and not jvm and not release"
"""Tests that start programs of their own are too slow to try a mutant with, and what those run is not seen."""
PYTEST = [
    "-n",
    "0",
    "-q",
    "-m",
    MARKS,
    "-p",
    "no:cacheprovider",
    "--timeout",
    "0",
    "-o",
    "tmp_path_retention_policy=none",
]
"""No time-outs: on a slow machine they fail tests that are sound; mutants have limits of CPU time."""
_TESTS = CACHE / "tests.json"
_IMPORTS = CACHE / "imports.json"
_SOURCES = CACHE / "sources"
"""Modules as they were when lines of them were recorded, by hash."""
_NOTED = "__lines_run__"
_BATCH = 6
"""Test files recorded by one process: what has been recorded survives an interruption."""


@dataclass(frozen=True)
class RecordedTest:
    """A test that passes."""

    id: str
    """pytest's, as `tests/diff/test_gaps.py::test_name[case]`."""
    seconds: float
    """CPU time."""
    lines: dict[str, bytes]
    """By path of the module: coverage's numbits of the lines that it ran."""

    @property
    def file(self) -> str:
        """Path of its file."""
        return self.id.partition("::")[0]


def reach(files: list[str], *, anew: bool = False, jobs: int = 1) -> list[RecordedTest]:
    """The tests of these test files, recorded where that has not been done, by as many processes as `jobs`."""
    _SOURCES.mkdir(parents=True, exist_ok=True)
    kept = json.loads(_TESTS.read_text()) if _TESTS.exists() and not anew else {}
    stale = [path for path in files if path not in kept or kept[path]["key"] != _key(path)]
    batches = [stale[first : first + _BATCH] for first in range(0, len(stale), _BATCH)]
    with ThreadPoolExecutor(jobs) as pool:
        for number, (batch, recorded) in enumerate(zip(batches, pool.map(_record, batches), strict=True), start=1):
            kept = {path: record for path, record in kept.items() if path not in batch} | recorded
            _TESTS.write_text(json.dumps(kept))
            sys.stderr.write(f"recorded what tests reach: {number} of {len(batches)} batches of test files\n")
    return [
        RecordedTest(
            id_,
            seconds,
            {
                path: _moved(path, kept[file]["modules"][path], bits)
                for path, bits in lines.items()
                if (ROOT / path).exists()
            },
        )
        for file in files
        if file in kept
        for id_, seconds, lines in kept[file]["tests"]
    ]


def lines_of_imports() -> dict[str, set[int]]:
    """By path of the module: the lines that run when kaudit and its tests are imported."""
    hashes = {path: _hash(path) for path in python_files("kaudit")}
    kept = json.loads(_IMPORTS.read_text()) if _IMPORTS.exists() else {}
    if any(kept.get(path, [""])[0] != key for path, key in hashes.items()):
        found, _, _ = _measure("--collect-only", "tests")
        kept = {path: [key, found[""].get(path, "")] for path, key in hashes.items()}
        _IMPORTS.write_text(json.dumps(kept))
    return {path: set(numbits_to_nums(bytes.fromhex(numbits))) for path, (_, numbits) in kept.items()}


def _record(files: list[str]) -> dict[str, dict[str, object]]:
    """Run test files, and return what is kept of each that could be imported."""
    lines, seconds, failed = _measure(*files)
    for name in failed:
        sys.stderr.write(f"failed, and reaches nothing: {name}\n")
    broken = {name.partition("::")[0] for name in failed}
    found: dict[str, dict[str, object]] = {}
    for file in files:
        if file in failed:
            continue
        tests = [(test, spent, lines[test]) for test, spent in seconds.items() if test.partition("::")[0] == file]
        modules = {path: _hash(path) for path in sorted({path for _, _, reached in tests for path in reached})}
        for path, key in modules.items():
            shutil.copyfile(ROOT / path, _SOURCES / key)
        found[file] = {"key": "" if file in broken else _key(file), "modules": modules, "tests": tests}
    return found


def _measure(*arguments: str) -> tuple[dict[str, dict[str, str]], dict[str, float], list[str]]:
    """Run pytest, in a process of its own, on a kaudit that notes its lines.

    The first result is, by test (empty: none of them) and path of the module, coverage's numbits in hexadecimal;
    the second the CPU time of each test that passed; the third the tests that failed and the files that could not be imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.mutation.reach", folder, *arguments]
        # pytest runs that keep no directories remove those of each other
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
        lines, seconds, failed = json.loads((Path(folder) / "reached.json").read_text())
    return defaultdict(dict, lines), seconds, failed


class _Recorder:
    """A plugin of pytest: notes what each test reaches, and how long it takes."""

    def __init__(self, noted: "_NotedModules") -> None:
        self._noted = noted
        self.lines: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self.take("")
        before = time.process_time()
        result = yield
        if item.nodeid in self.seconds:
            self.seconds[item.nodeid] = time.process_time() - before
        self.take(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = 0
        elif report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def take(self, test: str) -> None:
        """Enter the lines run since the last call as this test's."""
        before = self.lines.setdefault(test, {})
        for path, found in self._noted.lines().items():
            known = numbits_to_nums(bytes.fromhex(before[path])) if path in before else []
            before[path] = nums_to_numbits({*known, *found}).hex()


class NotedLines(bytearray):
    """Which statements of a module were run. A function that is pickled with its code, as Spark does, notes here still."""

    module = ""

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Callable[..., object], tuple[ModuleType, str]]:
        return getattr, (sys.modules[self.module], _NOTED)


class _NotedModules(importlib.abc.MetaPathFinder):
    """Imports modules of kaudit with a note in front of each statement: half the time of a trace function."""

    def __init__(self) -> None:
        self._modules: dict[str, tuple[NotedLines, list[range]]] = {}
        """By path: which statements were run, and the lines of each."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a module of kaudit; of no other."""
        if fullname.partition(".")[0] != "kaudit":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        file = "" if spec is None or spec.origin is None else spec.origin
        # a test may put modules of its own into a package
        if spec is not None and file.endswith(".py") and Path(file).is_relative_to(ROOT):
            spec.loader = _NotingLoader(fullname, file, self)
        return spec

    def noting(self, file: str, module: str) -> tuple[ast.Module, NotedLines]:
        """The tree of a module with the notes, and what they are written to."""
        noter = _Noter()
        tree = noter.visit(ast.parse(Path(file).read_bytes()))
        noted = NotedLines(len(noter.statements))
        noted.module = module
        self._modules[str(Path(file).relative_to(ROOT))] = noted, noter.statements
        return ast.fix_missing_locations(tree), noted

    def lines(self) -> dict[str, set[int]]:
        """By path: the lines run since the last call."""
        found = {}
        for path, (noted, statements) in self._modules.items():
            if 1 in noted:
                found[path] = {line for index, lines in enumerate(statements) if noted[index] for line in lines}
                noted[:] = bytes(len(noted))
        return found


class _NotingLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, modules: _NotedModules) -> None:
        super().__init__(fullname, path)
        self._noted_modules = modules

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with its notes."""
        tree, module.__dict__[_NOTED] = self._noted_modules.noting(self.path, module.__name__)
        exec(compile(tree, self.path, "exec", dont_inherit=True), module.__dict__)


class _Noter(ast.NodeTransformer):
    """Puts `_NOTED[number] = 1` in front of each statement. `statements`: the lines of each, without those of its body."""

    def __init__(self) -> None:
        self.statements: list[range] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Notes for the statements of each of the node's lists of statements."""
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, [each for statement in statements for each in self._noted(statement)])
        return node

    def _noted(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return [statement]
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno
        assert last is not None
        note = ast.parse(f"{_NOTED}[{len(self.statements)}] = 1").body[0]
        self.statements.append(range(statement.lineno, max(last, statement.lineno) + 1))
        for node in ast.walk(note):
            if isinstance(node, ast.expr | ast.stmt):
                ast.copy_location(node, statement)
        return [note, statement]


def _main(folder: str, *arguments: str) -> None:
    noted = _NotedModules()
    sys.meta_path.insert(0, noted)
    recorder = _Recorder(noted)
    # a file that cannot be imported would leave its neighbours without tests
    pytest.main([*PYTEST, "--continue-on-collection-errors", *arguments], plugins=[recorder])
    recorder.take("")
    (Path(folder) / "reached.json").write_text(json.dumps([recorder.lines, recorder.seconds, recorder.failed]))


def _key(test_file: str) -> str:
    """Hash of a test file and its helpers."""
    return hashlib.sha256("".join(map(_hash, sorted(_helpers(test_file)))).encode()).hexdigest()


@cache
def _moved(path: str, recorded: str, numbits: str) -> bytes:
    """Lines of a module as they were recorded, in hexadecimal, where the module has them now."""
    if recorded == _hash(path):
        return bytes.fromhex(numbits)
    places = _places(path, recorded)
    return nums_to_numbits(
        [place for line in numbits_to_nums(bytes.fromhex(numbits)) for place in places.get(line, ())]
    )


@cache
def _places(path: str, recorded: str) -> dict[int, list[int]]:
    """Where the lines of a module are now; lines that are new belong to the lines before and after them."""
    old, new = ((file.read_text().splitlines()) for file in (_SOURCES / recorded, ROOT / path))
    places: dict[int, list[int]] = defaultdict(list)
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            for line in range(old_start, old_end):
                places[line + 1].append(line + 1 + new_start - old_start)
        else:
            for line in {old_start, *range(old_start + 1, old_end + 1), old_end + 1}:
                places[line] += range(new_start + 1, new_end + 1)
    return places


@cache
def _hash(path: str) -> str:
    file = ROOT / path
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def _helpers(test_file: str) -> set[str]:
    """The test file, what it imports from tests, and the conftest files around it."""
    found: set[str] = set()
    waiting = [test_file, *(str(folder / "conftest.py") for folder in Path(test_file).parents)]
    while waiting:
        path = waiting.pop()
        if path not in found and (ROOT / path).exists():
            found.add(path)
            waiting.extend(_imported(path, "tests"))
    return found


@cache
def _imported(path: str, package: str) -> tuple[str, ...]:
    """Paths of the modules of a package that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return tuple(
        str(path)
        for name in sorted(names)
        if name.partition(".")[0] == package
        for path in (Path(name.replace(".", "/") + ".py"), Path(name.replace(".", "/")) / "__init__.py")
        if (ROOT / path).exists()
    )


class Reached:
    """Finds the tests of a mutant."""

    def __init__(self, tests: list[RecordedTest]) -> None:
        self._by_line: dict[str, dict[int, list[RecordedTest]]] = defaultdict(lambda: defaultdict(list))
        self._by_folder: dict[Path, list[RecordedTest]] = defaultdict(list)
        for test in sorted(tests, key=_cheapest_first):
            self._by_folder[Path(test.file).parent].append(test)
            for path, numbits in test.lines.items():
                by_line = self._by_line[path]
                for line in numbits_to_nums(numbits):
                    by_line[line].append(test)
        self._importers: dict[str, list[str]] = defaultdict(list)
        for path in python_files("kaudit"):
            for imported in _imported(path, "kaudit"):
                self._importers[imported].append(path)

    def by_line(self, path: str, line: int) -> list[RecordedTest]:
        """Tests that run this line, the fastest first."""
        return self._by_line[path].get(line, []) if path in self._by_line else []

    def by_use(self, path: str, line: int) -> list[RecordedTest]:
        """Tests of what a line defines at import: those that run lines that name it, those beside the module, all others.

        All others run any line of the module or of one that imports it. The file named after the module comes first.
        """
        names, modules = _defined(path, line), [path, *self._importers[path]]
        using = {
            test.id: test for module in modules for used in _uses(module, names) for test in self.by_line(module, used)
        }
        found = {test.id: test for test in sorted(using.values(), key=_cheapest_first)}
        mirrored = Path("tests", *Path(path).parts[1:-1])
        folders = [mirrored, *mirrored.parents][: len(mirrored.parts) - 1]
        found |= {
            test.id: test for folder in folders for test in self._by_folder.get(folder, ()) if test.id not in found
        }
        for module in modules:
            reaching = {test.id: test for tests in self._by_line.get(module, {}).values() for test in tests}
            for test in sorted(reaching.values(), key=_cheapest_first):
                found.setdefault(test.id, test)
        own = str(mirrored / f"test_{Path(path).name}")
        return sorted(found.values(), key=lambda test: test.file != own)


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_bytes())


def _defined(path: str, line: int) -> frozenset[str]:
    """The names that the statements around a line define: a table; a function; a field and its class."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return frozenset(names)


@cache
def _uses(path: str, names: frozenset[str]) -> list[int]:
    """The lines of a module that name one of these."""
    return sorted(
        {
            node.lineno
            for node in ast.walk(_tree(path))
            if (isinstance(node, ast.Name) and node.id in names)
            or (isinstance(node, ast.Attribute) and node.attr in names)
        }
    )


def _cheapest_first(test: RecordedTest) -> tuple[int, str]:
    """By order of magnitude, so that neighbours with the same fixtures stay together."""
    return max(int(test.seconds * 1000), 1).bit_length(), test.id


if __name__ == "__main__":
    os.chdir(ROOT)
    _main(*sys.argv[1:])
