"""A producer snapshot that a broker cannot read."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import SNAPSHOT
from kaudit.checks.sidefiles.about_file import partition_file
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.side_files import CorruptSnapshot


@check(
    "KA501",
    severity=Severity.WARNING,
    summary="a producer snapshot cannot be read",
    needs=(CorruptSnapshot,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a corrupt snapshot is one file"),
    caused_by=(SNAPSHOT,),
    simulated=none_because("side files are written from the simulated state, and schedules damage none"),
)
def snapshot_corrupt(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each, with the older snapshot the broker starts from instead."""
    for found in evidence.of(CorruptSnapshot):
        then = "and reads the log from its start"
        if found.older_snapshot:
            then = f"and starts from {found.older_snapshot}, reading the log from there on"
        yield snapshot_corrupt.finding(
            context,
            f"the producer snapshot is corrupt: {found.detail}",
            segment=found.segment,
            position=found.position,
            evidence={
                "rule": "a snapshot has version 1, a CRC-32C over count and entries, and 46 bytes an entry "
                "(ProducerStateManager.readSnapshot)",
                "broker": f"warns, deletes the file {then}: more of the past is remembered than without damage, nothing is "
                "lost",
                "reason": found.reason,
                "detail": found.detail,
                "size": found.size,
                "older_snapshot": found.older_snapshot,
            },
            explanations=(
                Explanation(
                    "the broker or its host stopped before the file reached the disk (before 2.8 it was never synced; from "
                    "3.7 on only above the recovery point)",
                    speaks_for=("the file is empty",) if found.size == 0 else (),
                ),
                Explanation("bits flipped on disk, or the file was cut by a copy"),
            ),
            **partition_file(context, found.file),
        )
