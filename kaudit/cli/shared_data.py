"""What a package brings for the system beside itself, from the command tree: a man page for each command, shell completions.

`python -m kaudit.cli.reference docs/reference.md` writes it to docs/share, which a wheel installs as PREFIX/share.
"""

import datetime as dt
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from typer._completion_shared import get_completion_script
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kaudit import __version__
from kaudit.cli.command_help import arguments, commands_of, examples_of, meaning, metavar, sections_of, usage_pieces
from kaudit.cli.command_tree import command_tree
from kaudit.cli.exits import MEANINGS
from kaudit.cli.settings.settings import PREFIX

_COMPLETIONS = {
    "bash": "bash-completion/completions/kaudit",
    "zsh": "zsh/site-functions/_kaudit",
    "fish": "fish/vendor_completions.d/kaudit.fish",
}
_TITLE = re.compile(r"(?m)^(\.TH \S+ 1) (?P<date>\d{4}-\d{2}-\d{2}) ")
_NO_DATE = "1970-01-01"
_WIDTH = 76
"""Columns of source lines: tools that read roff want at most 80."""


def shared_data(dates: Mapping[str, str]) -> dict[str, str]:
    """Return the files by their path below `share`. `dates`: what a man page bears in its title (YYYY-MM-DD), by path."""
    tree = command_tree()
    commands = dict(commands_of("kaudit", tree))
    pages = {_place("kaudit"): _overview(tree, commands, dates.get(_place("kaudit"), _NO_DATE))}
    for name, command in commands.items():
        pages[_place(name)] = _page(name, command, dates.get(_place(name), _NO_DATE))
    return pages | {place: _completion(shell) for shell, place in _COMPLETIONS.items()}


def dates_of(directory: Path) -> dict[str, str]:
    """Return the dates that the man pages below a `share` bear, by path."""
    titles = {path: _TITLE.search(path.read_text(encoding="utf-8")) for path in directory.glob("man/man1/*.1")}
    return {str(path.relative_to(directory)): title["date"] for path, title in titles.items() if title}


def write_shared_data(directory: Path) -> None:
    """Write the files; a man page that says something else than before gets today's date."""
    dates = dates_of(directory)
    same = {path for path, text in shared_data(dates).items() if _read(directory / path) == text}
    today = dt.datetime.now(dt.UTC).date().isoformat()
    files = shared_data({path: dates[path] if path in same & {*dates} else today for path in shared_data({})})
    shutil.rmtree(directory, ignore_errors=True)
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _place(name: str) -> str:
    return f"man/man1/{name.replace(' ', '-')}.1"


def _overview(tree: TyperGroup, commands: Mapping[str, TyperCommand], date: str) -> str:
    text = inspect.cleandoc(tree.help or "")
    listed = [
        line
        for name, command in commands.items()
        for line in [".TP", rf".BR {_manual(name)} (1)", *_text(_summary(command))]
    ]
    return _lines(
        *_head("kaudit", text.partition(":")[0], date),
        ".SH SYNOPSIS", ".B kaudit", r".RI COMMAND\ [ OPTIONS ]\ [ ARGUMENT ...]",
        ".SH DESCRIPTION", *_text(text),
        ".SH COMMANDS", *listed,
        *_tail(sorted(map(_manual, commands))),
    )  # fmt: skip


def _page(name: str, command: TyperCommand, date: str) -> str:
    lines = [
        *_head(name.replace(" ", "-"), _summary(command), date),
        ".SH SYNOPSIS", f".B {_escaped(name)}", *_text(" ".join(usage_pieces(command))),
        ".SH DESCRIPTION", *_text(inspect.cleandoc(command.help or "")),
    ]  # fmt: skip
    if given := arguments(command):
        lines += [".SH ARGUMENTS", *(line for argument in given for line in _parameter(argument))]
    for heading, options in sections_of(command).items():
        lines += [f".SH {_escaped(heading.upper())}", *(line for option in options for line in _parameter(option))]
    if examples := examples_of(command):
        lines += [".SH EXAMPLES", ".nf", *(_no_request(_escaped(example)) for example in examples), ".fi"]
    return _lines(*lines, *_tail(["kaudit"]))


def _summary(command: TyperCommand) -> str:
    return command.get_short_help_str(limit=200)


def _manual(name: str) -> str:
    return _escaped(name.replace(" ", "-"))


def _head(name: str, summary: str, date: str) -> list[str]:
    title = f'.TH {name.upper()} 1 {date} "kaudit {__version__}" "kaudit manual"'
    return [title, ".SH NAME", *textwrap.wrap(rf"{_escaped(name)} \- {_escaped(summary.removesuffix('.'))}", _WIDTH)]


def _tail(others: list[str]) -> list[str]:
    exits = [line for code, text in MEANINGS.items() for line in (".TP", f".B {int(code)}", *_text(text))]
    settings = (
        f"Every option that kaudit.toml can set can be set as {PREFIX} and its name, such as {PREFIX}FAIL_ON for "
        "--fail-on. kaudit config show lists every setting and where it comes from."
    )
    seen = [f".BR {other} (1){',' if rank < len(others) - 1 else ''}" for rank, other in enumerate(others)]
    return [".SH EXIT STATUS", *exits, ".SH ENVIRONMENT", *_text(settings), ".SH SEE ALSO", *seen]


def _parameter(param: TyperArgument | TyperOption) -> Iterator[str]:
    if isinstance(param, TyperArgument):
        names = rf"\fI{_escaped(metavar(param))}\fR"
    else:
        value = "" if param.is_flag else rf" \fI{_escaped(metavar(param))}\fR"
        names = ", ".join(rf"\fB{_escaped(name)}\fR{value}" for name in sorted(param.opts, key=len))
    yield from (".TP", names, *_text(meaning(param)))


def _text(text: str) -> list[str]:
    """Return paragraphs of plain text as lines of roff."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines += [".PP"] if lines else []
        words = _escaped(" ".join(paragraph.split()))
        lines += [
            _no_request(line) for line in textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False)
        ]
    return lines


def _escaped(text: str) -> str:
    """Escape what roff would change: the backslash, and characters it prints as typographic ones."""
    marks = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
    return "".join(marks.get(character, character) for character in text)


def _no_request(line: str) -> str:
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _completion(shell: str) -> str:
    script = get_completion_script(prog_name="kaudit", complete_var="_KAUDIT_COMPLETE", shell=shell)
    # zsh loads the file at the first completion and runs it as the function: it has to answer, too
    return f'{script}\n_kaudit_completion "$@"\n' if shell == "zsh" else f"{script}\n"
