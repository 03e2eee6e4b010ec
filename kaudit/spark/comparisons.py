"""`diff`, `dedup` and the ledger as rows of DataFrames, by the local engine in one task."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, record_ledger
from kaudit.engines.repeated_records import RepeatRequest, repeated_records
from kaudit.engines.replicas import diff, name_replicas
from kaudit.errors import UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.model.result import ScanResult
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.report.machine.tables import comparison_rows, matched_range_rows, record_range_rows
from kaudit.report.render_options import Row
from kaudit.report.text.duplicates import duplicate_rows
from kaudit.scanning.options import IsolationLevel
from kaudit.spark.composition import incomplete, require_complete
from kaudit.spark.options import ReadOptions, absolute


def _diff(options: ReadOptions) -> Iterator[Row]:
    replicas = name_replicas(options.paths, dict(map(_named, options.compared.get("names", ()))))
    result = diff(options.scan_options(jobs=1), replicas, SilentProgress())
    _require(options, result.scan)
    yield from comparison_rows(result)


def _dedup(options: ReadOptions) -> Iterator[Row]:
    request = RepeatRequest(options.compared.get("identity"), _reader(options))
    with repeated_records(options.scan_options(jobs=1), SilentProgress(), request) as listing:
        _require(options, listing.scan)
        yield from duplicate_rows(listing, read_committed=_is_committed(options))
        if listing.failed and not options.allow_incomplete:
            raise incomplete(listing.failed)


def _ledger(options: ReadOptions) -> Iterator[Row]:
    asked = options.scan_options(jobs=1)
    with record_ledger(asked, sides_of(options), ledger_request(options), SilentProgress()) as result:
        _require(options, result.scan)
        yield from ledger_rows(result)


COMPARISONS: Mapping[str, Callable[[ReadOptions], Iterator[Row]]] = {
    "diff": _diff,
    "dedup": _dedup,
    "ledger": _ledger,
}
"""What yields the rows of each table."""


def ledger_rows(result: LedgerResult) -> Iterator[Row]:
    """Yield the ranges that differ, then those that both sides have."""
    return chain(record_range_rows(result), matched_range_rows(result))


def sides_of(options: ReadOptions) -> tuple[Replica, Replica]:
    """Return source and target. Raises UsageError where they are not two."""
    if len(options.paths) != 1 or "target" not in options.compared:
        raise UsageError("a ledger compares two inputs: the path of the source, and the option target")
    return Replica("source", options.paths[0]), Replica("target", options.compared["target"])


def ledger_request(options: ReadOptions) -> LedgerRequest:
    """Return how records are compared."""
    own = {
        name: options.compared[name]
        for name in ("maps", "target_command_config", "target_remote")
        if name in options.compared
    }
    return LedgerRequest(
        _reader(options), given="identity" in options.compared, read_committed=_is_committed(options), **own
    )


def _named(text: str) -> tuple[str, str]:
    """Return the path of a replica, and its name."""
    name, equals, path = text.partition("=")
    if not (name and equals):
        raise UsageError(f"option names {text}: NAME=PATH is wanted")
    return absolute([path])[0], name


def _require(options: ReadOptions, result: ScanResult) -> None:
    if not options.allow_incomplete:
        require_complete(result)


def _reader(options: ReadOptions) -> IdentityReader:
    identity = options.compared.get("identity")
    return IdentityReader() if identity is None else IdentityReader(parse_identity(identity))


def _is_committed(options: ReadOptions) -> bool:
    return options.compared.get("isolation_level") == IsolationLevel.READ_COMMITTED.value
