"""What logs of brokers and clients show of transactions rolled back, records given up, logs cut off, and unclean elections."""

import re
from collections.abc import Iterator, Sequence

from kaudit.checks.broker_state.log_meanings import MEANINGS, rule_of
from kaudit.checks.broker_state.logged import (
    Account,
    aborted_text,
    clock_text,
    log_check,
    logged_finding,
    where,
    who,
    with_consequence,
)
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.log_causes import (
    COORDINATED,
    CUT_OFF,
    FENCED,
    MOVED,
    OUT_OF_SYNC,
    OVERTAKEN,
    RETRIED,
    UNCLEAN_STOP,
)
from kaudit.checks.texts import listed
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.copy_identities import HeldTwice
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.logged_incidents import Consequence, LoggedIncident, Outcome
from kaudit.model.severity import Severity

_TIMEOUT_RULE = (
    "a coordinator aborts a transaction that is open for longer than transaction.timeout.ms, and raises the epoch: whatever "
    "the producer asks afterwards is refused (TransactionCoordinator.abortTimedOutTransactions, KIP-588, KIP-890)"
)
_TIMED_OUT = (
    Explanation(
        "the application took longer than transaction.timeout.ms between begin and commit: a stall, a long poll, GC; raise the timeout or "
        "commit more often, and start the producer again: it cannot go on after a refused commit"
    ),
    Explanation("the producer died or lost its connection in the middle of the transaction"),
)


@log_check(
    "KA813",
    severity=Severity.ERROR,
    severity_note="warning when it only timed out and no later request of its producer is known",
    summary="a transaction was rolled back or refused by its coordinator",
    caused_by=(COORDINATED, FENCED),
    transactional=True,
)
def transaction_rolled_back(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each producer once, with its timeouts and what it was refused."""
    for incident in with_consequence(evidence, Consequence.ROLLED_BACK):
        timeouts = [event for event in incident.events if event.event is LogEventKind.TRANSACTION_TIMEOUT]
        refused = [event for event in incident.events if event.event is not LogEventKind.TRANSACTION_TIMEOUT]
        meaning = MEANINGS.get(incident.error) if incident.error != "INVALID_TXN_STATE" else None
        rule = _TIMEOUT_RULE if timeouts else rule_of(incident.error or "INVALID_TXN_STATE")
        causes = list(_TIMED_OUT) if timeouts or meaning is None else [*meaning.explanations]
        if not timeouts and meaning is None:
            causes.insert(0, Explanation("the coordinator had aborted the transaction: it had timed out"))
        yield logged_finding(
            transaction_rolled_back,
            context,
            incident,
            Account(
                message=_rolled_back(incident, timeouts, refused),
                severity=Severity.ERROR if refused else Severity.WARNING,
                rule=rule,
                explanations=causes,
            ),
        )


def _rolled_back(incident: LoggedIncident, timeouts: Sequence[LogEvent], refused: Sequence[LogEvent]) -> str:
    name = who(incident) if incident.transactional_id is None else f"transactional id {incident.transactional_id}"
    answered = f"{_asked(refused)} was refused with {_error(refused)}" if refused else ""
    if not timeouts:
        return f"a transaction of {name} ended otherwise than its producer asked: {answered}"
    aborted = aborted_text(incident.aborted)
    many = (
        f"{len(timeouts)} transactions of {name} after their timeouts"
        if timeouts[1:]
        else f"a transaction of {name}{f' (offsets {aborted})' if aborted else ''} after its timeout"
    )
    many += "" if incident.timeout_ms is None else f" of {_duration(incident.timeout_ms)}"
    at = timeouts[-1].timestamp_ms
    said = f"the coordinator rolled back {many}" + (
        "" if at is None or timeouts[1:] else f" at {clock_text(at, incident)}"
    )
    if not refused:
        return f"{said}: its records are aborted"
    later = refused[0].timestamp_ms
    after = "" if at is None or later is None or later < at else f" {_duration(later - at)} later"
    return f"{said}, and {answered}{after}: nothing of it was committed"


def _duration(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _asked(refused: Sequence[LogEvent]) -> str:
    """Return what the producer asked for, as far as the lines say it."""
    text = refused[0].text
    asked = [name for name in ("COMMIT", "ABORT") if f" {name} " in text.replace("(", " ").replace("\n", " ")]
    return f"its {asked[0]}" if len(asked) == 1 else "what it asked"


def _error(refused: Sequence[LogEvent]) -> str:
    return " or ".join(dict.fromkeys(event.error or event.event.value for event in refused))


@log_check(
    "KA814",
    severity=Severity.ERROR,
    summary="a client gave records up",
    caused_by=(FENCED, OVERTAKEN, OUT_OF_SYNC, MOVED, CUT_OFF, RETRIED),
)
def records_given_up(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report clients whose records expired or failed for good, once for each partition."""
    for incident in with_consequence(evidence, Consequence.UNDELIVERED):
        expired = any(event.event is LogEventKind.DELIVERY_TIMEOUT for event in incident.events)
        why = "after delivery.timeout.ms" if expired else "after an error"
        errors = sorted({event.error for event in incident.events if event.error is not None})
        named = f" ({', '.join(errors)})" if errors and not expired else ""
        yield logged_finding(
            records_given_up,
            context,
            incident,
            Account(
                message=f"{who(incident)} gave up records for{where(incident).removeprefix(' in') or ' its partitions'} {why}{named}"
                f": they are lost unless the application sent them again",
                severity=Severity.ERROR,
                rule="a producer tries again until delivery.timeout.ms (librdkafka: message.timeout.ms) or a fatal error, and then "
                "hands the records back to the application; the broker may have written them all the same",
                explanations=[
                    Explanation(
                        "no broker answered in time: the leader was down, overloaded, or short of replicas in sync"
                    ),
                    Explanation("the client could not reach the leader, or waited too long for its own turn"),
                ],
            ),
        )


_HELD_TWICE = "duplicate-log-directories"
_NOT_LOADED = ("logs-not-loaded", _HELD_TWICE)
_NOT_TRUNCATED = ("truncation-not-allowed", "truncation-not-allowed-topic")
_RESET_TO_END = ("fetch-offset-reset-end", "fetch-offset-reset-end-old", "fetch-offset-reset-end-brackets")
_NOT_APPENDED = (
    "fetched-not-appended",
    "fetched-not-appended-storage",
    "fetched-not-appended-old",
    "fetch-offset-mismatch",
)
_NOT_CUT = ("truncation-failed", "truncation-failed-unexpectedly")
_SEEN_BY_CONSUMERS = (
    *("consumer-truncation", "consumer-truncation-diverged", "consumer-truncation-thrown", "consumer-data-loss"),
    *("consumer-log-truncation", "consumer-log-truncation-unknown"),
)
_BEGUN_ANEW = ("truncated-fully", "fetch-offset-reset-start")
_CUTS = {
    "truncated-below-high-watermark": (
        Severity.ERROR,
        "cut its log off below its high watermark: committed records were cut off, which its leader does not have",
    ),
    "high-watermark-of-leader": (
        Severity.WARNING,
        "took over a high watermark below its own: its leader lacks committed records, or does not know yet that they are committed",
    ),
    "high-watermark-lowered": (Severity.WARNING, "cut its log off so far that its high watermark went back"),
    **dict.fromkeys(_BEGUN_ANEW, (Severity.WARNING, "gave up its log, and begins again at its leader's log start")),
    **dict.fromkeys(_RESET_TO_END, (Severity.WARNING, "cut its log off at its leader's end, which lay before its own")),
    "fetch-partition-failed": (Severity.WARNING, "stopped replicating after an error"),
    **dict.fromkeys(
        _NOT_TRUNCATED,
        (
            Severity.ERROR,
            "has records that its leader does not have, and its broker stopped rather than cut them off: the topic allows no unclean election",
        ),
    ),
    "fetched-damaged-records": (Severity.ERROR, "gets damaged records from its leader, and does not get further"),
    **dict.fromkeys(
        _NOT_APPENDED, (Severity.WARNING, "no longer follows its leader: what it fetched cannot be appended to its log")
    ),
    **dict.fromkeys(
        _NOT_CUT,
        (
            Severity.WARNING,
            "no longer follows its leader: its log could not be truncated to where the leader's differs",
        ),
    ),
    "segments-deleted-below-start": (
        Severity.ERROR,
        "lost all its segments: its log ended before its log start offset",
    ),
    "segments-deleted-in-recovery": (Severity.WARNING, "lost whole segments when the broker recovered it"),
    **dict.fromkeys(
        _NOT_LOADED, (Severity.ERROR, "could not be loaded, and its broker does not start: the line says why")
    ),
    "log-marked-stray": (
        Severity.WARNING,
        "was set aside as stray: its records lie in the directory whose name ends in -stray until it is deleted",
    ),
    **dict.fromkeys(
        ("quorum-truncated-committed", "metadata-truncated-committed"),
        (Severity.ERROR, "was to cut off committed records of the metadata, as its leader lacks them, and failed"),
    ),
    **dict.fromkeys(
        ("consumer-record-invalid", "consumer-batch-invalid"),
        (Severity.ERROR, "has damaged records: a consumer cannot read on from there"),
    ),
    **dict.fromkeys(
        _SEEN_BY_CONSUMERS,
        (Severity.ERROR, "was cut off below what a consumer had read: records that had been committed are gone"),
    ),
}
"""By the id of the message: how severe it is, and how the log was cut. Others are what every follower does at a new leader."""
_NOTHING_LOST = frozenset({*_BEGUN_ANEW, "fetch-partition-failed"})
"""Messages of followers that need not have had anything that others lack: where the partition is read, its copies show that."""
_FOLLOWING = (
    "a follower cuts its log off where it differs from its leader's (KIP-101, KIP-279): records that were never committed, unless the "
    "leader itself had lost some"
)
_LOADING = "a broker loads all logs before it starts, and stops if one of them cannot be loaded (LogManager.loadLogs)"
_FAILED = (
    "a follower that cannot append what it fetched, or cannot truncate, marks the partition as failed and fetches it no more until it "
    "gets a new leader epoch or is started again (AbstractFetcherThread.markPartitionFailed)"
)
_CONSUMING = (
    "a consumer checks the CRC of what it gets (check.crcs), and goes on only where the application seeks beyond it"
)
_RECOVERING = (
    "a broker that was not shut down cleanly checks its logs from the recovery point on, and removes what follows the first invalid batch "
    "(LogLoader.recoverLog)"
)
_RAFT = "a replica of the metadata log never truncates below its high watermark: it stops instead (KafkaRaftClient, KIP-595)"
_REFETCHING = (
    "a follower whose log its leader's does not reach begins anew at the leader's log start, or truncates to the leader's end "
    "(AbstractFetcherThread.fetchOffsetAndTruncate)"
)
_RULES = {
    **dict.fromkeys(_NOT_LOADED, _LOADING),
    **dict.fromkeys(("fetch-partition-failed", *_NOT_APPENDED, *_NOT_CUT), _FAILED),
    **dict.fromkeys((*_BEGUN_ANEW, *_RESET_TO_END), _REFETCHING),
    **dict.fromkeys(("segments-deleted-below-start", "segments-deleted-in-recovery"), _RECOVERING),
    **dict.fromkeys(("quorum-truncated-committed", "metadata-truncated-committed"), _RAFT),
    **dict.fromkeys(("consumer-record-invalid", "consumer-batch-invalid"), _CONSUMING),
    **dict.fromkeys(
        _SEEN_BY_CONSUMERS,
        "a consumer asks a new leader where the leader epoch of what it read last ends: an end below its position shows that the log "
        "was cut off (KIP-320)",
    ),
    "fetched-damaged-records": "a follower checks the CRC of what it fetches, and fetches it again and again where it does not match "
    "(ReplicaFetcherThread.processPartitionData)",
    **dict.fromkeys(
        _NOT_TRUNCATED,
        "a broker stops rather than cut off what its leader lacks, where unclean.leader.election.enable is false "
        "(before KIP-101's truncation: ReplicaFetcherThread.handleOffsetOutOfRange)",
    ),
    "log-marked-stray": "a broker that starts renames logs to -stray that the cluster's metadata does not place on it, and deletes them later "
    "(LogManager.isStrayReplica; KAFKA-14616)",
}
"""By the id of the message: the rule that the line follows from, where it is no truncation at a new leader."""
_CUT_BECAUSE = (
    Explanation("a leader was elected that lacked records: an unclean election, or a disk that lost some"),
    Explanation("the broker had not been shut down cleanly, and its disk lacks what was not flushed"),
)
_CUT_RIGHTLY = (Explanation("only records that were never committed were cut off", innocent=True),)
_NOT_LOADED_BECAUSE = (
    Explanation("one partition has two directories: a log directory failed while a replica was moved to it"),
    Explanation(
        "the log holds what this release refuses to load, or is damaged: kaudit scan of its directory shows where"
    ),
)
_DAMAGED = (Severity.WARNING, "lost what followed damaged bytes, when the broker recovered it")
_ROUTINE = (Severity.NOTE, "cut their logs off where they differed from their leaders'")


@log_check(
    "KA815",
    severity=Severity.ERROR,
    severity_note="warning when no committed record need be lost, note for followers that only truncate after a new leader's election",
    summary="a replica truncated its log, cannot follow its leader, or is offline because its log directory failed",
    caused_by=(UNCLEAN_STOP, MOVED, OUT_OF_SYNC),
)
def replica_truncated(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report replicas that lost more than uncommitted records by partition, all others of a log directory once; and directories that failed."""
    for incident in with_consequence(evidence, Consequence.DIRECTORY_FAILED):
        yield logged_finding(replica_truncated, context, incident, _directory_failed(incident))
    twice = {(copy.topic, copy.partition) for found in evidence.of(HeldTwice) for copy in found.copies}
    for incident in with_consequence(evidence, Consequence.TRUNCATED):
        worst = max(incident.events, key=lambda event: _cut(event)[0].rank)
        severity, how = _cut(worst)
        if worst.pattern == _HELD_TWICE and (incident.topic, incident.partition) in twice:
            continue  # KA605 shows both directories
        whole = severity is Severity.NOTE or all(event.pattern in _NOTHING_LOST for event in incident.events)
        if whole and incident.partition_read:
            continue
        is_unloaded = any(event.pattern in _NOT_LOADED for event in incident.events)
        replicas = "replicas" if severity is Severity.NOTE else "a replica"
        replicas += f" of{where(incident).removeprefix(' in')}" if incident.topic is not None else ""
        yield logged_finding(
            replica_truncated,
            context,
            incident,
            Account(
                message=f"{replicas} {how}",
                severity=severity,
                rule=_RULES.get(worst.pattern) or (_RECOVERING if _cut(worst) is _DAMAGED else _FOLLOWING),
                explanations=_NOT_LOADED_BECAUSE
                if is_unloaded
                else _CUT_BECAUSE
                if severity is not Severity.NOTE
                else _CUT_RIGHTLY,
            ),
        )


_OFFLINE = re.compile(r"\b(?:Logs|stopped fetcher) for partitions ([\w.-]+-\d+(?:,[\w.-]+-\d+)*) ")
_MOST_NAMED = 3
_STOPPED = re.compile(r"Shutdown broker because (all|the metadata) log dir")


def _directory_failed(incident: LoggedIncident) -> Account:
    named = (
        name for event in incident.events if (found := _OFFLINE.search(event.text)) for name in found[1].split(",")
    )
    partitions = list(dict.fromkeys(filter(None, named)))
    more = partitions[_MOST_NAMED:]
    ids = {event.broker_id for event in incident.events} - {None}
    directory = f"log directory {incident.subject}"
    message = f"{directory} of {f'broker {ids.pop()}' if len(ids) == 1 else 'a broker'} failed"
    if partitions:
        offline = listed([*partitions[:_MOST_NAMED], *([f"{len(more):,} more"] if more else [])])
        message += f": {offline} went offline there"
    if stopped := next(filter(None, (_STOPPED.search(event.text) for event in incident.events)), None):
        message += (
            f", and the broker stopped: {'it has no other' if stopped[1] == 'all' else 'the metadata lies there'}"
        )
    is_over = incident.outcome is Outcome.MENDED
    target = directory if incident.replica is None else f"replica {incident.replica}"
    reason = "a broker that starts with less in it may become leader, and followers cut off what it lacks"
    return Account(
        message=message + ("; the broker started again afterwards" if is_over else ""),
        severity=Severity.WARNING if is_over else Severity.ERROR,
        rule="a broker takes a log directory offline at the first error of its disk, and stops when it has no other (KIP-112)",
        explanations=[
            Explanation(
                "the disk is full, failed or was unmounted, or the broker's user may not write there: the lines before the first of "
                "these say which error it was"
            ),
            Explanation("another program, or an operator, removed files or the directory while the broker ran"),
        ],
        impact=Impact() if is_over else Impact(cautions=[Caution(Act.RESTART, target, reason)]),
    )


def _cut(event: LogEvent) -> tuple[Severity, str]:
    return _CUTS.get(event.pattern) or (_DAMAGED if event.event is LogEventKind.CORRUPTION else _ROUTINE)


@log_check(
    "KA816",
    severity=Severity.WARNING,
    summary="an unclean election: the new leader may lack acknowledged records",
    caused_by=(OUT_OF_SYNC, UNCLEAN_STOP),
)
def unclean_election(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition once."""
    for incident in with_consequence(evidence, Consequence.UNCLEAN):
        leaders = sorted({event.leader for event in incident.events if event.leader is not None})
        to = f": broker {leaders[0]} became the leader" if len(leaders) == 1 else ""
        yield logged_finding(
            unclean_election,
            context,
            incident,
            Account(
                message=f"a leader that was not in sync was elected{where(incident)}{to}: records that only the others had are lost, "
                "acknowledged ones too",
                severity=Severity.WARNING,
                rule="with unclean.leader.election.enable a replica outside of the ISR may become the leader; when the others come "
                "back they cut off what it lacks",
                explanations=[
                    Explanation("all replicas in sync were lost at once, and the topic allows unclean elections"),
                    Explanation("an operator asked for it: kafka-leader-election --election-type unclean"),
                ],
            ),
        )
