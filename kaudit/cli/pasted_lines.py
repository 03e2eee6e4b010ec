"""Explains pasted lines for `kaudit explain`: what audits events is imported only then."""

from typing import TYPE_CHECKING

from kaudit.explanations.lines import LONGEST as LONGEST  # noqa: PLC0414 - how much of standard input is read
from kaudit.explanations.lines import read_pasted
from kaudit.report.console import Console
from kaudit.report.text.pasted_lines import pasted_document, pasted_page

if TYPE_CHECKING:  # few lines are redacted
    from kaudit.results.redaction import Redactor


def explained_lines(data: bytes, console: Console | None, names: "Redactor | None") -> str | None:
    """Return what lines of logs mean, as JSON without a console; None if no line is a known message and none names an error.

    `names` redacts what they name.
    """
    pasted = read_pasted(data)
    if names is not None:
        pasted = names.learned(pasted)
    if not pasted.events and not pasted.errors:
        return None
    return pasted_document(pasted) if console is None else pasted_page(pasted, console)
