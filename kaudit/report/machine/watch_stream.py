"""Findings one after the other as a watch reports them, in each format it writes."""

from collections.abc import Callable, Mapping, Sequence

from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.report.json_documents import header, line
from kaudit.report.machine.jsonl import finding_records, summary_record
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.concise import finding_line
from kaudit.report.text.finding_block import finding_lines

SCHEMA = "kaudit.watch/1"


def _blocks(findings: Sequence[Finding], options: RenderOptions) -> str:
    blocks = [finding_lines(finding, options.console, many_inputs=False) for finding in options.for_people(findings)]
    return "".join("\n".join([*block, "", ""]) for block in blocks)


def _lines(findings: Sequence[Finding], options: RenderOptions) -> str:
    return "".join(f"{finding_line(finding, options)}\n" for finding in options.for_people(findings))


def _records(findings: Sequence[Finding], options: RenderOptions) -> str:  # noqa: ARG001 - machines get all
    return "".join(finding_records(findings))


STREAMS: Mapping[str, Callable[[Sequence[Finding], RenderOptions], str]] = {
    "table": _blocks,
    "concise": _lines,
    "jsonl": _records,
}
"""What turns findings into text as they come, by the name of the format."""


def summary_text(result: ScanResult, reported: Mapping[str, int], waiting: int, options: RenderOptions) -> str:
    """Return the last line of jsonl: the partitions watched, their logs at the end, and the numbers of findings reported and waiting."""
    document = header(result, SCHEMA, options)
    return line(summary_record({**document, "reported": dict(reported), "waiting": waiting}))
