"""Inputs that led where none before them led, kept from run to run in a directory of the user's: DIRECTORY/TARGET/DIGEST.bin.

Later runs change them as they change seeds. DIRECTORY/totals.json adds up what all runs fed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

MOST_INPUTS = 1000
"""Of one target."""
LONGEST_INPUT = 64 << 10


class Corpus:
    """A directory of inputs; without one, what is kept is forgotten with the process."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._inputs: dict[str, list[bytes]] = {}
        self._outcomes: dict[str, set[str]] = {}

    def inputs(self, name: str) -> Sequence[bytes]:
        """Return the inputs of a target, a list that grows with `take`."""
        if name not in self._inputs:
            files = sorted((self._directory / name).glob("*.bin")) if self._directory is not None else []
            self._inputs[name] = [file.read_bytes() for file in files[:MOST_INPUTS]]
            self._outcomes[name] = set()
            for file in files:
                self._outcomes[name] |= set(_read(file.with_suffix(".outcomes")))
        return self._inputs[name]

    def take(self, name: str, data: bytes, outcomes: frozenset[str]) -> None:
        """Keep an input if anything came of it that never came of one before."""
        known = self.inputs(name)
        fresh = outcomes - self._outcomes[name]
        if not fresh or len(known) >= MOST_INPUTS or len(data) > LONGEST_INPUT:
            return
        self._outcomes[name] |= fresh
        self._inputs[name].append(data)
        if self._directory is not None:
            path = self._directory / name / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.with_suffix(".outcomes").write_text(json.dumps(sorted(fresh)))

    def add_totals(self, counts: Mapping[str, int]) -> int:
        """Add how many inputs a run fed to each target; return how many all runs fed."""
        if self._directory is None:
            return sum(counts.values())
        file = self._directory / "totals.json"
        totals: dict[str, int] = _read(file) or {}
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        self._directory.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(totals, indent=1))
        return sum(totals.values())


def _read(file: Path):
    return json.loads(file.read_text()) if file.exists() else []
