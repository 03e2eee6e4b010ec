"""kaudit from Python: the same audit as `kaudit scan`, without command line, terminal or files written."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.finding import Finding, Severity
from kaudit.model.result import ScanResult
from kaudit.policy.baseline import read_baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import NamedBaseline, Policy
from kaudit.results.selection import Selection, parse_codes
from kaudit.scanning.options import Depth, ScanOptions, scan_options_of
from kaudit.spark import require_pyspark

__all__ = ["AnyPath", "Finding", "NothingToAuditError", "ScanResult", "Severity", "UsageError", "scan"]

AnyPath = str | os.PathLike[str]
_ENGINES = ("local", "spark")
_NOT_OF_THE_AUDIT = ("select", "ignore", "baseline", "engine", "spark")
"""Parameters of `scan` that are not options of the audit itself. The others set the fields of ScanOptions with their names."""


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

    The keywords are the options of `kaudit scan`, and mean the same. Times without a zone are UTC. `select` and `ignore` are codes,
    prefixes or names of checks, `compacted_topics` names or patterns. No configuration is read besides `command_config`.
    `state` is for the local engine. `digests`: `result.digests` identifies the audited batches. `jobs` is 1 so that a library
    never forks unasked; None is one process per core. `engine` is local or spark. Spark runs on the session `spark`, which may
    be one of Spark Connect; without it on the active session, or on a new one on this machine.

    Raises:
        NothingToAuditError: no segment was found.
        UsageError: a path does not exist, or an option is wrong.

    """
    given = locals()
    if engine not in _ENGINES:
        raise UsageError(f"engine {engine}: local or spark")
    if spark is not None and engine != "spark":
        raise UsageError('a Spark session is given: say engine="spark" too')
    if state is not None and engine != "local":
        raise UsageError("a state is for the local engine, and for kaudit scan --engine spark")
    if digests and Depth(depth) is Depth.HEADERS:
        raise UsageError("digests need CRCs that were checked: depth crc or records")
    audit = {name: value for name, value in given.items() if name not in _NOT_OF_THE_AUDIT}
    options = scan_options_of({**audit, "paths": [os.fspath(path) for path in _each(paths)]})
    selection = Selection(parse_codes(select, "select"), parse_codes(ignore, "ignore"))
    known = None if baseline is None else os.fspath(baseline)
    policy = Policy(known=None if known is None else NamedBaseline(known, read_baseline(known)))
    result = selection.of_scan(_audit(options, engine, spark))
    return policy.apply(result, Scope(selection.includes, options))


def _audit(options: ScanOptions, engine: str, spark: Any) -> ScanResult:  # noqa: ANN401 - as above
    if engine == "local":
        return local.scan(options, SilentProgress())
    require_pyspark('engine="spark"')
    from kaudit.spark.frames import audit  # noqa: PLC0415 - an extra

    return audit(spark, options)


def _each(paths: AnyPath | Iterable[AnyPath]) -> list[AnyPath]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)
