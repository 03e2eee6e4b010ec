"""What every format receives besides the result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.model.finding import Finding
from kaudit.model.limits import FINDINGS_OF_CHECK
from kaudit.model.severity import Severity, Status
from kaudit.report.console import Console

if TYPE_CHECKING:  # numpy comes with it
    from kaudit.listings.producer_histories import EngineTables, RecordedScan


Decide = Callable[[Sequence[Finding]], Sequence[Finding]]
"""Applies a team's decisions to findings of some partitions. Tasks of an engine import it by name."""


def as_found(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings as they are."""
    return findings


class RenderOptions(Struct, frozen=True):
    """The reader's choices, and facts of this run that are not part of the result.

    `verbose`: every incident with all of its findings; `statistics`: counts by check in place of findings.
    `run` is host and time, None with --reproducible; `codes` the checks that were asked for, None for all;
    `fail_on` the least severity that fails the run, None for never. `recorded` has the producers' histories for the formats
    that show them, by the name of the replica they were read from, None for all that were audited; `producer_ids` are those
    that were asked for, None for all. `batches`: tables with a row for every batch. `command` is the command line. `repository` is the root of the checkout
    that kaudit runs in, None for the working directory: formats for code hosts name files relative to it.
    """

    console: Console = field(default_factory=Console)
    show_notes: bool = False
    verbose: bool = False
    statistics: bool = False
    run: Mapping[str, object] | None = None
    exit_code: int | None = None
    codes: frozenset[str] | None = None
    fail_on: Severity | None = Severity.ERROR
    recorded: "Mapping[str | None, RecordedScan]" = field(default_factory=dict)
    listed: "EngineTables | None" = None
    """Makes tables of all chosen producer ids, where the engine lists only some of them."""
    producer_ids: frozenset[int] | None = None
    batches: bool = False
    digests: bool = False
    """Tables have a row for each partition replica's digests."""
    command: str = "kaudit"
    repository: str | None = None
    decide: Decide = as_found
    """Applied to findings that the engine itself writes into tables."""
    log_start_offset: int | None = None
    """--log-start-offset."""
    findings_of_check: int | None = FINDINGS_OF_CHECK
    """Most findings of a check that formats for machines list; None where --max-findings limits all findings."""

    def for_people(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that people are shown: new ones, and notes only when asked for or where something must not be done.

        Notes of an incident are shown together.
        """
        new = [finding for finding in findings if finding.status is Status.NEW]
        warned = {finding.incident for finding in new if finding.impact.cautions} - {None}
        return [
            finding
            for finding in new
            if self.show_notes
            or finding.severity is not Severity.NOTE
            or finding.impact.cautions
            or finding.incident in warned
        ]

    def asked_for(self, code: str) -> bool:
        """Whether the run looked for findings of this code."""
        return self.codes is None or code in self.codes

    def fails(self, finding: Finding) -> bool:
        """Whether the finding makes the exit code 1."""
        return finding.status is Status.NEW and self.fail_on is not None and finding.severity >= self.fail_on


Row = Mapping[str, object]


class Tables(Struct, frozen=True):
    """A directory of tables: `rows` in memory by table, and the tables in `streamed`, whose rows come in `pieces`."""

    rows: Mapping[str, Sequence[Row]]
    manifest: Mapping[str, object]
    streamed: Sequence[str] = ()
    pieces: Iterable[tuple[str, bytes]] = ()
    write_to: Callable[[str], str] | None = None
    """Has the engine write all tables to a URL, and returns the run's id; None: only this process can write them."""


MANIFEST = "manifest.json"
"""The file beside tables that is written last: a directory that has it is whole."""


def is_replaceable(directory: Path) -> bool:
    """Return whether tables may replace a directory: it is empty, or an earlier result of kaudit."""
    return not any(directory.iterdir()) or (directory / MANIFEST).is_file()


Output = Iterable[str] | Tables
