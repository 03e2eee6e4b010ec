"""A known bug: its ticket, the versions that have it, and the traits by which a finding is recognised as its trace.

Modules define bugs, several where they share traits; the page beside the module has the ticket's name.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from kaudit.bugs.tickets import Program as Program  # noqa: PLC0414 - a part of every bug
from kaudit.checks.listed import parse_documentation, read_page
from kaudit.checks.texts import listed
from kaudit.model.application_logs import LogEventKind
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BatchEvidence
from kaudit.model.finding import Finding, KnownBug
from kaudit.model.severity import Confidence

HEADINGS = (
    "What happens",
    "How to recognise it",
    "What it costs",
    "What else looks like it",
    "What to do",
    "References",
)
_RECOGNISED = HEADINGS[1]
Release = tuple[int, ...]
"""A version's numbers; versions of one program compare as these do."""


class Affected(Struct, frozen=True):
    """Versions with the bug, both ends included: `4.4` is all of its patches. No `last` where none is fixed."""

    first: str
    last: str | None

    def has(self, release: Release) -> bool:
        """Return whether a version is one of these."""
        last = None if self.last is None else parse_release(self.last)
        return parse_release(self.first) <= release and (last is None or release[: len(last)] <= last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first} and later"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


class Case(Struct, frozen=True):
    """One finding, and its surroundings.

    `compacted`: its partition is. `version_known`: every broker version that the log may come from has the bug.
    `others` returns the findings of a check about the same partition and, where a field is named, with the same value
    of it.
    """

    finding: Finding
    compacted: bool
    version_known: bool
    others: Callable[[str, str], Sequence[Finding]]

    @property
    def evidence(self) -> FindingEvidence:
        """The finding's evidence by name and type."""
        return self.finding.evidence

    @property
    def offending(self) -> BatchEvidence:
        """The batch or marker in question; one without values where the evidence has none."""
        return self.evidence.offending or BatchEvidence()


class Trait(Struct, frozen=True):
    """One trace of a bug: a clause that says what was seen, and the predicate. All but `optional` ones must be there.

    One `of_logs` is counted only where it is seen: few audits are given the logs of brokers and clients.
    """

    text: str
    seen: Callable[[Case], bool]
    optional: bool = False
    of_logs: bool = False


class Bug(Struct, frozen=True, eq=False, kw_only=True):
    """One known bug. `title` and `summary` are sentences without a full stop.

    `codes` are those of the findings that may show it by `traits`; `by_lines` has the traits of findings of lines of logs alone, by
    their codes. `fixed_in` names versions, `fix` what fixed it (a KIP, a pull
    request). `rather_than` are bugs with the same trace that it is named instead of, where it fits; `alike` are those whose
    trace is the same, so that both are named. `sources` are addresses.
    """

    id: str
    title: str
    summary: str
    program: Program
    affected: Sequence[Affected]
    fixed_in: Sequence[str]
    fix: str = ""
    codes: frozenset[str]
    traits: Sequence[Trait]
    confidence: Confidence
    sources: Sequence[str]
    rather_than: Sequence[str] = ()
    alike: Sequence[str] = ()
    by_lines: Mapping[str, Sequence[Trait]] = MappingProxyType({})
    package: str = ""
    """The package with its page; the registry fills it in."""

    @property
    def all_codes(self) -> frozenset[str]:
        """The codes of all findings that may show it."""
        return self.codes | frozenset(self.by_lines)

    def has_version(self, release: Release) -> bool:
        """Return whether a version of the program has the bug."""
        return any(versions.has(release) for versions in self.affected)

    @property
    def affected_text(self) -> str:
        """`broker 0.11.0.0 to 3.5.2`."""
        return f"{self.program.value} {', '.join(map(str, self.affected))}"

    @property
    def fixed_text(self) -> str:
        """`3.5.2 and 3.6.1 by KIP-890`; empty if it is not fixed."""
        return f"{listed(self.fixed_in)}{f' by {self.fix}' if self.fix else ''}" if self.fixed_in else ""

    def documentation(self) -> Mapping[str, str]:
        """Return the text under each of HEADINGS: of the page `kaudit/bugs/broker/kafka_12671.md`, named by the ticket, and the traits."""
        texts = parse_documentation(read_page(self.package, self.id.lower().replace("-", "_")))
        by = [f"{', '.join(sorted(self.codes))} with these traits:\n\n{_traits_text(self.traits)}"]
        by += [f"{code} from lines of logs alone:\n\n{_traits_text(traits)}" for code, traits in self.by_lines.items()]
        recognised = [*by, texts[_RECOGNISED]] if texts[_RECOGNISED] else by
        return {**texts, _RECOGNISED: "\n\n".join(recognised)}

    def named_by(self, case: Case) -> KnownBug | None:
        """Return the bug as the finding names it, None if a trait that must be there is not."""
        seen = []
        traits = self.by_lines.get(case.finding.code, self.traits)
        for trait in traits:
            if trait.seen(case):
                seen.append(trait.text)
            elif not trait.optional:
                return None
        return _known_bug(
            self, tuple(seen), tuple(trait.text for trait in traits if not trait.of_logs or trait.text in seen)
        )


@functools.cache
def _known_bug(bug: Bug, seen: Sequence[str], traits: Sequence[str]) -> KnownBug:
    """Return a bug as findings name it: one shared object for all findings that show the same traits."""
    return KnownBug(
        id=bug.id,
        title=bug.title,
        affected=bug.affected_text,
        fixed_in=bug.fixed_text,
        confidence=bug.confidence.value,
        traits_seen=seen,
        traits=traits,
    )


@functools.cache
def parse_release(text: str) -> Release:
    """Return the numbers of a version such as `2.8.1`, `v1.9.0` or `21.10.2`.

    Raises ValueError for what does not begin with dotted numbers.
    """
    match = re.match(r"v?(\d+(?:\.\d+){0,3})(?![\d])", text.strip())
    if match is None:
        raise ValueError(f"not a version: {text!r}")
    return tuple(int(part) for part in match[1].split("."))


def logged(text: str, *kinds: LogEventKind, must: bool = False) -> Trait:
    """Return the trait that a log of a broker or a client has an event of one of these classes about the finding."""
    wanted = {kind.value for kind in kinds}

    def seen(case: Case) -> bool:
        return any(event.event in wanted for event in case.evidence.log_events)

    return Trait(text, seen, optional=not must, of_logs=True)


def said(text: str, *words: str, kind: LogEventKind | None = None, optional: bool = False) -> Trait:
    """Return the trait that a line which a finding shows has all of these words, and is of this class."""

    def seen(case: Case) -> bool:
        return any(
            all(word in str(event.text) for word in words) and (kind is None or event.event == kind.value)
            for event in case.evidence.log_events
        )

    return Trait(text, seen, optional=optional)


def codes(*names: str) -> frozenset[str]:
    """Return a set of codes of checks."""
    return frozenset(names)


def jira(*tickets: str) -> Sequence[str]:
    """Return the addresses of tickets of Apache Kafka."""
    return tuple(f"https://issues.apache.org/jira/browse/{ticket}" for ticket in tickets)


VERSION_KNOWN = Trait("the brokers' version is known to be affected", lambda case: case.version_known)
"""For traces that disks and people leave too: the bug is named only where every version in question has it."""


def _traits_text(traits: Iterable[Trait]) -> str:
    return "\n".join(f"- {trait.text}{_condition(trait)}" for trait in traits)


def _condition(trait: Trait) -> str:
    if trait.of_logs:
        return " (in a log)"
    return " (optional)" if trait.optional else ""
