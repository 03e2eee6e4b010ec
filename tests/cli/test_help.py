"""--help: the most used options, examples, then options under headings, each with a plain word for its value."""

import enum
import re

import pytest
from typer.core import TyperGroup, TyperOption

from kaudit.cli.command_tree import command_tree
from kaudit.cli.reference import reference


def leaves(command, path=()):
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from leaves(child, (*path, name))
    else:
        yield path, command


BEFORE_THE_GROUPS = ("Most used options", "Examples", "Arguments")

COMMANDS = dict(leaves(command_tree()))
every_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


def sections(text):
    """The headings of a page and the lines under each, without those that only carry on."""
    headings: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            own = headings.setdefault(line[:-1], [])
        elif re.match(r"  \S", line) and headings:
            own.append(line.strip())
    return headings


def options_in(lines):
    return [re.findall(r"--[a-z0-9-]+", line)[0] for line in lines]


@every_command
def test_every_option_stands_under_one_heading_and_no_list_is_long(kaudit, command):
    found = sections(kaudit(*command, "--help").out)
    listed = {name: options_in(lines) for name, lines in found.items() if name not in BEFORE_THE_GROUPS}
    known = [max(param.opts, key=len) for param in COMMANDS[command].params if isinstance(param, TyperOption)]
    assert sorted(option for options in listed.values() for option in options) == sorted([*known, "--help"])
    assert max(map(len, listed.values())) <= 12
    assert next(reversed(listed.values()))[-1] == "--help"
    assert "General" not in listed or list(listed)[-1] == "General"


@every_command
def test_values_are_plain_words(kaudit, command):
    for param in COMMANDS[command].params:
        if isinstance(param, TyperOption) and not param.is_flag:
            assert re.fullmatch(r"[A-Z]+(=[A-Z]+|\[:FILE\]|\[\.\.B\])?", param.metavar or ""), param.opts
    out = kaudit(*command, "--help").out
    assert not re.search(r"x>=|\[default|\[required|<\w+|\w\|\w|\{[A-Z]", out)


@every_command
def test_choices_are_all_listed_with_the_default_among_them(kaudit, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    out = " ".join(kaudit(*command, "--help").out.split())
    for param in COMMANDS[command].params:
        if isinstance(param.default, enum.Enum):
            words = [f"{each.value} (default)" if each is param.default else each.value for each in type(param.default)]
            assert f": {', '.join(words[:-1])} or {words[-1]}." in out


def test_the_most_used_options_and_the_examples_come_first_and_whole(kaudit):
    out = kaudit("scan", "--help").out
    assert list(sections(out))[:4] == [*BEFORE_THE_GROUPS, "Filters"]
    assert options_in(sections(out)["Most used options"]) == ["--topic", "--since", "--output-format"]
    assert "\n    $ kaudit scan --topic orders /disk1/kafka /disk2/kafka\n" in out
    assert "kubectl logs kafka-0 | kaudit scan -" in sections(out)["Examples"]


@pytest.mark.parametrize(
    "command", [name for name, each in COMMANDS.items() if each.epilog and len(each.params) > 9], ids=" ".join
)
def test_each_of_the_most_used_options_has_an_example_with_it(kaudit, command):
    shown = re.search(r"^Most used options:\n((?: .*\n)+)", kaudit(*command, "--help").out, re.MULTILINE)
    assert shown is not None
    listed = re.findall(r"^  (-\S.*)\n(?:     .*\n)*?    \$ (kaudit .*)$", shown[1], re.MULTILINE)
    assert len(listed) == 3
    for names, example in listed:
        assert any(f" {name} " in f"{example} " for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", names))


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("scan", "[PATH...]"),
        ("dedup", "[PATH...]"),
        ("groups", "[PATH...]"),
        ("replay", "[ATTEMPTS.jsonl]"),
        ("explain", "[ANYTHING...]"),
        ("report", "SAVED.json"),
    ],
)
def test_the_usage_shows_what_must_be_given_and_what_may_repeat(kaudit, command, usage):
    assert kaudit(command, "--help").out.splitlines()[0] == f"Usage: kaudit {command} [OPTIONS] {usage}"


@every_command
def test_the_reference_has_the_same_headings_in_the_same_order(kaudit, command):
    section = reference().split(f"\n## kaudit {' '.join(command)}\n")[1].split("\n## ")[0]
    found = sections(kaudit(*command, "--help").out)
    assert re.findall(r"^\| ([A-Z][a-z ]+) \| \|$", section, re.MULTILINE) == [
        name for name in found if name not in BEFORE_THE_GROUPS
    ]


def test_help_is_no_wider_on_a_wide_terminal_than_people_read(kaudit, monkeypatch):
    widths = {}
    for columns in (80, 140):
        monkeypatch.setenv("COLUMNS", str(columns))
        widths[columns] = max(map(len, kaudit("scan", "--help").out.splitlines()))
    assert widths[80] < 80 < widths[140] <= 100


def test_without_a_command_the_questions_stand_with_the_command_that_answers_each(kaudit):
    shown = kaudit()
    lines = shown.err.splitlines()
    questions = {line: lines[number + 1].strip() for number, line in enumerate(lines) if line.endswith("?")}
    assert (shown.code, shown.out, len(questions)) == (2, "", 5)
    names = [command.rpartition("kaudit ")[2].split()[0] for command in questions.values()]
    assert {(name,) for name in names} <= COMMANDS.keys()
