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
        head, separator, command = text.partition(COMMAND)
        lines += console.wrap(head.removesuffix("; "), indent="  ") if head else []
        # a command is never wrapped, so that it can be copied
        lines += [separator + console.paint(command, Style.COMMAND)] if separator else []
    return lines
