"""What a recipe is: how a known bug is provoked, and the account of it that `python -m tests.bugs.record` keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.recorder.topic import Line

COORDINATOR = "__transaction_state-0"
Finding = Mapping[str, Any]
"""What `kaudit scan`, or `command`, should report: `code`, `topic`, `partition`, and the numbers as sent and answered."""


@dataclass(frozen=True)
class Outcome:
    """What one play of a recipe did."""

    happened: bool
    """Whether the bug did, judged by what was sent and what was answered."""
    account: str
    """What was sent and what was answered, in a sentence or two."""
    log_dirs: Mapping[str, Path]
    """Log directories to keep, by the name they get."""
    partitions: tuple[str, ...]
    """Names of the partition directories to keep of each."""
    findings: tuple[Finding, ...]
    server_logs: Mapping[str, Path]
    client_logs: Mapping[str, Path]
    zookeeper: Path | None = None
    """ZooKeeper's data directory, where it is part of the evidence: it is scanned with the log directories."""


@dataclass(frozen=True)
class Recipe:
    """How one bug is provoked."""

    bug: str
    """The id of its entry in `kaudit bugs`."""
    program: str
    """Whose bug it is: `broker`, or the client."""
    affected: str
    """The release that is played."""
    fixed: str | None
    """A release in which the same does no harm, None where there is none to play."""
    play: Callable[[str, Path], Outcome]
    """Plays one release of the program below a directory, which is there and empty."""
    fixed_log_differs: bool = True
    """Whether the log of the fixed release has no trace of the bug; else it is not kept."""


def outcome_of(
    account: str,
    *findings: Finding,
    happened: bool,
    logs: Path | Mapping[str, Path],
    partitions: tuple[str, ...],
    server_logs: Mapping[str, Path] | None = None,
    client_logs: Mapping[str, Path] | None = None,
    zookeeper: Path | None = None,
) -> Outcome:
    """An outcome, of one log directory as a rule."""
    log_dirs = {"logs": logs} if isinstance(logs, Path) else logs
    return Outcome(happened, account, log_dirs, partitions, findings, server_logs or {}, client_logs or {}, zookeeper)


def answer(line: Line) -> str:
    """How an attempt was answered: `appended at offset 3`, or the error's name."""
    _, got = line
    return f"appended at offset {got['base_offset']}" if got["outcome"] == "appended" else str(got.get("error"))
