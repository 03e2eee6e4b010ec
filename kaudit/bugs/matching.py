"""Names the known bugs that findings look like."""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import RELEASES
from kaudit.bugs.bug import Bug, Case, Program
from kaudit.bugs.registry import BUGS
from kaudit.model.finding import Finding, KnownBug
from kaudit.model.grouping import grouped


def with_known_bugs(
    findings: Sequence[Finding], versions: VersionRange, compacted: Collection[tuple[str, int]]
) -> list[Finding]:
    """Return the findings, in their order, each with the known bugs it looks like.

    `versions` are the broker's: a bug of brokers that none of them has is not named. `compacted` are topic
    partitions; what is around a finding is in its own.
    """
    candidates = _Candidates(versions)
    surroundings = _Surroundings(findings, compacted)
    return [
        replace(finding, known_bugs=named)
        if candidates.of(finding.code) and (named := _named(finding, candidates, surroundings))
        else finding
        for finding in findings
    ]


def _named(finding: Finding, candidates: "_Candidates", surroundings: "_Surroundings") -> Sequence[KnownBug]:
    named: dict[str, KnownBug] = {}
    instead: set[str] = set()
    for bug, version_known in candidates.of(finding.code):
        known = bug.named_by(surroundings.case(finding, version_known=version_known))
        if known is not None:
            named[bug.id] = known
            instead.update(bug.rather_than)
    return [known for ticket, known in named.items() if ticket not in instead]


class _Candidates:
    """The bugs that the versions in question may have, by the codes of their findings."""

    def __init__(self, versions: VersionRange) -> None:
        self._releases = [
            release.numbers for release in RELEASES if versions.at_least <= release <= versions.at_most
        ] or [versions.at_most.numbers]
        self._by_code: dict[str, Sequence[tuple[Bug, bool]]] = {}

    def of(self, code: str) -> Sequence[tuple[Bug, bool]]:
        """Return the bugs, and whether every version in question has them."""
        if code not in self._by_code:
            self._by_code[code] = list(self._among(bug for bug in BUGS.values() if code in bug.all_codes))
        return self._by_code[code]

    def _among(self, bugs: Iterable[Bug]) -> Iterator[tuple[Bug, bool]]:
        for bug in bugs:
            if bug.program is not Program.BROKER:
                yield bug, False
                continue
            has = [bug.has_version(release) for release in self._releases]
            if any(has):
                yield bug, all(has)


class _Surroundings:
    """The other findings around a finding, looked up only when a trait asks."""

    def __init__(self, findings: Sequence[Finding], compacted: Collection[tuple[str, int]]) -> None:
        self._findings = findings
        self._compacted = compacted
        self._by_field: dict[str, Mapping[tuple[object, ...], Sequence[Finding]]] = {}

    def case(self, finding: Finding, *, version_known: bool) -> Case:
        """Return a finding with its surroundings."""
        compacted = (finding.topic, finding.partition) in self._compacted
        return Case(finding, compacted, version_known, functools.partial(self._others, finding))

    def _others(self, finding: Finding, code: str, field: str) -> Sequence[Finding]:
        if field not in self._by_field:
            groups: dict[tuple[object, ...], list[Finding]] = grouped(
                ((other.topic, other.partition, other.code, getattr(other, field)), other) for other in self._findings
            )
            self._by_field[field] = groups
        key = (finding.topic, finding.partition, code, getattr(finding, field))
        return self._by_field[field].get(key, ())
