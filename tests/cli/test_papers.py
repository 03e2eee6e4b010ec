"""README and guide: every command, option and exit code is there, and none that does not exist."""

import re
from pathlib import Path

import pytest

from kaudit.cli.command_tree import command_tree
from kaudit.cli.exits import MEANINGS, ExitCode
from kaudit.cli.reference import dates_of, reference, shared_data
from kaudit.report.formats import FORMATS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
COMMANDS = command_tree().commands


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_shows_every_command(name):
    assert f"kaudit {name}" in README


_OTHER_TOOLS = {
    "--archives", "--cluster-metadata-decoder", "--deep-iteration", "--detach-sign", "--files", "--from-file", "--offsets-decoder",
    "--print-data-log", "--reset-offsets", "--share-group-state-decoder", "--transaction-log-decoder",
}  # fmt: skip
"""Options of Kafka's tools, spark-submit and gpg."""


def test_options_that_the_guide_names_are_options_of_kaudit():
    known = {"--help"} | {option for command in COMMANDS.values() for param in command.params for option in param.opts}
    known |= {option for param in command_tree().params for option in param.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", GUIDE))
    assert named - known - _OTHER_TOOLS == set()


@pytest.mark.parametrize("text", [README, GUIDE], ids=["README", "guide"])
def test_commands_shown_can_be_typed(text):
    for command in re.findall(r"^    kaudit (.*?)(?: +#.*)?$", text, re.MULTILINE):
        name, *words = command.split()
        options = {option for param in COMMANDS[name].params for option in param.opts}
        assert {word for word in words if word.startswith("-")} <= options, command


def test_the_reference_is_as_generated():
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m kaudit.cli.reference docs/reference.md"


def test_man_pages_and_completions_are_as_generated():
    share = ROOT / "docs" / "share"
    files = [path for path in share.rglob("*") if path.is_file()]
    written = {str(path.relative_to(share)): path.read_text(encoding="utf-8") for path in files}
    assert written == shared_data(dates_of(share)), "run: python -m kaudit.cli.reference docs/reference.md"


def test_every_exit_code_has_a_sentence():
    assert set(MEANINGS) == set(ExitCode)


def test_the_help_names_every_format():
    option = next(param for param in COMMANDS["scan"].params if param.name == "output_format")
    assert [name for name in FORMATS if not re.search(rf"\b{name}\b", getattr(option, "help", ""))] == []


def test_the_readme_has_every_exit_code():
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "samples").rglob("*.md")])


def test_links_between_papers_lead_somewhere():
    for paper in PAPERS:
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", _prose(paper)):
            other = paper.parent / target if target else paper
            assert other.exists(), (paper, target)
            assert not anchor or anchor in _anchors(other), f"{paper}: {target}#{anchor}"


def _prose(paper):
    """The text without code, where brackets mean other things."""
    text = re.sub(r"^```.*?^```", "", paper.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def _anchors(paper):
    headings = re.findall(r"^#+ (.*)$", paper.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
