"""The ledgers of all topics as a result: findings, totals, and what was not compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.audits.records.reading import ReadPartition
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.incident_groups import with_incidents
from kaudit.checks.registry import run_checks
from kaudit.checks.texts import counted
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.ledger import LedgerResult, TopicLedger
from kaudit.model.replicas import Replica
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult
from kaudit.scanning.summaries import total
from kaudit.source.layout import Layout

_DAMAGED = "has damage ('kaudit scan' describes it): records in it count as not there"


def ledger_result(
    sides: tuple[Replica, Replica],
    layouts: Sequence[Layout],
    read: tuple[Sequence[ReadPartition], Sequence[ReadPartition]],
    ledgers: Sequence[TopicLedger],
    alone: Mapping[str, str],
) -> LedgerResult:
    """Return the result; `alone` says by topic of the source why it was not compared."""
    versions, _ = infer_range(VersionEvidence())
    common = Context(versions=versions, coordinator=CoordinatorView(), clock=given_clock(0))
    own = {side.path: replace(common, replica=side.name, log_dir=side.path, directory=side.path) for side in sides}
    context = replace(common, replicas=own)
    found = sorted(run_checks(context, Evidence(ledgers)), key=Finding.sort_key)
    findings = with_incidents(found)
    partitions = [each.summary for side in read for each in side]
    not_audited = [*not_read(layouts, read), *_not_compared(ledgers, alone)]
    scan = ScanResult(
        inputs=[side.path for side in sides],
        broker_version=BrokerVersions("auto", None, None, None, ("records are the same under every version",)),
        partitions=partitions,
        findings=findings,
        not_audited=not_audited,
        summary=total(partitions, findings),
        incomplete=any(each.unreadable for each in not_audited),
    )
    return LedgerResult(scan, sides, ledgers)


def not_read(layouts: Sequence[Layout], read: Iterable[Sequence[ReadPartition]]) -> list[NotAudited]:
    """Return what could not be read, or was passed over."""
    parts = [each for side in read for each in side]
    unreadable = [
        *(each for layout in layouts for each in layout.unreadable),
        *(each for part in parts for each in part.unreadable),
    ]
    skipped = [
        *(each for layout in layouts for each in layout.skipped),
        *(each for part in parts for each in part.removed),
    ]
    damaged = [
        NotAudited(f"{part.summary.topic}-{part.summary.partition}", _DAMAGED, unreadable=True)
        for part in parts
        if part.damaged
    ]
    return [
        *(NotAudited(each.path, each.reason, unreadable=True) for each in unreadable),
        *damaged,
        *(NotAudited(each.path, each.reason) for each in skipped),
    ]


def _not_compared(ledgers: Sequence[TopicLedger], alone: Mapping[str, str]) -> list[NotAudited]:
    found = [NotAudited(topic, reason) for topic, reason in alone.items()]
    for ledger in ledgers:
        for name, counts in ((ledger.source, ledger.source_counts), (ledger.target, ledger.target_counts)):
            if counts.batches_undecoded:
                found.append(
                    NotAudited(
                        name,
                        f"{counts.batches_undecoded:,} {'batch' if counts.batches_undecoded == 1 else 'batches'} cannot be decoded: the records count as not there",
                        unreadable=True,
                    )
                )
            if counts.too_far:
                found.append(NotAudited(name, f"{counted(counts.too_far, 'record')} at offsets that no log can reach"))
            if counts.compared_whole:
                found.append(
                    NotAudited(
                        name,
                        f"{counted(counts.compared_whole, 'record')} without a part of {ledger.identity}, or with one that cannot be read: compared whole",
                    )
                )
        found += _perhaps_never_copied(ledger)
        if ledger.counted_only:
            found.append(
                NotAudited(
                    ledger.source,
                    f"{ledger.counted_only:,} records on both sides are equal to so many others that they were only counted",
                )
            )
    return found


def _perhaps_never_copied(ledger: TopicLedger) -> Iterator[NotAudited]:
    """Yield how many offsets the source has removed of which a copy that is there from its first record on has none."""
    removed = sum(pair.source_begins for pair in ledger.partitions) - ledger.older
    if ledger.older and removed > 0 and not any(pair.target_begins for pair in ledger.partitions):
        yield NotAudited(
            ledger.source,
            f"of what the source removed before its log start the copy has {counted(ledger.older, 'record')}: up to {removed:,} more may "
            "have been gone before the mirror read them; its own log, or mm2-offset-syncs, shows how far it was",
        )
