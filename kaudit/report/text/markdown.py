"""`--output-format markdown`: a report for merge requests and for the step summary of GitHub Actions."""

from collections.abc import Sequence

from kaudit.model.digests import Digests
from kaudit.model.finding import Finding
from kaudit.model.result import Expected, ScanResult
from kaudit.report.console import visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.coverage import coverage_line
from kaudit.report.text.finding_block import bugs_of, with_known_bugs
from kaudit.report.text.formatting import omitted_text, partition_of, plural, short_producer_of, span
from kaudit.report.text.not_checked import more_digests, named_digests
from kaudit.results.costs import with_impact
from kaudit.results.incidents import describe, distinct, fingerprints, impact_of, members
from kaudit.results.verdict import verdict_of

INCIDENTS_SHOWN = 100
_LINES_SHOWN = 20
_PARTITIONS_SHOWN = 5
_SPECIAL = "\\`*_[]#|~"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the report: verdict, a table of incidents, the baseline's state, what was not checked."""
    shown = options.for_people(result.findings)
    groups = members(shown)
    listed = groups[:INCIDENTS_SHOWN]
    left_out = result.summary.omitted + sum(map(len, groups[INCIDENTS_SHOWN:]))
    paragraphs = [
        "## kaudit",
        _verdict(result),
        _table(listed),
        f"… and {omitted_text(left_out)}." if left_out else "",
        _baseline(result),
        coverage_line(result),
        _audited(result.digests),
        _unread(result, unreadable=True),
        _unread(result, unreadable=False),
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _verdict(result: ScanResult) -> str:
    first, *others = map(prose, verdict_of(result).lines)
    return "\n".join(["- " + line for line in (f"**{first}**", *others)]) if others else f"**{first}**"


def _table(groups: Sequence[Sequence[Finding]]) -> str:
    if not groups:
        return ""
    rows = [_row(group) for group in groups]
    return "\n".join(["| | check | where | what | fingerprint |", "|---|---|---|---|---|", *rows])


def _row(group: Sequence[Finding]) -> str:
    """Return an incident's row: its most severe finding, where the others are, and what all cost."""
    finding, once = group[0], distinct(group)
    where = short_producer_of(finding)
    if finding.topic:
        where.insert(0, code(f"{partition_of(finding)}@{span(finding.offset, finding.last_offset)}"))
    if finding.file is not None:
        byte = "" if finding.position is None else f" byte {finding.position}"
        where.append(f"{code(finding.file)}{byte}")
    text = finding.message
    if len(once) > 1:
        incident = describe(group)
        text = f"{text}. {plural(len(once) - 1, 'more finding')} of one cause: {incident.title}"
        elsewhere = [
            entry
            for entry in incident.partitions
            if (entry.topic, entry.partition) != (finding.topic, finding.partition)
        ]
        where += [code(f"{entry.topic}-{entry.partition}") for entry in elsewhere[:_PARTITIONS_SHOWN]]
        if len(elsewhere) > _PARTITIONS_SHOWN:
            where.append(f"{len(elsewhere) - _PARTITIONS_SHOWN:,} more partitions")
    names = dict.fromkeys(f"{member.code} {member.name}" for member in once)
    cells = [
        finding.severity.value,
        "<br>".join(names),
        "<br>".join(where),
        prose(with_known_bugs(with_impact(text, impact_of(group)), bugs_of(group))),
        "<br>".join(f"`{fingerprint}`" for fingerprint in fingerprints(group)),
    ]
    return f"| {' | '.join(cells)} |"


def _baseline(result: ScanResult) -> str:
    compared = result.baseline
    if compared is None:
        return ""
    parts = [f"Baseline {code(compared.file)}: {plural(compared.known, 'known finding')}"]
    if compared.out_of_scope:
        parts.append(f"{len(compared.out_of_scope)} not seen because out of scope")
    lines = [f"{', '.join(parts)}."]
    for title, entries in (("Stale, no longer found", compared.stale), ("Expired", compared.expired)):
        if entries:
            lines += ["", f"{title}:", "", *_entries(entries)]
    return "\n".join(lines)


def _entries(entries: Sequence[Expected]) -> list[str]:
    lines = [f"- `{visible(entry.fingerprint)}` {prose(entry.summary)}" for entry in entries[:_LINES_SHOWN]]
    return [*lines, *_rest(len(entries))]


def _audited(digests: Digests | None) -> str:
    if digests is None or not digests.partitions:
        return ""
    lines = [f"- {code(digest)}: {prose(what)}" for what, digest in named_digests(digests.partitions, _LINES_SHOWN)]
    return "\n".join(
        [
            f"Audited ({digests.algorithm}):",
            "",
            *lines,
            *(f"- … and {more}" for more in more_digests(digests, _LINES_SHOWN)),
        ]
    )


def _unread(result: ScanResult, *, unreadable: bool) -> str:
    items = [item for item in result.not_audited if item.unreadable is unreadable]
    if not items:
        return ""
    lines = [f"- {code(item.path)}: {prose(item.reason)}" for item in items[:_LINES_SHOWN]]
    title = "Could not be read:" if unreadable else "Not checked:"
    return "\n".join([title, "", *lines, *_rest(len(items))])


def _rest(number: int) -> list[str]:
    return [f"- … and {number - _LINES_SHOWN:,} more"] if number > _LINES_SHOWN else []


def code(text: str) -> str:
    """Return `text` as a code span that also holds in a table: nothing in it is Markdown, HTML, or a mention."""
    text = visible(text).replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """Return `text` as plain Markdown text: no markup, HTML or mention in it survives."""
    return "".join(_ENTITIES.get(char, f"\\{char}" if char in _SPECIAL else char) for char in visible(text))
