"""The recordings beside this file: what happened, and the log directories, unpacked."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bugs.record import ARCHIVE, EXPECTED, FIXED_ARCHIVE, HERE
from tests.unpacked import unpacked

RECORDED = sorted(path.parent.name for path in HERE.glob(f"*/{EXPECTED}"))
FIXED = sorted(path.parent.name for path in HERE.glob(f"*/{FIXED_ARCHIVE}"))


@dataclass(frozen=True)
class RecordedBug:
    """One recording; paths are those of its unpacked files."""

    bug: str
    program: str
    version: str
    findings: list[dict[str, Any]]
    log_dirs: list[Path]
    server_logs: list[Path]
    client_logs: list[Path]


def recorded_bug(bug: str, *, fixed: bool = False) -> RecordedBug:
    """A recording, or what a release without the bug did, unpacked."""
    expected = tomllib.loads((HERE / bug / EXPECTED).read_text())
    target = unpacked(HERE / bug / (FIXED_ARCHIVE if fixed else ARCHIVE))
    files = {name: [target / path for path in expected[name]] for name in ("log_dirs", "server_logs", "client_logs")}
    version = expected["fixed"]["version"] if fixed else expected["version"]
    return RecordedBug(expected["bug"], expected["program"], version, expected.get("findings", []), **files)
