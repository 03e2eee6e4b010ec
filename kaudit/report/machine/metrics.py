"""A watch in Prometheus' text format, version 0.0.4: for a port that is scraped, or a textfile of the node exporter."""

from collections.abc import Iterable, Iterator, Mapping

from kaudit import __version__
from kaudit.checks.registry import CHECKS
from kaudit.model.watch_status import WatchStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[Mapping[str, object], float]


def render_metrics(status: WatchStatus) -> str:
    """Return all metrics. Every check has its counters from the start, so that the first finding is an increase."""
    return "".join(_lines(status))


def _lines(status: WatchStatus) -> Iterator[str]:
    yield from _metric("kaudit_build_info", "gauge", "Which kaudit watches.", [({"version": __version__}, 1)])
    yield from _metric("kaudit_start_time_seconds", "gauge", "When this watch began.", [({}, status.started_ms / 1000)])
    yield from _metric(
        "kaudit_last_round_timestamp_seconds",
        "gauge",
        "When the logs were last looked at: a watch that stands still shows here.",
        [({}, status.now_ms / 1000)],
    )
    yield from _metric(
        "kaudit_round_duration_seconds", "gauge", "How long the last look took.", [({}, status.round_seconds)]
    )
    yield from _metric("kaudit_findings_total", "counter", "Findings reported.", _by_check(status.reported))
    yield from _metric(
        "kaudit_findings", "gauge", "Findings in the logs now, those that wait included.", _by_check(status.present)
    )
    yield from _metric(
        "kaudit_findings_waiting",
        "gauge",
        "Findings that what comes next may still withdraw.",
        [({}, status.waiting)],
    )
    yield from _metric("kaudit_read_bytes_total", "counter", "Bytes of logs read.", [({}, status.read_bytes)])
    yield from _metric(
        "kaudit_repeated_readings_total",
        "counter",
        "Partitions read again from their beginning: compacted, truncated, made anew.",
        [({}, status.repeated_readings)],
    )
    yield from _metric("kaudit_unreadable_files", "gauge", "Files that could not be read.", [({}, status.unreadable)])
    partitions = status.partitions
    yield from _metric("kaudit_partitions", "gauge", "Partition replicas watched.", [({}, len(partitions))])
    yield from _metric(
        "kaudit_producers",
        "gauge",
        "Producer ids in the logs, counted in each partition.",
        [({}, sum(entry.producers for entry in partitions))],
    )
    since = [entry.open_since for entry in partitions if entry.open_since is not None]
    oldest = max(status.clock_ms - min(since), 0) / 1000 if since else 0
    yield from _metric(
        "kaudit_oldest_open_transaction_seconds",
        "gauge",
        "Age of the oldest open transaction, 0 without one.",
        [({}, oldest)],
    )
    for name, text, field in (
        ("kaudit_open_transactions", "Transactions without an end marker.", "open_transactions"),
        (
            "kaudit_last_stable_offset_lag",
            "Offsets that read_committed consumers do not get because a transaction is open.",
            "last_stable_offset_lag",
        ),
        ("kaudit_log_end_offset", "Offset after the last batch read.", "log_end_offset"),
    ):
        samples = [
            ({"topic": entry.topic, "partition": entry.partition, "replica": entry.replica}, getattr(entry, field) or 0)
            for entry in partitions
        ]
        yield from _metric(name, "gauge", text, samples)


def _by_check(counts: Mapping[tuple[str, str], int]) -> Iterator[_Sample]:
    all_checks = {(check.code, check.severity.value): 0 for check in CHECKS.values()}
    for (code, severity), number in sorted({**all_checks, **counts}.items()):
        yield {"code": code, "name": CHECKS[code].name if code in CHECKS else code, "severity": severity}, number


def _metric(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        shown = ",".join(f'{label}="{_escaped(str(content))}"' for label, content in labels.items())
        yield f"{name}{{{shown}}} {value:.15g}\n" if shown else f"{name} {value:.17g}\n"


def _escaped(text: str) -> str:
    """Escape a label's value; bytes of a file name that are not UTF-8 are spelled out."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
