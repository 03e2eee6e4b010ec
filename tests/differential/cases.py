"""One log at a time: made, damaged and dressed, audited by kaudit, and compared with the reference."""

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.differential.damages import CELLS, CHUNK_BYTES, damaged
from tests.differential.dressings import DRESSINGS, EMBEDDED, dressed
from tests.differential.logs import Embedded, healthy
from tests.differential.reference import Judgement, Proof, judge

UNDRESSED = "none"
ALL_DRESSINGS = (*DRESSINGS, "several", *EMBEDDED)
_HEALTHY = (UNDRESSED, *EMBEDDED, "no checkpoints", "no side files")
"""Dressings that leave an undamaged log undamaged: what its records hold, and copies of a part of the directory."""
_REMOVING = ("no checkpoints", "no side files", "no indexes", "indexes agree", "side files agree", "several")
"""Dressings that remove what side files prove: severities are compared where the same kinds of proof are left."""
_SIDE_FILE_CODES = ("KA305", "KA50")
_LOG_CODES = ("KA00", "KA013", "KA014")
_CELLS_PER_LOG = 6
_DRESSINGS_PER_CELL = 3


class Outcome(NamedTuple):
    """What kaudit said of one log. `healthy`: it is not damaged, and `codes` are alarms; else those at the damage's place.

    `required`: the reference proves the damage. `lowered`: with its dressing it is reported less severely than without.
    `confused`: with batches embedded in its records more damage of the log is reported than without.
    """

    seed: int
    damage: str
    place: str
    dressing: str
    required: bool
    severity: str | None
    lowered: bool
    codes: tuple[str, ...]
    excuses: frozenset[str]
    kinds: frozenset[str] = frozenset()
    """Of proofs."""
    of_log: Severity | None = None
    """The severity without what side files say of each other: a dressing that removes a file removes what it says."""
    damages_named: int = 0
    """Findings about the log itself, wherever they are."""
    confused: bool = False

    @property
    def missed(self) -> bool:
        return self.required and self.severity is None

    @property
    def is_healthy(self) -> bool:
        return self.damage == ""


def alarms(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that say that something is wrong."""
    return [finding for finding in findings if finding.severity is not Severity.NOTE]


def audit(directory: Path, files: Mapping[str, bytes], chunk_bytes: int | None = None) -> list[Finding]:
    """Write a log directory, and return what kaudit finds in it."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "t-0").mkdir(parents=True)
    for path, data in files.items():
        (directory / path).write_bytes(data)
    options = ScanOptions((str(directory),), jobs=1, chunk_bytes=chunk_bytes)
    return list(local.scan(options, SilentProgress()).findings)


def is_at(finding: Finding, proof: Proof) -> bool:
    """Whether a finding is about the place of a proof: its offsets or those beside them, or its bytes."""
    if finding.topic not in ("t", None) or finding.partition not in (0, None):
        return False
    if finding.offset is not None:
        last = finding.offset if finding.last_offset is None else finding.last_offset
        if finding.offset <= proof.last + 1 and last >= proof.first - 1:
            return True
    segment = None if finding.segment is None else f"t-0/{finding.segment}"
    if finding.file is not None and not finding.file.endswith(".log"):
        # a side file that knows more of this segment than it has
        return segment is not None and segment in (proof.file, proof.beside)
    if segment is None or segment != proof.file:
        return False
    return finding.position is not None and proof.position <= finding.position <= proof.end


@dataclass
class Case:
    """A log by what it is made of; `damage` empty: it is healthy."""

    seed: int
    damage: str = ""
    place: str = ""
    dressing: str = UNDRESSED

    @property
    def embedded(self) -> Embedded:
        return EMBEDDED.get(self.dressing, Embedded.NOTHING)

    @property
    def is_comparable(self) -> bool:
        """Whether the same batch is damaged as without the dressing: with larger records a read ends at another one."""
        return self.place != "chunk" or self.dressing not in EMBEDDED

    def files(self) -> tuple[dict[str, bytes], dict[str, bytes]] | None:
        """Return the log's files before and after the damage, None where this history has no such place."""
        image = healthy(self.seed, self.embedded)
        before = image.files()
        if not self.damage:
            if self.dressing not in DRESSINGS:
                return before, before
            copied = dressed(image, self.dressing, len(image.bases) - 1, self.seed)
            return None if copied is None else (before, copied.files())
        made = damaged(image, self.damage, self.place, self.seed)
        if made is None or made.image.files() == before:
            return None
        if self.dressing in (UNDRESSED, *EMBEDDED):
            return before, made.image.files()
        after = dressed(made.image, self.dressing, made.number, self.seed)
        return None if after is None else (before, after.files())


def outcome(case: Case, directory: Path, bare: "Outcome | None" = None) -> Outcome | None:
    """Audit a case; `bare` is the outcome of the same damage without a dressing."""
    files = case.files()
    if files is None:
        return None
    before, after = files
    found = alarms(audit(directory, after, CHUNK_BYTES if case.place == "chunk" else None))
    judgement = judge(before, after) if case.damage else Judgement()
    at_damage = [finding for finding in found if any(is_at(finding, proof) for proof in judgement.proofs)]
    shown = at_damage if case.damage else found
    severity = max((finding.severity for finding in shown), default=None)
    name = None if severity is None else severity.value
    required = bool(judgement.proofs)
    of_log = [finding.severity for finding in shown if not finding.code.startswith(_SIDE_FILE_CODES)]
    kinds = frozenset(proof.what for proof in judgement.proofs)
    alike = bare is not None and (case.dressing not in _REMOVING or bare.kinds <= kinds)
    lowered = bool(bare and alike and bare.of_log and required and (severity is None or severity < bare.of_log))
    named = sum(finding.code.startswith(_LOG_CODES) for finding in found)
    return Outcome(
        case.seed,
        case.damage,
        case.place,
        case.dressing,
        required,
        name,
        lowered,
        tuple(sorted({finding.code for finding in shown})),
        frozenset(judgement.excuses),
        kinds,
        max(of_log, default=None),
        named,
        case.dressing in EMBEDDED and bare is not None and named > bare.damages_named,
    )


def compared(case: Case, directory: Path) -> Outcome | None:
    """Audit a case, and the same damage without a dressing to compare with."""
    if case.dressing == UNDRESSED or not case.is_comparable:
        return outcome(case, directory)
    return outcome(case, directory, outcome(Case(case.seed, case.damage, case.place), directory))


def run(logs: int, seed: int, directory: Path) -> Iterator[Outcome]:
    """Audit about so many logs: healthy ones, and each damage in each place without and with dressings, drawn in turn."""
    done = 0
    number = 0
    draw = random.Random(f"run {seed}")
    cells: list[tuple[str, str]] = []
    while done < logs:
        history = seed * 1_000_000 + number
        number += 1
        made = [outcome(Case(history, dressing=draw.choice(_HEALTHY)), directory)]
        for _ in range(_CELLS_PER_LOG):
            if not cells:
                cells = draw.sample(CELLS, len(CELLS))
            damage, place = cells.pop()
            bare = outcome(Case(history, damage, place), directory)
            if bare is None:
                continue
            made.append(bare)
            for dressing in draw.sample(ALL_DRESSINGS, _DRESSINGS_PER_CELL):
                case = Case(history, damage, place, dressing)
                made += [outcome(case, directory, bare if case.is_comparable else None)]
        present = [each for each in made if each is not None]
        done += len(present)
        yield from present
