"""Files beside the segments that know more of the log than its segments hold."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE, INDEX_OF_DAMAGE
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.sidefiles.about_file import file_finding, side_file_check
from kaudit.checks.texts import counted
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.severity import Severity
from kaudit.model.side_files import CheckpointBeyondLogEnd, IndexBeyondLogEnd, KnownBeyondLogEnd

_RULE = (
    "a producer snapshot is named by the end of the log, a leader epoch begins there, and a closed index leads to batches of the "
    "log; truncating the log removes all of them (ProducerStateManager.truncateAndReload, LeaderEpochFileCache.truncateFromEnd, "
    "AbstractIndex.truncateTo)"
)
_RULE_OF_APPENDS = (
    "a broker writes what it appends at once (MemoryRecords.writeFullyTo): a write that is interrupted, or copied too early, ends with a "
    "page of 4,096 bytes; this segment ends inside a batch, at byte"
)
_HOW_MANY = "its other replicas, the producers, or another copy of replication-offset-checkpoint: how far the log went"
_CAUSES = (
    Explanation("the end of the log was lost: with the page cache, by an incomplete copy, or by another program"),
    Explanation("the log was truncated, and the file was not written again before it was copied"),
    Explanation("the file was copied later than the log", innocent=True),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    log_end_offset: int
    missing_offsets: int
    files: Sequence[str]
    to_be_certain: str | None = None


@check(
    "KA014",
    severity=Severity.ERROR,
    summary="a producer snapshot, a leader epoch or an index knows offsets beyond the end of the log",
    needs=(KnownBeyondLogEnd, CheckpointBeyondLogEnd),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(DAMAGE,),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("simulated brokers remove these files when they truncate a log"),
)
def log_ends_early(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the offsets from the log's end to the furthest that a file knows."""
    for found in evidence.of(KnownBeyondLogEnd):
        name, end = max(found.files, key=lambda known: known[1])
        count = end - found.log_end_offset
        # what a checkpoint knows beyond these files is reported by KA505
        known = any(checkpoint.offset >= end for checkpoint in evidence.of(CheckpointBeyondLogEnd))
        most = count if known or not found.went_on else None
        cut = found.broken_off_at
        yield log_ends_early.finding(
            context,
            f"the log ends at {found.log_end_offset}, but {name} knows it up to {end}: "
            f"{'at least ' if most is None else ''}{counted(count, 'offset')} missing",
            offset=found.log_end_offset,
            last_offset=end - 1,
            file=context.side_file(name),
            anchor="log end",
            evidence=_Evidence(
                rule=_RULE if cut is None else f"{_RULE_OF_APPENDS} {cut}",
                broker="removes the file when it loads the log, and goes on at the end that the segments have",
                log_end_offset=found.log_end_offset,
                missing_offsets=count,
                files=[f"{file} to {offset}" for file, offset in found.files],
                to_be_certain=None if most is not None else _HOW_MANY,
            ),
            impact=Impact(records_lost_at_least=found.records or None, records_lost_at_most=most),
            explanations=_CAUSES if cut is None else _CAUSES[:1],
            following=(context.inspect_file(name), "look for these offsets on the partition's other replicas"),
            absent={
                **NO_PRODUCER,
                "segment": "the offsets are in none",
                "position": "the bytes are not there",
            },
        )


class _BeyondEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    row: int
    known_end_offset: int
    log_end_offset: int


_TRUNCATED = (
    Explanation(
        "the log was truncated to where it ends now, as a follower does when its leader changes", innocent=True
    ),
    Explanation("the end of the log was lost: with the page cache, by an incomplete copy, or by another program"),
)


@side_file_check(
    "KA015",
    severity=Severity.NOTE,
    summary="an index that is still open has rows beyond the end of the log",
    needs=(IndexBeyondLogEnd,),
    incident=(INDEX_OF_DAMAGE,),
    caused_by=none_because("brokers log nothing about such rows"),
)
def index_beyond_log_end(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report what they prove: the log once went so far. Rows of an index that was closed are reported by KA014."""
    for found in evidence.of(IndexBeyondLogEnd):
        if found.lost:
            continue
        yield file_finding(
            index_beyond_log_end,
            context,
            found.file,
            f"the log ends at {found.log_end_offset}, but it once went to {found.end_offset} at least: row {found.row} of the index",
            segment=found.segment,
            position=found.position,
            evidence=_BeyondEvidence(
                rule="truncating an index lowers its number of rows and leaves their bytes until it is closed "
                "(AbstractIndex.truncateTo)",
                broker="overwrites the rows one by one, and cuts off what is left of them when it closes the index",
                row=found.row,
                known_end_offset=found.end_offset,
                log_end_offset=found.log_end_offset,
            ),
            explanations=_TRUNCATED,
        )
