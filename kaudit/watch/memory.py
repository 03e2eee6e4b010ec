"""The findings that a watch has reported, for itself and, in a state file, for the watch that continues from it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

from kaudit.model.finding import Finding, Status
from kaudit.watch.waiting import key_of


class Reported(Struct, frozen=True):
    """A reported finding and its place; it is forgotten when the log no longer has that place.

    `last_offset` is None for one about no offset.
    """

    code: str
    severity: str
    directory: str
    last_offset: int | None


class Memory(Struct):
    """`findings` by key, as long as the log may show them; `totals` of new ones by `CODE severity`, never reduced.

    `read_bytes` and `repeated_readings` count over all runs. `grown_ms`: wall clock when something was last appended, ms
    since the epoch.
    """

    findings: dict[str, Reported] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    read_bytes: int = 0
    repeated_readings: int = 0
    grown_ms: int | None = None

    def take(self, findings: Iterable[Finding], directory_of: Mapping[tuple[object, ...], str]) -> list[Finding]:
        """Return those not reported before, and remember them; `directory_of` by place."""
        new: list[Finding] = []
        for finding in findings:
            key = key_of(finding)
            if key in self.findings:
                continue
            offset = finding.last_offset if finding.last_offset is not None else finding.offset
            place = directory_of.get(place_of(finding), "")
            self.findings[key] = Reported(finding.code, finding.severity.value, place, offset)
            if finding.status is Status.NEW:
                total = f"{finding.code} {finding.severity.value}"
                self.totals[total] = self.totals.get(total, 0) + 1
            new.append(finding)
        return new

    def forget(self, start_offsets: Mapping[str, int], deleted: Collection[str]) -> None:
        """Forget findings below the first offset there is of a directory, and those about directories that are gone.

        What is no longer in the log cannot be found again, so memory is bounded by the log.
        """
        gone = [
            key
            for key, known in self.findings.items()
            if known.directory in deleted
            or (known.last_offset is not None and known.last_offset < start_offsets.get(known.directory, 0))
        ]
        for key in gone:
            del self.findings[key]

    def by_check(self) -> dict[tuple[str, str], int]:
        """Return how many findings were reported and new by (code, severity)."""
        return {(code, severity): number for (code, severity), number in self._totals()}

    def _totals(self) -> Iterator[tuple[tuple[str, str], int]]:
        for total, number in self.totals.items():
            code, _, severity = total.partition(" ")
            yield (code, severity), number

    def by_severity(self) -> Counter[str]:
        """Return how many findings of each severity were reported and new."""
        counts: Counter[str] = Counter()
        for (_, severity), number in self._totals():
            counts[severity] += number
        return counts


def place_of(finding: Finding) -> tuple[object, ...]:
    """Return log directory, topic and partition."""
    return finding.log_dir, finding.topic, finding.partition
