"""How producer ids spread, as bars for people."""

from collections.abc import Mapping, Sequence

from kaudit.report.console import Console, Style
from kaudit.report.text.formatting import duration, plural
from kaudit.report.text.producer_formatting import timestamp_text

_INDENT = "  "
_GAP = "  "
_DEFAULT_WIDTH = 80
_LONGEST_BAR = 50
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_Bucket = Mapping[str, int | None]


def histogram_lines(histograms: Mapping[str, object], console: Console) -> list[str]:
    """Return a block of bars for each histogram of a producer listing's summary that has more than one bucket."""
    lines: list[str] = []
    for name, title, label in (
        ("first_seen", "first seen (UTC)", _step),
        ("batches", "batches per id", _counts),
        ("epochs", "epochs per id", _counts),
        ("lifetime_ms", "active for", _times),
        ("idle_ms", "idle for", _times),
    ):
        buckets = histograms.get(name)
        if isinstance(buckets, Sequence) and len(buckets) > 1:
            lines += _bars(title, [(label(bucket), bucket["ids"]) for bucket in buckets], console)
    return lines


def _bars(title: str, rows: Sequence[tuple[str, int]], console: Console) -> list[str]:
    left = max(len(label) for label, _ in rows)
    right = max(len(f"{ids:,}") for _, ids in rows)
    length = min((console.width or _DEFAULT_WIDTH) - left - right - 2 * len(_INDENT + _GAP), _LONGEST_BAR)
    most = max(ids for _, ids in rows)
    lines = [f"{_INDENT}{title}"]
    for label, ids in rows:
        bar = _bar(ids, most, max(length, 1), console)
        lines.append(
            f"{_INDENT * 2}{label:>{left}}{_GAP}{ids:>{right},}{_GAP}{console.paint(bar, Style.COMMAND)}".rstrip()
        )
    return lines


def _bar(ids: int, most: int, length: int, console: Console) -> str:
    """Return a bar that is never empty for what is not nothing."""
    eighths = -(-ids * length * 8 // most)
    if not console.draws:
        return "#" * -(-eighths // 8)
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).strip()


def _step(bucket: _Bucket) -> str:
    start = bucket["start_timestamp"]
    return timestamp_text(start) if start is not None else "-"


def _counts(bucket: _Bucket) -> str:
    first, last = bucket["from"], bucket["to"]
    if last is None:
        return f"{first:,} and more"
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _times(bucket: _Bucket) -> str:
    """Return `under 1 min`, `1 min to 1 h`, `7 days and more`."""
    first, last = bucket["from"] or 0, bucket["to"]
    if last is None:
        return f"{_time(first)} and more"
    return f"{_time(first)} to {_time(last + 1)}" if first else f"under {_time(last + 1)}"


def _time(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    for unit, length in (("day", 86_400), ("h", 3600), ("min", 60)):
        if seconds and seconds % length == 0:
            number = seconds // length
            return plural(number, unit) if unit == "day" else f"{number} {unit}"
    return duration(seconds).replace(".0", "")
