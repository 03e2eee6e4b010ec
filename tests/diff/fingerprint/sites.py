"""Two sites that compare their logs as operators do: one sends a fingerprint, the other answers with a narrower one."""

from pathlib import Path

from kaudit.diff.fingerprint.document import read_fingerprint_document, write_fingerprint
from kaudit.engines.fingerprints import compare_with_logs, fingerprint
from kaudit.engines.progress import SilentProgress
from kaudit.model.fingerprint import Fingerprint, FingerprintComparison, FingerprintDiff
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions

_MOST_ROUNDS = 16


def options(path: Path, *, compacted: bool = False) -> ScanOptions:
    return ScanOptions([str(path)], jobs=1, compacted=compacted)


def fingerprint_of(path: Path, other: Fingerprint | None = None, *, compacted: bool = False) -> Fingerprint:
    """Make a fingerprint, and send it: it is read from its text."""
    made = fingerprint(options(path, compacted=compacted), Replica("here", str(path)), SilentProgress(), other)
    return read_fingerprint_document("".join(write_fingerprint(made)))


def compared(path: Path, other: Fingerprint, *, compacted: bool = False) -> FingerprintDiff:
    return compare_with_logs(
        options(path, compacted=compacted), Replica("here", str(path)), "there", other, SilentProgress()
    )


def exchange(left: Path, right: Path, *, compacted: bool = False) -> tuple[list[FingerprintComparison], int]:
    """Exchange fingerprints of two directories until nothing is left to ask; return the answers, and the documents sent."""
    sent, here, there = fingerprint_of(left, compacted=compacted), right, left
    for rounds in range(1, _MOST_ROUNDS):
        found = compared(here, sent, compacted=compacted).partitions
        if not any(entry.not_compared or (entry.differing and entry.first_difference is None) for entry in found):
            return list(found), rounds
        sent, here, there = fingerprint_of(here, sent, compacted=compacted), there, here
    raise AssertionError("the exchange does not end")
