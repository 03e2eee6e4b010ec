"""The registry: a check is a function and a page of one name in a family, and nothing outside kaudit/checks knows any of them."""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kaudit.checks
from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.checks.registry import CHECKS, discover
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView

PACKAGE = Path(__file__).parents[2] / "kaudit"
CHECKS_DIRECTORY = PACKAGE / "checks"
COMMON = {
    *("check", "command_line", "context", "doubled", "incident_groups", "incident_rules", "listed"),
    *("log_evidence", "notes", "pages", "registry", "texts"),
}
"""Modules of kaudit.checks that are about no check, and may be imported from outside."""

NAMING = re.compile(r"""["']KA\d{3}["']|kaudit\.checks\.""")
MATCHING = {"bugs"}
"""A known bug names the checks of its findings."""

RAIN = '''
"""Text that mentions rain."""

from kaudit.checks.check import check, none_because
from kaudit.model.severity import Severity


@check(
    "KA999",
    severity=Severity.NOTE,
    summary="a text mentions rain",
    since="9.9.9",
    needs=(str,),
    incident=none_because("each text stands alone"),
    caused_by=none_because("no log mentions the weather"),
    simulated=none_because("it never rains"),
)
def rain(context, evidence):
    """Report each text."""
    for text in evidence.of(str):
        if "rain" in text:
            yield rain.finding(context, text)
'''


@functools.cache
def modules() -> list[tuple[Path, list[ast.AST]]]:
    """The modules that name a code or a module of kaudit.checks, each with all of its nodes."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py")))
    return [(path, list(ast.walk(ast.parse(text)))) for path, text in texts if NAMING.search(text)]


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """A check in a room of its own, made of nothing but its module and its page."""
    room = tmp_path / "weather"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "rain.py").write_text(RAIN, encoding="utf-8")
    (room / "rain.md").write_text("# KA999 rain\n\n## What it checks\nTexts.\n", encoding="utf-8")
    monkeypatch.setattr(kaudit.checks, "__path__", [*kaudit.checks.__path__, str(tmp_path)])
    try:
        yield next(check for check in discover() if check.code == "KA999")
    finally:
        for name in [name for name in sys.modules if name.startswith("kaudit.checks.weather")]:
            del sys.modules[name]


def test_a_module_and_a_page_in_a_room_are_a_check(weather: Check) -> None:
    context = Context(
        versions=VersionRange(Version.parse("2.0.1"), Version.parse("4.0.0")),
        coordinator=CoordinatorView(),
        clock=given_clock(0),
    )
    found = list(weather.run(context, Evidence(["rain today", "sun", "no rain"])))
    assert [(one.code, one.name, one.message) for one in found] == [
        ("KA999", "rain", "rain today"),
        ("KA999", "rain", "no rain"),
    ]
    assert weather.documentation() == {"What it checks": "Texts."}


def test_function_page_test_and_check_have_one_name() -> None:
    found = {check.name.replace("-", "_"): check for check in discover()}
    assert {check.code for check in found.values()} == set(CHECKS)
    for name, check in found.items():
        assert check.run.__module__.rpartition(".")[0] == check.package
        assert getattr(sys.modules[check.run.__module__], name) is check
        family = check.package.rpartition(".")[2]
        assert (CHECKS_DIRECTORY / family / f"{name}.md").is_file()
        assert (Path(__file__).parent / family / f"test_{name}.py").is_file()


def test_no_two_checks_have_one_code_or_observe_one_kind() -> None:
    found = list(discover())
    kinds = [kind for check in found for kind in check.observes]
    assert len(found) == len({check.code for check in found}) == len({check.name for check in found})
    assert len(kinds) == len(set(kinds))


def test_a_code_stands_in_its_decorator_and_nowhere_else() -> None:
    """Docstrings may name codes, and so may texts that people read; a string that is a code may not stand elsewhere."""
    elsewhere = []
    for path, nodes in modules():
        if path.relative_to(PACKAGE).parts[0] in MATCHING:
            continue
        registered = {
            id(node.args[0])
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and (node.func.id == "check" or node.func.id.endswith("_check"))  # `check` with a family's arguments
            and node.args
        }
        elsewhere += [
            (str(path.relative_to(PACKAGE)), node.value)
            for node in nodes
            if isinstance(node, ast.Constant) and node.value in CHECKS and id(node) not in registered
        ]
    assert elsewhere == []


def test_nothing_outside_knows_a_check() -> None:
    known = [
        (str(path.relative_to(PACKAGE)), node.module)
        for path, nodes in modules()
        if not path.is_relative_to(CHECKS_DIRECTORY)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("kaudit.checks.")
        and node.module.split(".")[2] not in COMMON
    ]
    assert known == []
