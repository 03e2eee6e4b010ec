"""The mutants of a source, and what a trial of one says."""

import ast
import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from coverage.numbits import nums_to_numbits

from tests.mutation import reach
from tests.mutation.__main__ import Score, affordable, equivalent_mutants
from tests.mutation.mutants import ROOT, Mutant, mutants_of
from tests.mutation.reach import NotedLines, Reached, RecordedTest
from tests.mutation.trial import KILLED, SURVIVED, UNDECIDED, MutantRunner, Result, Trial, functions_and_caches
from tests.mutation.type_check import type_error

CONSTANTS = "kaudit/model/batch_fields.py"
SOURCE = '''
from typing import Literal, TypeVar
Size = TypeVar("Size", bound=int, covariant=True)
LIMIT = 5
class Window(frozen=True):
    """Five batches of at most 1 record."""
    size: Literal[4] = LIMIT
    def takes(self, offset: int, *, last: int = 7) -> bool:
        assert offset > 0
        if offset < 0 or not last:
            return False
        lower = min(offset, last) - self.size
        return self.between(lower, offset) and last is not None
@check("KA001", severity=Severity.ERROR)
def each(rows: int | None) -> list[int]:
    if rows is None:
        raise ValueError(f"{rows + 1} of 3")
    return [row for row in zip(rows, rows, strict=True) if row in rows]
if __name__ == "__main__":
    each(None)
'''


def mutated() -> list[Mutant]:
    return mutants_of("kaudit/window.py", SOURCE.encode())


def applied(mutant: Mutant) -> str:
    source = SOURCE.encode()
    return (source[: mutant.start] + mutant.replacement.encode() + source[mutant.end :]).decode()


def test_functions_that_were_frozen_are_found():
    """tests/conftest.py freezes all that is imported by the collection: every mutant was undecided."""
    gc.freeze()
    try:
        functions, _ = functions_and_caches()
    finally:
        gc.freeze()
    code = mutants_of.__code__
    assert functions[code.co_filename, code.co_firstlineno, code.co_qualname] == [mutants_of]


def test_what_the_type_check_refuses(monkeypatch):
    """What mypy 1.x printed of this mutant, and of another module."""
    swapped = 'kaudit/listings/duplicates.py:67: error: Argument 1 to "PartitionTotal" has incompatible type "int"; expected "str"'
    mutants = mutants_of("kaudit/listings/duplicates.py")
    mutant = next(each for each in mutants if each.becomes == "directory.partition, directory.topic,")

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        own, shadow, checked = command[-3:]
        assert (own, checked, Path(shadow).read_bytes()) == (mutant.path, mutant.path, mutant.source)
        return subprocess.CompletedProcess(command, 1, f"kaudit/model/duplicates.py:1: error: x\n{swapped}\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert type_error(mutant) == swapped


def test_each_kind_of_mutant():
    """Nothing in annotations, docstrings, assertions, messages of errors, keywords of classes or `strict`."""
    assert sorted((each.kind, each.function, each.at_import, each.becomes) for each in mutated()) == sorted(
        [
            ("constant", "", True, "LIMIT = 6"),
            ("constant", "Window.takes", True, "def takes(self, offset: int, *, last: int = 8) -> bool:"),
            ("operand", "Window.takes", False, "if (offset < 0):"),
            ("operand", "Window.takes", False, "if (not last):"),
            ("deleted guard", "Window.takes", False, "if False:"),
            ("comparison", "Window.takes", False, "if offset <= 0 or not last:"),
            ("constant", "Window.takes", False, "if offset < 1 or not last:"),
            ("operand", "Window.takes", False, "if offset < 0 or (last):"),
            ("constant", "Window.takes", False, "return True"),
            ("operand", "Window.takes", False, "lower = max(offset, last) - self.size"),
            ("operand", "Window.takes", False, "lower = min(offset, last) + self.size"),
            ("operand", "Window.takes", False, "return (last is not None)"),
            ("operand", "Window.takes", False, "return (self.between(lower, offset))"),
            ("swapped argument", "Window.takes", False, "return self.between(offset, lower) and last is not None"),
            ("comparison", "Window.takes", False, "return self.between(lower, offset) and last is None"),
            ("severity", "each", True, '@check("KA001", severity=Severity.WARNING)'),
            ("deleted guard", "each", False, "if False:"),
            ("comparison", "each", False, "if rows is not None:"),
            ("deleted guard", "each", False, "return [row for row in zip(rows, rows, strict=True) if True]"),
            ("comparison", "each", False, "return [row for row in zip(rows, rows, strict=True) if row not in rows]"),
        ]
    )


def test_a_mutant_is_a_source_that_differs_in_one_place():
    for mutant in mutated():
        ast.parse(applied(mutant))
        assert ast.dump(ast.parse(applied(mutant))) != ast.dump(ast.parse(SOURCE))


def test_the_listed_equivalents_are_mutants_of_today():
    assert all(reason.endswith((".", ")")) for reason in equivalent_mutants().values())


def results_of(run: Any) -> list[Result]:
    results: list[Result] = []
    runner = MutantRunner(2, lambda _, result: results.append(result))
    tests = [RecordedTest("test_x.py::test_a", 0.01, {}), RecordedTest("test_x.py::test_b", 0.01, {})]
    runner.try_all([Trial(mutated()[0], tests)], run)
    return results


def test_a_process_that_says_nothing_was_killed():
    """By its limits, or by what the mutant did to it."""

    def run(trial: Trial, *_) -> None:
        os.kill(os.getpid(), signal.SIGXCPU)

    assert results_of(run) == [Result(KILLED, "SIGXCPU")]


def test_an_error_of_the_trial_itself_kills_nothing():
    def run(trial: Trial, *_) -> None:
        raise LookupError("window")

    assert results_of(run) == [Result(UNDECIDED, "LookupError('window')")]


@pytest.mark.parametrize("flaky", [False, True])
def test_a_test_that_fails_without_the_mutant_proves_nothing(flaky):
    def run(trial: Trial, _, finish) -> None:
        fails = trial.tests and trial.tests[-1].id.endswith("b") and (flaky or trial.mutant is not None)
        finish(Result(KILLED, trial.tests[-1].id) if fails else Result(SURVIVED))

    assert [result.outcome for result in results_of(run)] == [SURVIVED if flaky else KILLED]


def test_a_function_is_changed_wherever_it_is_known():
    """A trial gives the function object the mutant's code: modules that imported it by name see the change."""
    from kaudit.broker.producer_state import rules
    from tests.mutation.trial import changed_code

    mutant = next(each for each in mutants_of("kaudit/broker/producer_state/rules.py") if each.function == "explains")
    code = changed_code(mutant)
    copy = FunctionType(code, vars(rules))
    assert (rules.explains(3, 3), copy(3, 3)) == (True, False)


def test_what_runs_at_import_is_tried_by_the_tests_that_use_it():
    """A constant of one module is used by a function of another: its tests come first, then those beside the module.

    Before all of them come those of the file that is named after the module.
    """
    constants = enumerate((ROOT / CONSTANTS).read_text().splitlines(), 1)
    (defined,) = (number for number, line in constants if line.startswith("DELETE_HORIZON_FLAG ="))
    columns = "kaudit/audits/replicas/compare.py"
    (using,) = (
        number
        for number, line in enumerate((ROOT / columns).read_text().splitlines(), 1)
        if "DELETE_HORIZON_FLAG" in line and "import" not in line
    )
    users = RecordedTest("tests/diff/test_gaps.py::test_a", 0.5, {columns: nums_to_numbits([using])})
    others = RecordedTest("tests/diff/test_gaps.py::test_b", 0.1, {columns: nums_to_numbits([using - 1])})
    beside = RecordedTest("tests/model/test_batch.py::test_c", 0.1, {})
    unrelated = RecordedTest("tests/cli/test_help.py::test_d", 0.1, {"kaudit/cli/app.py": nums_to_numbits([1])})
    own = RecordedTest("tests/model/test_batch_fields.py::test_e", 0.7, {})
    found = Reached([unrelated, others, beside, users, own]).by_use(CONSTANTS, defined)
    assert [test.id.rpartition("::")[2] for test in found] == ["test_e", "test_a", "test_c", "test_b"]


def test_cases_of_near_tests_are_not_given_up_for_far_ones():
    near = [RecordedTest(f"a.py::near[{case}]", 1.0, {}) for case in range(5)]
    far = [RecordedTest(f"b.py::far{name}[{case}]", 2.0, {}) for name in range(3) for case in range(2)]
    tests = [*near, *far]
    assert [test.id for test in affordable(tests, 10)] == [
        *(test.id for test in near),
        "b.py::far0[0]",
        "b.py::far1[0]",
    ]
    assert affordable(tests, 100) == tests
    assert affordable(tests, 0.5) == tests[:1]


def test_equivalent_mutants_beyond_three_in_a_hundred_count_as_survivors():
    outcomes = {KILLED: 170, SURVIVED: 20, UNDECIDED: 4}
    assert Score.of_outcomes(Counter(outcomes | {"equivalent": 6})) == Score(170, 194)
    assert Score.of_outcomes(Counter(outcomes | {"equivalent": 26})) == Score(170, 214)


@pytest.mark.parametrize(
    ("killed", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (170, 200, 0.7939, 0.8929)],
)
def test_interval_of_a_score(killed, of, low, high):
    """The first two are in textbooks (Wilson's interval); the third is worked out by hand."""
    assert Score(killed, of).interval() == pytest.approx((low, high), abs=5e-5)


@pytest.mark.spark
def test_a_function_that_was_pickled_with_its_code_notes_its_lines_too(monkeypatch):
    """As Spark pickles the functions of tasks: with what they refer to."""
    from pyspark import cloudpickle

    module = ModuleType("kaudit.pickled")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    lines = NotedLines(2)
    lines.module = module.__name__
    vars(module)["__lines_run__"] = lines
    exec("def outer():\n    def inner():\n        __lines_run__[1] = 1\n    return inner", vars(module))
    cloudpickle.loads(cloudpickle.dumps(vars(module)["outer"]()))()
    assert list(lines) == [0, 1]


def test_a_file_that_cannot_be_imported_or_fails_is_recorded_again(tmp_path, monkeypatch, capsys):
    sound, broken, failing = "tests/x/test_sound.py", "tests/x/test_broken.py", "tests/x/test_failing.py"
    measured: list[tuple[str, ...]] = []

    def measure(*files):
        measured.append(files)
        tests = {f"{file}::test_{name}": 0.1 for file in files for name in "ab"}
        failed = [broken] * (broken in files) + [f"{failing}::test_b"] * (failing in files)
        seconds = {test: spent for test, spent in tests.items() if test not in failed and not test.startswith(broken)}
        return {test: {} for test in tests}, seconds, failed

    monkeypatch.setattr(reach, "_TESTS", tmp_path / "tests.json")
    monkeypatch.setattr(reach, "_SOURCES", tmp_path / "sources")
    monkeypatch.setattr(reach, "_measure", measure)
    for _ in range(2):
        found = reach.reach([sound, broken, failing])
        assert [test.id.rpartition("/")[2] for test in found] == [
            "test_sound.py::test_a", "test_sound.py::test_b", "test_failing.py::test_a",
        ]  # fmt: skip
    assert measured == [(sound, broken, failing), (broken, failing)]
    assert f"failed, and reaches nothing: {failing}::test_b" in capsys.readouterr().err
