"""README and guide: every command, option and exit code is there, and none that does not exist."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from kaudit.cli.app import app
from kaudit.cli.exits import ExitCode

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_shows_every_command(name):
    assert f"kaudit {name}" in README


@pytest.mark.parametrize("name", ["scan", "timeline"])
def test_the_guide_lists_every_option_and_no_other(name):
    options = {option for param in COMMANDS[name].params for option in param.opts if option.startswith("-")}
    rows = [line for line in GUIDE.splitlines() if line.startswith("| `-")]
    listed = {option for row in rows for option in re.findall(r"`(--?[a-zA-Z-]+)", row.split("|")[1])}
    assert listed == options


@pytest.mark.parametrize("text", [README, GUIDE], ids=["README", "guide"])
def test_commands_shown_can_be_typed(text):
    for command in re.findall(r"^    kaudit (.*?)(?: +#.*)?$", text, re.MULTILINE):
        name, *words = command.split()
        options = {option for param in COMMANDS[name].params for option in param.opts}
        assert {word for word in words if word.startswith("-")} <= options, command


def test_the_readme_has_every_exit_code():
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/guide.md", "docs/checks/README.md"])
def test_links_between_papers_lead_somewhere(name):
    paper = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", paper.read_text(encoding="utf-8")):
        assert (paper.parent / target).exists(), target
