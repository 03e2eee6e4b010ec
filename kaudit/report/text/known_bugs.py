"""Known bugs in words: what a finding looks like."""

from collections.abc import Iterable, Sequence

from kaudit.model.finding import Finding
from kaudit.model.known_bug import KnownBug
from kaudit.report.console import visible
from kaudit.report.text.formatting import plural


def known_bug_text(known: KnownBug) -> str:
    """Return `looks like KAFKA-12671, fixed in 3.6.0 by KIP-890: 2 of 2 traits seen`."""
    fixed = f"fixed in {known.fixed_in}" if known.fixed_in else "no fix known"
    seen = f"{len(known.traits_seen)} of {plural(len(known.traits), 'trait')} seen"
    return visible(f"looks like {known.id}, {fixed}: {seen}")


def bugs_of(findings: Iterable[Finding]) -> Sequence[KnownBug]:
    """Return the bugs that findings of one cause look like, each once, with the most traits that any of them shows."""
    found: dict[str, KnownBug] = {}
    for finding in findings:
        for known in finding.known_bugs:
            if known.id not in found or len(found[known.id].traits_seen) < len(known.traits_seen):
                found[known.id] = known
    return list(found.values())


def with_known_bugs(text: str, bugs: Iterable[KnownBug]) -> str:
    """Return the text, and what it looks like where that is known."""
    return ". ".join([text, *(f"It {known_bug_text(known)}" for known in bugs)])
