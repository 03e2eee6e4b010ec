"""The list of checks and what people read of them, without the modules that define them: most of a scan's modules would be checks that find nothing.

checks.tsv has a line for each check, in the order of their codes. `python -m kaudit.checks.pages docs/checks` writes it.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from msgspec import Struct, convert, to_builtins

from kaudit.errors import suggestion
from kaudit.model.severity import Severity

PACKAGE = "kaudit.checks"
TABLE = "checks.tsv"
HEADINGS = (
    "What it checks",
    "Why it matters",
    "What the broker does",
    "Example",
    "Innocent explanations",
    "What to do",
    "References",
)


class Listed(Struct, frozen=True, eq=False, kw_only=True):
    """What people read of a check. `severity` is the highest it reports, `severity_note` says when it is lower.

    `since`: the release it came with. `module` defines it.
    """

    code: str
    name: str
    severity: Severity
    severity_note: str
    since: str
    summary: str
    module: str

    @property
    def severity_text(self) -> str:
        """`error; warning in the last segment`."""
        return self.severity.value + (f"; {self.severity_note}" if self.severity_note else "")

    @property
    def package(self) -> str:
        """The package of its family."""
        return self.module.rpartition(".")[0]

    @property
    def family(self) -> str:
        """The family's prefix, e.g. `KA1`."""
        return self.code[:3]

    def page(self) -> str:
        """Return the text of the Markdown page beside the check's module."""
        return read_page(self.package, self.name.replace("-", "_"))

    def documentation(self) -> Mapping[str, str]:
        """Return the body under each of HEADINGS."""
        return parse_documentation(self.page())


def modules_of_families(package: ModuleType) -> Iterator[ModuleType]:
    """Import and yield the modules of every package directly in `package`."""
    for family in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if family.ispkg:
            for found in pkgutil.iter_modules(importlib.import_module(family.name).__path__, f"{family.name}."):
                yield importlib.import_module(found.name)


def read_page(package: str, name: str) -> str:
    """Return the text of the Markdown page `name` in a package."""
    page = pkgutil.get_data(package, f"{name}.md")
    assert page is not None
    return page.decode()


def parse_documentation(text: str) -> dict[str, str]:
    """Split a check's Markdown page into its `## ` sections."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("## "):
            current = sections.setdefault(line[3:].strip(), [])
        elif current is not None:
            current.append(line)
    return {heading: "\n".join(lines).strip() for heading, lines in sections.items()}


def table(checks: Sequence[tuple[Listed, Sequence[str]]]) -> str:
    """Return the text of checks.tsv: the fields of each check, and the names of the types it is run for, one of them."""
    fields = Listed.__struct_fields__
    lines = ([*(str(to_builtins(getattr(check, name))) for name in fields), *needs] for check, needs in checks)
    return "".join("\t".join(line) + "\n" for line in lines)


def _rows() -> Iterator[tuple[Listed, frozenset[str]]]:
    text = pkgutil.get_data(PACKAGE, TABLE)
    assert text is not None
    fields = Listed.__struct_fields__
    for line in text.decode().splitlines():
        values = line.split("\t")
        yield convert(dict(zip(fields, values, strict=False)), Listed), frozenset(values[len(fields) :])


_ROWS = list(_rows())
LISTED: Mapping[str, Listed] = {listed.code: listed for listed, _ in _ROWS}
NEEDS: Mapping[str, frozenset[str]] = {listed.code: needs for listed, needs in _ROWS}
"""By code, the names of the types of evidence that a check is run for."""


def find(code_or_name: str) -> Listed | None:
    """Return the check with this code or this name, in any case; None if there is none."""
    named = {listed.name: listed for listed in LISTED.values()}
    return LISTED.get(code_or_name.upper()) or named.get(code_or_name.lower())


def nearest(typed: str) -> str:
    """Return `; did you mean X?` of codes or names, and where all of them are listed."""
    names = [listed.name for listed in LISTED.values()]
    return f"{suggestion(typed.upper(), LISTED) or suggestion(typed.lower(), names)} ('kaudit checks' lists them)"
