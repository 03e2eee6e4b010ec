"""Outputs shown in docs: the example of each check and the README of each sample, made by running kaudit.

`python -m tests.examples` writes them anew, `python -m tests.examples KA201 duplicate-batch samples/zombie README.md` only
these; then read the diff. tests/test_examples.py fails when they are stale.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from kaudit.checks.registry import CHECKS
from tests.commands import output_of

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"

_FENCE = re.compile(r"```text\n\$ (?P<command>kaudit [^\n]*)\n(?P<output>.*?)```", re.DOTALL)
WIDTH = "76"


def commands() -> dict[str, str]:
    """The command each check's page shows in its example, by the check's code; none where words must do."""
    found = {code: _FENCE.search(check.documentation()["Example"]) for code, check in CHECKS.items()}
    return {code: match["command"] for code, match in found.items() if match is not None}


def run(command: str) -> str:
    """What a command given as in the docs prints on both streams, at 76 columns and without colour."""
    return output_of(command.split()[1:], ROOT, {"COLUMNS": WIDTH, "NO_COLOR": "1"})


def check_example(code: str, command: str) -> str:
    """The example of a check: the command, and the first finding of the check that it prints."""
    finding = next(part for part in run(command).split("\n\n") if f"[{code}]" in part).rstrip()
    return f"```text\n$ {command}\n{finding}\n```"


def page_of(code: str) -> Path:
    """The page beside the check's module."""
    check = CHECKS[code]
    return Path(str(sys.modules[check.package].__file__)).parent / f"{check.name.replace('-', '_')}.md"


def pages(names: Sequence[str] = ()) -> Iterator[tuple[Path, str]]:
    """Every page with generated output, and what it should say; with names, only their pages.

    A name is a check's code or name, the directory of a sample, or the path of a page.
    """
    chosen = {_page_named(name) for name in names}
    for path, renewed in _pages().items():
        if not names or path in chosen:
            yield path, renewed(path.read_text(encoding="utf-8"))


def _page_named(name: str) -> Path:
    for code, check in CHECKS.items():
        if name in (code, check.name):
            return page_of(code)
    path = (ROOT / name).resolve()
    page = path / "README.md" if path.is_dir() else path
    if page not in _pages():
        sys.exit(f"{name}: neither a check with an example, nor a sample, nor a page with generated output")
    return page


def _pages() -> dict[Path, Callable[[str], str]]:
    """Every page with generated output, and the function that renews its text."""
    return {
        **{page_of(code): partial(_check_page, code, command) for code, command in commands().items()},
        ROOT / "README.md": _readme,
        **{path: partial(_FENCE.sub, _renew) for path in SAMPLES.glob("*/README.md")},
    }


def _check_page(code: str, command: str, text: str) -> str:
    head, rest = text.split("## Example\n", 1)
    _, tail = rest.split("\n## ", 1)
    return f"{head}## Example\n\n{check_example(code, command)}\n\n## {tail}"


def _readme(text: str) -> str:
    """README.md with the finding it opens with."""
    head, rest = text.split("<!-- finding -->\n", 1)
    _, tail = rest.split("<!-- /finding -->", 1)
    return f"{head}<!-- finding -->\n{check_example('KA201', commands()['KA201'])}\n<!-- /finding -->{tail}"


def _renew(match: re.Match[str]) -> str:
    command = match["command"]
    return f"```text\n$ {command}\n{run(command)}```"


if __name__ == "__main__":
    for target, content in pages(sys.argv[1:]):
        target.write_text(content, encoding="utf-8")
