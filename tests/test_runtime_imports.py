"""Imports inside functions are few, and each says why it does not stand at the top of its module."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kaudit"
MOST = 40


def imports_in_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each line with an import inside a function of a module."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for function in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node.lineno, lines[node.lineno - 1]


FOUND = sorted(
    {(path.relative_to(PACKAGE), *found) for path in PACKAGE.rglob("*.py") for found in imports_in_functions(path)}
)


def test_they_are_few():
    assert 0 < len(FOUND) <= MOST


@pytest.mark.parametrize(
    ("path", "line", "text"), FOUND, ids=lambda value: str(value) if not isinstance(value, str) else ""
)
def test_each_has_its_reason(path, line, text):
    reason = re.search(r"#\s*(?:noqa: PLC0415\s*-\s*)?(?!noqa)(\S.+)$", text)
    assert reason, f"{path}:{line} says no reason: {text.strip()}"
