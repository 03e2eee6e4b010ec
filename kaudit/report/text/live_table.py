"""The table a watch redraws on a terminal: findings, open transactions, and reading progress."""

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kaudit.checks.registry import CHECKS
from kaudit.model.severity import Severity
from kaudit.model.watch_status import ReportedAt, WatchedPartition, WatchStatus
from kaudit.report.console import visible
from kaudit.report.text.formatting import clock_time, duration, partition_of, plural
from kaudit.results.scope import size

_STYLE = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_SEVERITIES = tuple(severity.value for severity in sorted(Severity, reverse=True))
_CHECKS = 8
_PARTITIONS = 5
_NEWEST = 8
_LONGEST_NAME = 30
"""Columns of a partition's name beside a finding."""


def live_table(status: WatchStatus) -> Group:
    """Return the screen: about 30 lines, however many findings there are, cut to the terminal's width."""
    parts: list[Table | Text] = [_head(status), _by_severity(status)]
    if any(status.reported.values()) or any(status.present.values()):
        parts.append(_by_check(status))
    if any(entry.open_transactions for entry in status.partitions):
        parts.append(_open_transactions(status))
    if status.newest:
        parts.append(_newest(status.newest))
    return Group(*parts)


def _head(status: WatchStatus) -> Text:
    running = duration((status.now_ms - status.started_ms) / 1000)
    producers = sum(entry.producers for entry in status.partitions)
    facts = [
        plural(len(status.partitions), "partition"),
        plural(producers, "producer"),
        f"{size(status.read_bytes)} read",
        f"{size(round(status.read_per_second))}/s",
        f"running {running}",
    ]
    if status.unreadable:
        facts.append(plural(status.unreadable, "unreadable file"))
    inputs = ", ".join(map(visible, status.inputs))
    return Text.assemble(("kaudit watch ", "bold"), inputs, "\n", ", ".join(facts))


def _by_severity(status: WatchStatus) -> Text:
    parts: list[str | tuple[str, str]] = []
    for severity in _SEVERITIES:
        number = sum(count for (_, own), count in status.reported.items() if own == severity)
        text = plural(number, severity)
        parts += [(text, _STYLE[severity] if number else "dim"), "  "]
    waiting = f"{plural(status.waiting, 'finding')} waiting" if status.waiting else "none waiting"
    return Text.assemble("Reported: ", *parts, (waiting, "dim"), overflow="fold")


def _grid(title: str, *columns: tuple[str, str], fills: bool = False) -> Table:
    """Return an empty table; with `fills` its last column takes the rest of the line, and longer text is cut."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        expand=fills,
    )
    for number, (name, justify) in enumerate(columns):
        last = fills and number == len(columns) - 1
        table.add_column(
            name,
            justify="right" if justify == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if last else None,
            header_style="dim",
        )
    return table


def _by_check(status: WatchStatus) -> Table:
    table = _grid("\nBy check", ("Code", ""), ("Check", ""), ("Reported", "right"), ("In the logs now", "right"))
    codes = {code for (code, _), number in (*status.reported.items(), *status.present.items()) if number}

    def rank(code: str) -> tuple[int, str]:
        found = (severity for own, severity in (*status.reported, *status.present) if own == code)
        return min(_SEVERITIES.index(severity) for severity in found), code

    ordered = sorted(codes, key=rank)
    for code in ordered[:_CHECKS]:
        style = _STYLE[_SEVERITIES[rank(code)[0]]]
        numbers = (
            sum(n for (own, _), n in counts.items() if own == code) for counts in (status.reported, status.present)
        )
        name = CHECKS[code].name if code in CHECKS else ""
        table.add_row(Text(code, style), Text(name), *(Text(f"{number:,}") for number in numbers))
    if len(ordered) > _CHECKS:
        table.add_row("", Text(f"and {plural(len(ordered) - _CHECKS, 'more check')}", "dim"), "", "")
    return table


def _open_transactions(status: WatchStatus) -> Table:
    held = [entry for entry in status.partitions if entry.open_transactions]
    held.sort(key=lambda entry: (-entry.last_stable_offset_lag, entry.topic, entry.partition))
    transactions = sum(entry.open_transactions for entry in held)
    title = f"\n{plural(transactions, 'open transaction')} in {plural(len(held), 'partition')}"
    table = _grid(
        title,
        ("Partition", ""),
        ("Open", "right"),
        ("Oldest", "right"),
        ("Last stable offset", "right"),
        ("Lag", "right"),
    )
    for entry in held[:_PARTITIONS]:
        table.add_row(*_transaction_row(entry, status.clock_ms))
    if len(held) > _PARTITIONS:
        table.add_row(Text(f"and {len(held) - _PARTITIONS:,} more", "dim"), "", "", "", "")
    return table


def _transaction_row(entry: WatchedPartition, clock_ms: int) -> list[Text]:
    oldest = "-" if entry.open_since is None else duration(max(clock_ms - entry.open_since, 0) / 1000)
    stable = "-" if entry.last_stable_offset is None else f"{entry.last_stable_offset:,}"
    return [
        Text(visible(f"{entry.topic}-{entry.partition}")),
        Text(f"{entry.open_transactions:,}"),
        Text(oldest),
        Text(stable),
        Text(f"{entry.last_stable_offset_lag:,}"),
    ]


def _newest(reported: Sequence[ReportedAt]) -> Table:
    table = _grid("\nNewest findings", ("Time", ""), ("Code", ""), ("Partition", ""), ("Finding", ""), fills=True)
    for entry in reported[-_NEWEST:][::-1]:
        finding = entry.finding
        name = Text(partition_of(finding) or "-")
        name.truncate(_LONGEST_NAME, overflow="ellipsis")
        table.add_row(
            Text(clock_time(entry.at_ms)),
            Text(finding.code, _STYLE[finding.severity.value]),
            name,
            Text(f"{finding.name}: {visible(finding.message)}"),
        )
    return table
