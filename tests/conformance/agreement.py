"""How far kaudit agrees with every recording: the table in docs/broker-rules.md.

Written by `python -m tests.conformance.agreement docs/broker-rules.md`.
"""

import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from kaudit.broker.releases.version import Version
from kaudit.report.text.generated_pages import write_section
from tests.conformance.comparison import Json, differences, replayed, sent_timestamps
from tests.conformance.exclusions import EXCLUSIONS, UNRECORDED_CONFIG
from tests.conformance.recorder.events import EPOCHS, EVENTS, KINDS, LEVELS, kind_of
from tests.conformance.recorder.recording import DIFFERING, Recording, scenario_of

DATA = Path(__file__).parents[1] / "data"
FOLDERS = (DATA / "oracle", DATA / "recorded")
"""What was given, and what tests/conformance/recorder has recorded."""
TABLE_BEGIN = "<!-- agreement: written by python -m tests.conformance.agreement docs/broker-rules.md -->"
TABLE_END = "<!-- end of agreement -->"
EVENTS_BEGIN = "<!-- events: written by python -m tests.conformance.agreement docs/broker-rules.md -->"
EVENTS_END = "<!-- end of events -->"


class Recorded(NamedTuple):
    """A pair of files."""

    version: str
    name: str
    folder: Path

    def lines(self, kind: str) -> list[Json]:
        """The attempts, or the answers to them."""
        with lzma.open(self.folder / f"{self.name}.{kind}.jsonl.xz", "rt") as lines:
            return [json.loads(line) for line in lines]

    def attempts(self) -> list[Json]:
        """The attempts, with the configuration their brokers are known to have had."""
        attempts = self.lines("attempts")
        attempts[0]["config"] = UNRECORDED_CONFIG | attempts[0]["config"]
        return attempts

    @property
    def differs(self) -> bool:
        """Whether it holds what kaudit answers otherwise so far."""
        return self.name.endswith(DIFFERING)


class Agreement(NamedTuple):
    """Figures of one release: attempts and produce attempts, how many agree, and excluded answers by exclusion."""

    attempts: Counter[str]
    agreed: Counter[str]
    excluded: Counter[int]


def recordings() -> list[Recorded]:
    """Every recording, oldest release first."""
    found = [
        Recorded(path.parent.name, path.name.partition(".")[0], path.parent)
        for folder in FOLDERS
        for path in folder.glob("*/*.attempts.jsonl.xz")
    ]
    return sorted(found, key=lambda recorded: (Version.parse(recorded.version), recorded.name))


def agreement_by_version() -> dict[str, Agreement]:
    """Replay every recording, and count."""
    found: dict[str, Agreement] = {}
    for recorded in recordings():
        figures = found.setdefault(recorded.version, Agreement(Counter(), Counter(), Counter()))
        attempts = recorded.attempts()
        sent = sent_timestamps(attempts)
        for attempt, answer, truth in zip(attempts, replayed(attempts), recorded.lines("answers"), strict=True):
            op = attempt["op"]
            if op == "broker":
                continue
            figures.attempts[op] += 1
            figures.agreed[op] += not list(differences(attempt, answer.fields, truth, sent))
            figures.excluded.update(excluded(attempt, answer.fields, truth))
    return found


def excluded(attempt: Json, answer: Json, truth: Json) -> set[int]:
    """Which exclusions an answer needs."""
    topic, op = attempt.get("topic", ""), attempt["op"]
    return {
        number
        for field, value in truth.items()
        if field in answer and answer[field] != value
        for number, exclusion in enumerate(EXCLUSIONS)
        if exclusion.covers(topic, op, field, (answer[field], value))
    }


def table() -> Iterator[str]:
    """The lines of the table and of what is excluded, in Markdown."""
    yield "| release | recordings | attempts | agree | produce attempts | agree | excluded |"
    yield "|---|---|---|---|---|---|---|"
    names: dict[str, list[str]] = {}
    for recorded in recordings():
        names.setdefault(recorded.version, []).append(recorded.name)
    by_version = agreement_by_version()
    needed: Counter[int] = Counter()
    for figures in by_version.values():
        needed += figures.excluded
    letters = dict(zip(sorted(needed), ascii_lowercase, strict=False))
    for version, figures in by_version.items():
        left_out = ", ".join(f"{count} ({letters[number]})" for number, count in sorted(figures.excluded.items()))
        yield (
            f"| {version} | {', '.join(names[version])} | {_of(figures.attempts.total(), figures.agreed.total())} "
            f"| {_of(figures.attempts['produce'], figures.agreed['produce'])} | {left_out} |"
        )
    attempts = sum(figures.attempts.total() for figures in by_version.values())
    produced = sum(figures.attempts["produce"] for figures in by_version.values())
    yield f"| {len(by_version)} releases | {len(recordings())} | {attempts:,} | | {produced:,} | | {needed.total()} |"
    yield ""
    for number, letter in letters.items():
        exclusion = EXCLUSIONS[number]
        where = "any scenario" if exclusion.topic == "*" else exclusion.topic
        yield f"- ({letter}) {where}, {exclusion.op} `{exclusion.field}`: {exclusion.reason}."


def _of(attempts: int, agreed: int) -> str:
    return f"{attempts:,} | {100 * agreed / attempts:.4g} %"


def events_table() -> Iterator[str]:
    """How many attempts of each kind of event were answered alike, by release, and what was not."""
    attempts: Counter[tuple[str, str]] = Counter()
    differ: Counter[tuple[str, str]] = Counter()
    found: dict[str, dict[str, list[str]]] = {}
    for recorded in recordings():
        if not recorded.name.startswith((EPOCHS, EVENTS, LEVELS)):
            continue
        recording = Recording.of(recorded.attempts(), recorded.lines("answers"))
        for attempt, _ in recording.lines:
            attempts[recorded.version, kind_of(scenario_of(attempt)) or EPOCHS] += 1
        for scenario, found_here in recording.differing().items():
            differ[recorded.version, kind_of(scenario) or EPOCHS] += len(found_here)
            attempt, fields, _ = found_here[0]
            said = "; ".join(f"`{name}` {theirs}, kaudit {ours}" for name, ours, theirs in fields)
            by_release = found.setdefault(f"{attempt['op']}: {said}", {})
            by_release.setdefault(recorded.version, []).append(f"{scenario} ({len(found_here)})")
    releases = list(dict.fromkeys(version for version, _ in attempts))
    yield f"| event | {' | '.join(releases)} | all |"
    yield f"|---|{'---|' * (len(releases) + 1)}"
    for kind in (EPOCHS, *KINDS, LEVELS, "all"):
        asked, other = (
            [_of_kind(counts, kind, release) for release in (*releases, "all")] for counts in (attempts, differ)
        )
        cells = [f"{count - wrong:,} of {count:,}" if count else "" for count, wrong in zip(asked, other, strict=True)]
        yield f"| {kind} | {' | '.join(cells)} |"
    yield ""
    for said, by_release in found.items():
        where = "; ".join(f"{version} {', '.join(scenarios)}" for version, scenarios in by_release.items())
        yield f"- {said}: {where}."
    if not found:
        yield "Nothing differs."


def _of_kind(counts: Counter[tuple[str, str]], kind: str, release: str) -> int:
    chosen = (count for (of, what), count in counts.items() if kind in (what, "all") and release in (of, "all"))
    return sum(chosen)


def write_table(page: Path) -> None:
    """Put both tables into a page, between the comments that mark their places."""
    write_section(page, TABLE_BEGIN, TABLE_END, "\n".join(table()))
    write_section(page, EVENTS_BEGIN, EVENTS_END, "\n".join(events_table()))


def take_over_what_agrees() -> None:
    """Move scenarios that kaudit answers as the broker did by now from `NAME-differing` to `NAME`."""
    for recorded in [each for each in recordings() if each.differs]:
        differing = Recording.of(recorded.attempts(), recorded.lines("answers"))
        still = set(differing.differing())
        name = recorded.name.removesuffix(DIFFERING)
        of = Recorded(recorded.version, name, recorded.folder)
        others = Recording.of(of.attempts(), of.lines("answers"))
        agreed = differing.without(still)
        if agreed.lines:
            Recording(others.broker, others.lines + agreed.lines).write(recorded.folder, name)
            for kind in ("attempts", "answers"):
                (recorded.folder / f"{recorded.name}.{kind}.jsonl.xz").unlink()
            if still:
                differing.only(still).write(recorded.folder, recorded.name)


if __name__ == "__main__":
    take_over_what_agrees()
    write_table(Path(sys.argv[1]))
