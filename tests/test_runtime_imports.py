"""Commands import no more of kaudit than they use; imports inside functions are few, and each says why it does not stand at the top of its module."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kaudit"
MOST = 40


INDENTED = re.compile(r"^ +(?:import \w|from [\w.]+ import )", re.MULTILINE)


def imports_in_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each line with an import inside a function of a module."""
    text = path.read_text(encoding="utf-8")
    if not INDENTED.search(text):
        return
    lines = text.splitlines()
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node.lineno, lines[node.lineno - 1]


@pytest.fixture(scope="module")
def found() -> list[tuple[str, int, str]]:
    modules = PACKAGE.rglob("*.py")
    return sorted({(str(path.relative_to(PACKAGE)), *each) for path in modules for each in imports_in_functions(path)})


def test_they_are_few(found):
    assert 0 < len(found) <= MOST


def test_each_has_its_reason(found):
    reason = re.compile(r"#\s*(?:noqa: PLC0415\s*-\s*)?(?!noqa)(\S.+)$")
    without = [f"{path}:{line}: {text.strip()}" for path, line, text in found if not reason.search(text)]
    assert not without, "they say no reason"


_COUNTING = """
import atexit, os, sys
sys.argv = ["kaudit", *sys.argv[1:]]
def count():
    sys.stderr.write(str(sum(name.partition(".")[0] == "kaudit" for name in sys.modules)))
atexit.register(count)
from kaudit.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["scan", "--quiet", str(PACKAGE.parent / "samples" / "clean" / "mix-ct-0")], 285),
        (["explain", "KA101"], 85),
        (["checks"], 55),
        (["--help"], 20),
    ],
)
def test_commands_import_few_modules(arguments, most):
    """A scan of a healthy partition needs neither the checks that find nothing in it nor what compares replicas."""
    done = subprocess.run([sys.executable, "-c", _COUNTING, *arguments], capture_output=True, text=True, check=True)
    assert 0 < int(done.stderr) <= most
