"""kaudit from Python: the same audit as `kaudit scan`, without command line, terminal or files written."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from msgspec.structs import asdict

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import MissingExtraError, NothingToAuditError, UsageError
from kaudit.installation import install_command
from kaudit.model import result as model
from kaudit.model.finding import Finding
from kaudit.model.severity import Severity
from kaudit.policy.baseline import read_baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import NamedBaseline, Policy
from kaudit.report.console import visible
from kaudit.report.html.report_page import render_scan
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import plural
from kaudit.results.incidents import Incident, incidents_of
from kaudit.results.selection import Selection, parse_codes
from kaudit.scanning.options import Depth, ScanOptions, scan_options_of
from kaudit.source.kafka.options import DEFAULT_BYTES_PER_SECOND
from kaudit.spark import require_pyspark

__all__ = ["AnyPath", "Finding", "NothingToAuditError", "ScanResult", "Severity", "UsageError", "scan"]

_SEVERAL = frozenset(
    (
        "topics",
        "partitions",
        "producer_ids",
        "compacted_topics",
        "server_logs",
        "client_logs",
        "remote_keys",
        "select",
        "ignore",
    )
)
AnyPath = str | os.PathLike[str]
_ENGINES = ("local", "spark")
_FRAME = "width: 100%; height: 40em; border: 1px solid #ccc"
_NOT_OF_THE_AUDIT = ("select", "ignore", "baseline", "engine", "spark")
"""Parameters of `scan` that are not options of the audit itself. The others set the fields of ScanOptions with their names."""


class ScanResult(model.ScanResult, frozen=True):
    """What `scan` found, as people look at it: one line at a prompt, a page in a notebook, tables."""

    def __repr__(self) -> str:
        """Return one line: findings by severity, what was read, and the first line of the verdict."""
        counts = [plural(number, name) for name, number in self.summary.findings.items() if number]
        read = f"{plural(self.summary.partitions, 'partition')}, {plural(self.summary.batches, 'batch', 'batches')}"
        first = "" if self.verdict is None else f": {visible(self.verdict.lines[0])}"
        return f"<ScanResult {', '.join(counts) or 'no findings'}; {read}{first}>"

    def _repr_html_(self) -> str:
        """Return the verdict as text, and the page of `--output-format html` in a frame of its own."""
        lines = () if self.verdict is None else self.verdict.lines
        page = escape(render_scan(self, RenderOptions()))
        frame = f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="{_FRAME}"></iframe>'
        return "".join(f"<div>{escape(visible(line))}</div>" for line in lines) + frame

    @property
    def incidents(self) -> Sequence[Incident]:
        """Findings with one cause, summed up, the costliest first."""
        return incidents_of(self.findings)

    def to_arrow(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return the findings as a `pyarrow.Table` (docs/tables.md), the numbers of `impact` in columns of their own.

        Raises:
            MissingExtraError: pyarrow is not installed.

        """
        if find_spec("pyarrow") is None:
            raise MissingExtraError(f"to_arrow() needs an extra: {install_command('parquet')}")
        return import_module("kaudit.report.machine.tables").findings_table(self.findings)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is an extra
        """Return `to_arrow()` as a `pandas.DataFrame` of Arrow's types. Raises MissingExtraError without pandas and pyarrow."""
        pandas = _package("pandas", "to_pandas()")
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def to_polars(self) -> Any:  # noqa: ANN401 - not one of our packages
        """Return `to_arrow()` as a `polars.DataFrame`. Raises MissingExtraError without polars and pyarrow."""
        return _package("polars", "to_polars()").from_arrow(self.to_arrow())


def scan(  # noqa: PLR0913 - the options of `kaudit scan`, by keyword
    paths: AnyPath | Iterable[AnyPath],
    *,
    broker_version: str = "auto",
    topics: Iterable[str] = (),
    partitions: Iterable[int] = (),
    producer_ids: Iterable[int] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    now: datetime | str | None = None,
    log_start_offset: int | None = None,
    compacted: bool = False,
    compacted_topics: Iterable[str] = (),
    zookeeper: AnyPath | None = None,
    blocks: AnyPath | None = None,
    metadata: AnyPath | None = None,
    layout: str | None = None,
    server_logs: Iterable[AnyPath] = (),
    client_logs: Iterable[AnyPath] = (),
    jobs: int | None = 1,
    depth: Depth | str = Depth.CRC,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    baseline: AnyPath | None = None,
    command_config: AnyPath | None = None,
    remote: AnyPath | None = None,
    remote_keys: Iterable[AnyPath] = (),
    require_all: bool = False,
    from_offset: int | None = None,
    to_offset: int | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    max_bytes_per_second: int = DEFAULT_BYTES_PER_SECOND,
    state: AnyPath | None = None,
    digests: bool = False,
    engine: str = "local",
    spark: Any = None,  # noqa: ANN401 - a SparkSession: pyspark is an extra
) -> ScanResult:
    """Audit logs and return what was found, in the order of `kaudit scan`.

    The keywords are the options of `kaudit scan`, and mean the same. A time is a `datetime`, or text as the option takes it; without
    a zone it is UTC. One text is no list: `topics="orders"` is refused. `select` and `ignore` are codes,
    prefixes or names of checks, `compacted_topics` names or patterns. No configuration is read besides `command_config`.
    `digests`: `result.digests` identifies the audited batches. `jobs` is 1 so that a library
    never forks unasked; None is one process per core. `engine` is local or spark. Spark runs on the session `spark`, which may
    be one of Spark Connect; without it on the active session, or on a new one on this machine.

    Raises:
        NothingToAuditError: no segment was found.
        UsageError: a path does not exist, or an option is wrong: its value, or its type.

    """
    given = {name: _listed(value, name) for name, value in locals().items()}
    if engine not in _ENGINES:
        raise UsageError(f"engine {engine}: local or spark")
    if spark is not None and engine != "spark":
        raise UsageError('a Spark session is given: say engine="spark" too')
    audit = {name: value for name, value in given.items() if name not in _NOT_OF_THE_AUDIT}
    options = scan_options_of({**audit, "paths": [os.fspath(path) for path in _each(paths)]})
    if options.digests and options.depth is Depth.HEADERS:
        raise UsageError("digests need CRCs that were checked: depth crc or records")
    selection = Selection(parse_codes(given["select"], "select"), parse_codes(given["ignore"], "ignore"))
    known = None if baseline is None else os.fspath(baseline)
    policy = Policy(known=None if known is None else NamedBaseline(known, read_baseline(known)))
    result = selection.of_scan(_audit(options, engine, spark))
    return ScanResult(**asdict(policy.apply(result, Scope(selection.includes, options))))


def _audit(options: ScanOptions, engine: str, spark: Any) -> model.ScanResult:  # noqa: ANN401 - as above
    if engine == "local":
        return local.scan(options, SilentProgress())
    require_pyspark('engine="spark"')
    from kaudit.spark.frames import audit  # noqa: PLC0415 - an extra

    return audit(spark, options)


def _package(name: str, what: str) -> Any:  # noqa: ANN401 - a module
    """Import a package that `what` needs and kaudit does not."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"{what} needs {name}: {error}") from error


def _listed(value: Any, name: str) -> Any:  # noqa: ANN401 - a keyword of any type
    """Return the value of a keyword that takes several as a list, any other as it is."""
    if name not in _SEVERAL:
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise UsageError(f"{name}: {value!r} is one value; give a list: {name}=[{value!r}]")
    return [os.fspath(one) if isinstance(one, os.PathLike) else one for one in value] or ()


def _each(paths: AnyPath | Iterable[AnyPath]) -> list[AnyPath]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)
