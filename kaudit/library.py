"""kaudit from Python: the same audit as `kaudit scan`, without command line, terminal or files written."""

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.finding import Finding, Severity
from kaudit.model.result import ScanResult
from kaudit.policy.baseline import read_baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import NamedBaseline, Policy
from kaudit.results.selection import Selection, parse_codes
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.kafka.options import ClusterOptions

__all__ = ["AnyPath", "Finding", "NothingToAuditError", "ScanResult", "Severity", "UsageError", "scan"]

AnyPath = str | os.PathLike[str]
_ENGINES = ("local", "spark")


def scan(  # noqa: PLR0913 - the options of `kaudit scan`, by keyword
    paths: AnyPath | Iterable[AnyPath],
    *,
    broker_version: str = "auto",
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    producer_ids: Sequence[int] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
    log_start_offset: int | None = None,
    compacted_topics: Sequence[str] = (),
    jobs: int | None = 1,
    depth: Depth | str = Depth.CRC,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    baseline: AnyPath | None = None,
    command_config: AnyPath | None = None,
    state: AnyPath | None = None,
    digests: bool = False,
    engine: str = "local",
    spark: Any = None,  # noqa: ANN401 - a SparkSession: pyspark is an extra
) -> ScanResult:
    """Audit logs and return what was found, in the order of `kaudit scan`.

    `paths` are what `kaudit scan` takes. Times without a zone are UTC. `select` and `ignore` are codes, prefixes or names of checks,
    `compacted_topics` names or patterns; `command_config` is the property file to connect to kafka:// with. No other configuration
    is read. `state` is where what reading gives is kept between audits, for the local engine. `digests`: `result.digests`
    names the batches that were judged. `jobs` is 1 so that a library never forks unasked; None is one process per core. `engine` is local, or spark: on
    the session `spark`, one of Spark Connect too, else on the one that runs or on a new one on this machine.

    Raises:
        NothingToAuditError: no segment was found.
        UsageError: a path does not exist, or an option is wrong.

    """
    if engine not in _ENGINES:
        raise UsageError(f"engine {engine}: local or spark")
    if spark is not None and engine != "spark":
        raise UsageError('a Spark session is given: say engine="spark" too')
    if state is not None and engine != "local":
        raise UsageError("a state is for the local engine, and for kaudit scan --engine spark")
    if digests and Depth(depth) is Depth.HEADERS:
        raise UsageError("digests need CRCs that were checked: depth crc or records")
    options = ScanOptions(
        paths=[os.fspath(path) for path in _each(paths)],
        broker_version=_version(broker_version),
        topics=topics,
        partitions=partitions,
        producer_ids=producer_ids,
        since_ms=_milliseconds(since),
        until_ms=_milliseconds(until),
        now_ms=_milliseconds(now),
        log_start_offset=log_start_offset,
        compacted_topics=compacted_topics,
        jobs=jobs,
        depth=Depth(depth),
        state=None if state is None else os.fspath(state),
        digests=digests,
        cluster=ClusterOptions(None if command_config is None else os.fspath(command_config)),
    )
    selection = Selection(parse_codes(select, "select"), parse_codes(ignore, "ignore"))
    known = None if baseline is None else os.fspath(baseline)
    policy = Policy(known=None if known is None else NamedBaseline(known, read_baseline(known)))
    result = selection.of_scan(_audit(options, engine, spark))
    return policy.apply(result, Scope(selection.includes, options))


def _audit(options: ScanOptions, engine: str, spark: Any) -> ScanResult:  # noqa: ANN401 - as above
    # imported here: numpy only when there is work, pyspark only where it is asked for
    if engine == "local":
        from kaudit.engines import local  # noqa: PLC0415

        return local.scan(options, SilentProgress())
    from kaudit.spark.session import SparkOptions, session  # noqa: PLC0415

    with nullcontext(spark) if spark is not None else session(SparkOptions(), options.jobs) as started:
        from kaudit.spark import frames  # noqa: PLC0415 - after the session: it says which extra is missing

        return frames.scan(started, options)


def _each(paths: AnyPath | Iterable[AnyPath]) -> list[AnyPath]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _version(text: str) -> str:
    from kaudit.broker.releases.profile import UnknownVersionError, profile_for  # noqa: PLC0415 - as above

    if text != "auto":
        try:
            profile_for(text)
        except UnknownVersionError as error:
            raise UsageError(f"broker_version {text}: {error}") from None
    return text


def _milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return round(time.timestamp() * 1000)
