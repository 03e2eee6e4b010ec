"""How every command speaks: at 80 and 140 columns, in a pipe, coloured or not, with an environment that has opinions."""

import re

import pytest
from typer.core import TyperGroup

from kaudit.cli.command_tree import command_tree

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# Commands to copy, a file's or a topic's name: never broken, whatever the width.
UNBREAKABLE = re.compile(
    r"= help: |\.log\b|kafka-transactions|kaudit (scan|timeline|baseline|report|inspect|producers) "
)


def tree(command=None, path=()):
    command = command or command_tree()
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from tree(child, (*path, name))
    else:
        yield path


COMMANDS = list(tree())
SPOKEN = [
    ("scan", "samples/hanging-transaction"),
    ("scan", "-v", "samples/duplicates"),
    ("scan", "samples/clean"),
    ("timeline", "samples/open-transaction"),
    ("producers", "samples/open-transaction"),
    ("explain", "KA301"),
    ("checks",),
    ("config", "show"),
]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 140])
def test_help_fits_and_says_what_everything_is_for(kaudit, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")  # typer colours for these three
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("PY_COLORS", "1")
    outcome = kaudit(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= columns
    assert "\x1b" not in outcome.out
    assert re.search(r"^Usage: kaudit " + " ".join(command), outcome.out)


@pytest.mark.parametrize("command", SPOKEN, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 140])
def test_what_people_read_fits(kaudit, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = kaudit(*command)
    assert outcome.code in (0, 1)
    wide = [line for line in outcome.out.splitlines() if len(line) > columns and not UNBREAKABLE.search(line)]
    assert wide == []


@pytest.mark.parametrize("command", SPOKEN, ids=" ".join)
@pytest.mark.parametrize(
    ("environ", "options", "colored"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"CLICOLOR_FORCE": "1"}, (), True),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, (), False),
        ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
        ({"FORCE_COLOR": "1"}, ("--no-color",), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
    ],
    ids=str,
)
def test_colour_is_asked_for_and_only_added(kaudit, monkeypatch, command, environ, options, colored):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out = kaudit(*command, *options).out
    assert ("\x1b[" in out) is colored
    if command != ("config", "show"):  # shows the options it was given
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        assert ESCAPE.sub("", out) == kaudit(*command, "--color", "never").out


@pytest.mark.parametrize("form", ["json", "jsonl", "sarif", "junit", "gitlab", "github", "markdown"])
def test_machines_and_pages_get_no_colour_even_when_forced(kaudit, monkeypatch, form):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in kaudit("scan", "samples/duplicates", "--color", "always", "--output-format", form).out


def test_stdout_is_the_result_and_nothing_else(kaudit):
    outcome = kaudit("scan", "samples/clean", "--output-format", "gitlab")
    assert outcome.out == "[]\n"
    assert outcome.err.startswith("no findings in ")
    assert kaudit("scan", "samples/clean", "--output-format", "gitlab", "-q").err == ""
