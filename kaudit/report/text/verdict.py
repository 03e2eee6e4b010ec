"""The verdict as reports for people begin with it."""

from kaudit.model.result import ScanResult
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import SEVERITY_STYLE
from kaudit.results.verdict import COMMAND, verdict_of


def verdict_section(result: ScanResult, console: Console) -> list[str]:
    """Return the lines of the verdict, the first in the colour of the worst finding."""
    verdict = verdict_of(result)
    style = Style.GOOD if verdict.severity is None else SEVERITY_STYLE[verdict.severity]
    first, *others = map(visible, verdict.lines)
    lines = [console.paint(line, style) for line in console.wrap(first, indent="  ")]
    for text in others:
        # a command is never wrapped, so that it can be copied
        command = text.removeprefix(COMMAND) if text.startswith(COMMAND) else None
        lines += (
            console.wrap(text, indent="  ") if command is None else [COMMAND + console.paint(command, Style.COMMAND)]
        )
    return lines
