"""The registry of checks: one record a code, its documentation in `docs/<CODE>.md` beside it.

`kaudit explain`, `kaudit checks`, docs/checks and the help of every output format come from these records.
"""

from collections.abc import Mapping

from msgspec import Struct

from kaudit.checks.catalogue import CATALOGUE
from kaudit.model.finding import Severity

HEADINGS = (
    "What it checks",
    "Why it matters",
    "What the broker does",
    "Evidence shown",
    "Example",
    "Innocent explanations",
    "What to do",
    "References",
)


class UnknownCheckError(LookupError):
    """No check has this code; `suggestions` are the nearest codes."""

    def __init__(self, code: str, suggestions: tuple[str, ...]) -> None:
        self.code = code
        self.suggestions = suggestions
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"there is no check {code}{hint}")


class Check(Struct, frozen=True):
    """One check: `severity` is the gravest it reports, `severity_note` says when it is less."""

    code: str
    name: str
    severity: Severity
    severity_note: str
    summary: str
    since: str

    @property
    def family(self) -> str:
        """Return the family prefix, e.g. `KA1`."""
        return self.code[:3]

    def documentation(self) -> Mapping[str, str]:
        """Return the Markdown body under each of HEADINGS."""
        import importlib.resources  # noqa: PLC0415 - 2 ms, and only `explain` reads pages

        return parse_documentation(
            importlib.resources.files(__package__).joinpath("docs", f"{self.code}.md").read_text(encoding="utf-8")
        )


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


CHECKS: Mapping[str, Check] = {
    code: Check(code, name, Severity(severity), severity_note, summary, since)
    for code, name, severity, severity_note, summary, since in CATALOGUE
}


def check(code: str) -> Check:
    """Return the check with this code, in any case.

    Raises:
        UnknownCheckError: no check has it.

    """
    found = CHECKS.get(code.upper())
    if found is None:
        import difflib  # noqa: PLC0415 - only a typo pays for it

        raise UnknownCheckError(code, tuple(difflib.get_close_matches(code.upper(), CHECKS, n=3)))
    return found
