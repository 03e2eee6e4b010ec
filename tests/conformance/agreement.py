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

DATA = Path(__file__).parents[1] / "data"
FOLDERS = (DATA / "oracle", DATA / "recorded")
"""What was given, and what tests/conformance/recorder has recorded."""
TABLE_BEGIN = "<!-- agreement: written by python -m tests.conformance.agreement docs/broker-rules.md -->"
TABLE_END = "<!-- end of agreement -->"


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


def write_table(page: Path) -> None:
    """Put the table into a page, between the two comments that mark its place."""
    write_section(page, TABLE_BEGIN, TABLE_END, "\n".join(table()))


if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
