"""explain and checks: from the registry, for people and programs."""

import json

import pytest

from kaudit.checks.check import HEADINGS
from kaudit.checks.registry import CHECKS
from kaudit.installation import version_text
from kaudit.report.selection import parse_codes


@pytest.mark.parametrize("code", CHECKS)
def test_every_check_can_be_explained_by_code_and_by_name(kaudit, code):
    outcome = kaudit("explain", code)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{code} {CHECKS[code].name}")
    lines = outcome.out.splitlines()
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 110  # examples stand as they print
    assert kaudit("explain", CHECKS[code].name).out == outcome.out
    assert kaudit("explain", code.lower(), "--no-color").out == outcome.out


def test_explain_wraps_to_the_terminal(kaudit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    prose = [
        line for line in kaudit("explain", "KA301").out.splitlines()[1:] if "--" not in line and line[:4] != "    "
    ]
    assert max(map(len, prose)) <= 60


def test_explain_as_json(kaudit):
    page = json.loads(kaudit("explain", "KA101", "--output-format", "json").out)
    assert page["schema"] == "kaudit.check/1"
    assert page["severity"] == "error"
    assert set(page["documentation"]) == set(HEADINGS)
    assert page["documentation"]["What it checks"] == CHECKS["KA101"].documentation()["What it checks"]


def test_checks_lists_every_check_once(kaudit):
    lines = kaudit("checks").out.splitlines()
    assert [line[:5] for line in lines if line.startswith("KA")] == list(CHECKS)


def test_checks_as_json(kaudit):
    listed = json.loads(kaudit("checks", "--output-format", "json").out)
    assert [check["code"] for check in listed["checks"]] == list(CHECKS)
    assert listed["checks"][0]["name"] == "crc-mismatch"


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["scan", "--version"], ["explain", "--version"]])
def test_version(kaudit, arguments):
    assert (kaudit(*arguments).code, kaudit(*arguments).out) == (0, f"{version_text()}\n")


@pytest.mark.parametrize("command", ["scan", "timeline", "explain", "checks"])
def test_every_command_has_help(kaudit, command):
    outcome = kaudit(command, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: kaudit {command}")
    assert command in kaudit("--help").out


def test_codes_prefixes_and_names_select_the_same_checks():
    assert parse_codes(["duplicate-batch, ka2", "Stray-File"], "--select") == ("KA101", "KA2", "KA011")


@pytest.mark.parametrize(
    ("typed", "codes"),
    [
        ("sequence-gap", ["KA104"]),
        ("duplicate", ["KA101", "KA102", "KA702"]),
        ("KA60", ["KA601", "KA602", "KA603"]),
        ("late transactional", ["KA304"]),
    ],
)
def test_a_check_is_found_by_a_word(kaudit, typed, codes):
    outcome = kaudit("explain", typed)
    assert outcome.code == 0
    if len(codes) == 1:
        assert outcome.out == kaudit("explain", codes[0]).out
        return
    assert set(codes) <= {line[:5] for line in outcome.out.splitlines()}
    listed = json.loads(kaudit("explain", typed, "--output-format", "json").out)
    assert set(codes) <= {check["code"] for check in listed["checks"]}
    assert all(
        typed.lower() in (check["code"] + check["name"] + check["summary"]).lower() for check in listed["checks"]
    )


def test_a_word_that_only_a_page_holds(kaudit):
    assert "KA301" in kaudit("explain", "KIP-664").out


def test_a_word_no_page_holds(kaudit):
    outcome = kaudit("explain", "sequense-gap")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean sequence-gap" in outcome.err
