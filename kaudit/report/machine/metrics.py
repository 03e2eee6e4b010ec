"""A watch in Prometheus' text format, version 0.0.4: for a port that is scraped, or a textfile of the node exporter."""

from collections.abc import Iterable, Iterator, Mapping

from kaudit import __version__
from kaudit.checks.registry import CHECKS
from kaudit.model.watch_status import WatchedPartition, WatchStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[Mapping[str, object], float]


def render_metrics(status: WatchStatus) -> str:
    """Return all metrics. Every check has its counters from the start, so that the first finding is an increase."""
    partitions = status.partitions
    since = [entry.open_since for entry in partitions if entry.open_since is not None]
    oldest = max(status.clock_ms - min(since), 0) / 1000 if since else 0
    producers = sum(entry.producers for entry in partitions)
    metrics: list[tuple[str, str, str, float | Iterable[_Sample]]] = [
        ("build_info", "gauge", "Which kaudit watches.", [({"version": __version__}, 1)]),
        ("start_time_seconds", "gauge", "When this watch began.", status.started_ms / 1000),
        (
            "last_round_timestamp_seconds",
            "gauge",
            "When the logs were last read; it stops if the watch hangs.",
            status.now_ms / 1000,
        ),
        ("round_duration_seconds", "gauge", "Duration of the last round.", status.round_seconds),
        ("findings_total", "counter", "Findings reported.", _by_check(status.reported)),
        ("findings", "gauge", "Findings in the logs now, including those that wait.", _by_check(status.present)),
        ("findings_waiting", "gauge", "Findings that later batches may still withdraw.", status.waiting),
        ("read_bytes_total", "counter", "Bytes of logs read.", status.read_bytes),
        (
            "repeated_readings_total",
            "counter",
            "Partitions read again from their beginning: compacted, truncated or recreated.",
            status.repeated_readings,
        ),
        ("unreadable_files", "gauge", "Files that could not be read.", status.unreadable),
        ("partitions", "gauge", "Partition replicas watched.", len(partitions)),
        ("producers", "gauge", "Producer ids in the logs, counted in each partition.", producers),
        ("oldest_open_transaction_seconds", "gauge", "Age of the oldest open transaction, 0 without one.", oldest),
        (
            "open_transactions",
            "gauge",
            "Transactions without an end marker.",
            _by_replica(partitions, "open_transactions"),
        ),
        (
            "last_stable_offset_lag",
            "gauge",
            "Offsets that read_committed consumers do not get because a transaction is open.",
            _by_replica(partitions, "last_stable_offset_lag"),
        ),
        ("log_end_offset", "gauge", "Offset after the last batch read.", _by_replica(partitions, "log_end_offset")),
    ]
    return "".join(
        line
        for name, kind, text, samples in metrics
        for line in _metric(
            f"kaudit_{name}", kind, text, [({}, samples)] if isinstance(samples, int | float) else samples
        )
    )


def _by_replica(partitions: Iterable[WatchedPartition], field: str) -> Iterator[_Sample]:
    for entry in partitions:
        labels = {"topic": entry.topic, "partition": entry.partition, "replica": entry.replica}
        yield labels, getattr(entry, field) or 0


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
