"""Pages whose commands are run as written: docs/operators.md, docs/ci.md and others below.

`python -m tests.stories` writes their outputs anew, `python -m tests.stories guide.md` those of one page; then read the diff.
tests/test_stories.py fails when they are stale. In a `console` block a line `$ ...` is a shell command; what follows is what it printed, on both streams.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.commands import forked
from tests.unpacked import unpacked

ROOT = Path(__file__).parents[1]
PAGES = (
    "quick-start.md",
    "guide.md",
    "operators.md",
    "ci.md",
    "configuration.md",
    "library.md",
    "consumers.md",
    "exactly-once.md",
    "tiered-storage.md",
)
_BLOCK = re.compile(r"(?P<fence>```console\n)(?P<body>.*?)```", re.DOTALL)
_FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)
_PLAIN = re.compile(r"kaudit (?P<arguments>[^|<>;&*?$`~(){}\\]*)(?:\| (?P<filter>.*))?")
"""A command of kaudit, alone or before a pipe, of whose arguments the shell changes nothing: a fork runs it (tests/commands.py)."""
_RECORDINGS, _UNPACKS = re.compile(r"tests/data/\S+?\.tar\.xz"), re.compile(r"tar -xJf (\S+) -C ")
_WIDTH = "76"
# pytest, run by a story, shortens its summary unless CI or BUILD_NUMBER is set
_DROPPED = ("KAUDIT_", "GITHUB_", "PYTEST_", "BUILD_NUMBER", "CI=")


def renewed(page: str, directory: Path) -> str:
    """The page with every output as it comes out now; its commands share one directory."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for shared in ("samples", "tests"):
        (directory / shared).symlink_to(ROOT / shared)
    _write_files(text, directory)
    program = directory / ".bin" / "kaudit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kaudit "$@"\n')
    program.chmod(0o755)
    return _BLOCK.sub(lambda block: block["fence"] + _run_all(block["body"], directory) + "```", text)


def _write_files(text: str, directory: Path) -> None:
    """Write the files a page shows, named in a comment above each."""
    for match in _FILE.finditer(text):
        (directory / match["name"]).write_text(match["text"], encoding="utf-8")


def _run_all(body: str, directory: Path) -> str:
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_run(command, directory)}" for command in commands)


def _run(command: str, directory: Path) -> str:
    """What a command prints on both streams, and its exit code if that is not 0; without the times and the directory."""
    plain = _PLAIN.fullmatch(command)
    printed, code = _forked(plain, directory) if plain else _in_a_shell(command, directory)
    # neither how long it took nor where is the same twice
    output = re.sub(r", \d+(\.\d+)? s(?=$|;)", "", printed, flags=re.MULTILINE).replace(f"{directory}/", "")
    output = re.sub(r" in \d+\.\d+s$", "", output, flags=re.MULTILINE)
    return output + (f"[exit code {code}]\n" if code else "")


def _forked(command: re.Match[str], directory: Path) -> tuple[str, int]:
    arguments, variables = shlex.split(command["arguments"]), _variables(directory)

    def leave_out_the_rest() -> None:
        for name in set(os.environ) - set(variables):
            del os.environ[name]

    done = forked(arguments, directory, variables, together=not command["filter"], before=leave_out_the_rest)
    if not command["filter"]:
        return done.out, done.code
    filtered, code = _in_a_shell(command["filter"], directory, done.out)
    return done.err + filtered, code


def _copying(command: str) -> str:
    """The command with copies of recordings that the tests have unpacked already: xz is a quarter of what the stories cost."""
    for pattern in _RECORDINGS.findall(command):
        for archive in ROOT.glob(pattern):
            command = _UNPACKS.sub(rf"cp -a {unpacked(archive).parents[3]}/\1/. ", command)
    return command


def _in_a_shell(command: str, directory: Path, stdin: str | None = None) -> tuple[str, int]:
    done = subprocess.run(
        ["bash", "-c", _copying(command)],
        cwd=directory,
        env=_variables(directory),
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode


def _variables(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not f"{name}=".startswith(_DROPPED)}
    return {
        **kept,
        "COLUMNS": _WIDTH,
        "NO_COLOR": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "HOME": str(directory),
        "XDG_CONFIG_HOME": str(directory / ".config"),
        "PATH": f"{directory / '.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


if __name__ == "__main__":
    names = [Path(argument).name for argument in sys.argv[1:]]
    if unknown := set(names) - set(PAGES):
        sys.exit(f"{', '.join(sorted(unknown))}: not among {', '.join(PAGES)}")
    for name in names or PAGES:
        with tempfile.TemporaryDirectory(prefix="kaudit-story-") as place:
            (ROOT / "docs" / name).write_text(renewed(name, Path(place)), encoding="utf-8")
