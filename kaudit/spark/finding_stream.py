"""Findings as a stream: whenever the input has changed it is audited, and what is new, changed or withdrawn are the rows.

An offset names what the input looked like. Beside the state of the audit, `reported/OFFSET.arrow` has the findings up to that offset, from
which those of the next differ. It is replaced as a whole, and removed when Spark will not ask for the offset again: a batch that is
read again after a failure, on whatever executor, has the same rows, and those of what was written to the log in between.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from io import BytesIO
from typing import Any

import pyarrow as pa
from msgspec import Struct

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.report.machine.parquet import table_to_ipc
from kaudit.scanning.plan import find_input
from kaudit.source.bytes import read_bytes
from kaudit.source.filesystem import WritableFileSystem
from kaudit.source.layout import Layout
from kaudit.source.schemes import writable_filesystem
from kaudit.source.uri import Uri
from kaudit.spark.composition import require_complete
from kaudit.spark.finding_rows import CHANGED, FINDINGS_AT_ONCE, Stamp
from kaudit.spark.options import ReadOptions
from kaudit.spark.schemas import arrow_schema
from kaudit.spark.tasks import prepare_worker

BEGINNING = ""
"""The offset at which nothing has been audited."""
_STAMPED = frozenset(("change", "found_at", "audited_at", "run_id", "kaudit_version"))
_SUFFIX = ".arrow"
_Row = dict[str, Any]
"""A row of `findings`."""


class FindingStream(Struct, frozen=True):
    """Lists, audits and compares; the option `state` says where everything lies that one batch needs of those before."""

    options: ReadOptions

    def __post_init__(self) -> None:
        """Raise UsageError without a state."""
        if "state" not in self.options.audit:
            raise UsageError("option state: a stream needs one, a directory or URL for what it has read and reported")

    def latest(self, before: str) -> str:
        """Return what the input looks like now; `before` as long as there is nothing to audit.

        Raises:
            UsageError: a path does not exist.
            UnreadableInputError: nothing can be listed, and the options do not allow that.

        """
        try:
            return _looks(find_input(self.options.scan_options()))
        except NothingToAuditError as error:
            if isinstance(error, UnreadableInputError) and not self.options.allow_incomplete:
                raise
            return before

    def read(self, start: str, end: str) -> Iterator[pa.RecordBatch]:
        """Audit the input, and yield how its findings differ from those up to `start`.

        Raises:
            UsageError: the state knows nothing of `start`.
            UnreadableInputError: something cannot be read, and the options do not allow that.

        """
        prepare_worker()
        known, stamp = self._reported(start), Stamp()
        asked = self.options.scan_options(since=self.options.since, until=self.options.until, jobs=1)
        layout = find_input(asked)
        result = local.scan(asked, SilentProgress())
        if not self.options.allow_incomplete:
            require_complete(result)
        found = (row for batch in stamp.rows(result.findings) for row in batch.to_pylist())
        now = {row["merge_key"]: _since(known.get(row["merge_key"]), row) for row in found}
        missing = {key: row for key, row in known.items() if key not in now and _is_there(row, layout)}
        changed = [row for key, row in now.items() if row is not known.get(key)]
        if any(each.unreadable for each in result.not_audited):  # what was not read has not lost its findings
            now |= missing
        else:
            changed += map(stamp.withdraw, missing.values())
        self._report(end, _table(now.values()))
        yield from _table(changed).to_batches(FINDINGS_AT_ONCE)

    def commit(self, end: str) -> None:
        """Remove what was reported before `end`: Spark asks for what comes after it alone."""
        names = [entry.name for entry in self._store.entries(self._place)] if end else []
        written = {name: self._store.status(self._place / name).modified_ms or 0 for name in names}
        for name, modified_ms in written.items():
            if modified_ms < written.get(f"{end}{_SUFFIX}", 0):
                self._store.remove(self._place / name)

    def _reported(self, offset: str) -> Mapping[str, _Row]:
        if offset == BEGINNING:
            return {}
        try:
            with closing(self._store.open(self._file(offset))) as source:
                rows = pa.ipc.open_stream(read_bytes(source, 0, source.size())).read_all()
        except FileNotFoundError:
            raise UsageError(
                f"option state {self._state}: has nothing of what this stream reported; a checkpoint and a state belong together"
            ) from None
        return {row["merge_key"]: row for row in rows.to_pylist()}

    def _report(self, offset: str, rows: pa.Table) -> None:
        self._store.make_directory(self._place)
        self._store.put(self._file(offset), BytesIO(table_to_ipc(rows)))

    @property
    def _state(self) -> str:
        return str(self.options.audit["state"])

    @property
    def _place(self) -> Uri:
        return Uri.parse(self._state).absolute() / "reported"

    @property
    def _store(self) -> WritableFileSystem:
        return writable_filesystem(self._place)

    def _file(self, offset: str) -> Uri:
        return self._place / f"{offset}{_SUFFIX}"


def _looks(layout: Layout) -> str:
    """Return a digest of the names, sizes and times of all files that an audit reads."""
    digest = hashlib.sha256()
    for entry in layout.everything:
        for file in (*entry.segments, *entry.side_files, *entry.checkpoints):
            digest.update(f"{file.path}|{file.size}|{file.modified_ms}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def _table(rows: Iterable[_Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), arrow_schema("findings"))


def _since(known: _Row | None, row: _Row) -> _Row:
    """Return the row of a finding that is there now: the one that is known, as long as it says the same."""
    if known is None:
        return row
    if all(known[name] == value for name, value in row.items() if name not in _STAMPED):
        return known
    return row | {"change": CHANGED, "found_at": known["found_at"]}


def _is_there(row: _Row, layout: Layout) -> bool:
    """Whether the log still has the place of a finding: what retention deleted is not withdrawn."""
    if row["topic"] is None:
        return True
    offset = row["offset"] if row["last_offset"] is None else row["last_offset"]
    return any(
        offset is None or offset >= entry.segments[0].base_offset
        for entry in layout.everything
        if (entry.topic, entry.log_dir) == (row["topic"], row["log_dir"] or entry.log_dir)
        if entry.segments and row["partition"] in {None, entry.partition}
    )
