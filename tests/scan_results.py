"""Results as an engine would return them, built by hand: what renderers and commands are tested with."""

from msgspec.structs import replace

from kaudit.checks.incident_groups import with_incidents
from kaudit.model.coordinator import ExpiredTransactionalId
from kaudit.model.damage import MissingCause
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducerPartition, ProducersResult, ProducerState
from kaudit.model.result import (
    BrokerVersions,
    NotAudited,
    PartitionSummary,
    ScanResult,
    Summary,
    TimelineResult,
)
from kaudit.model.severity import Confidence, Severity
from kaudit.model.timeline import FindingEntry, MissingEntry
from kaudit.results.selection import count, count_statuses
from tests import timelines
from tests.timelines import Timeline, histories

MORNING = 1_700_000_000_000  # 2023-11-14T22:13:20Z
HOSTILE = "pay\x1b[31m[red]boom[/red]\r\n\u202egnp.exe</script>\x00\x9b2J"


def batch(offset, last_offset, seconds, base_sequence, last_sequence, **more):
    return {
        "offset": offset,
        "last_offset": last_offset,
        "timestamp": MORNING + round(seconds * 1000),
        "producer_id": 1000,
        "producer_epoch": 0,
        "base_sequence": base_sequence,
        "last_sequence": last_sequence,
        "is_transactional": False,
        "crc": 0xC0FFEE00 + base_sequence,
        "position": offset * 83,
        **more,
    }


def old_duplicate(**changes):
    if isinstance(evidence := changes.get("evidence"), dict):
        changes["evidence"] = StoredEvidence(evidence)
    finding = Finding(
        code="KA102",
        name="old-duplicate",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message="sequences 57..61 of producer 1000 epoch 0 are in the log again, 9 batches after their first time",
        topic="orders",
        partition=3,
        replica="1",
        log_dir="/data",
        file="orders-3/00000000000000000000.log",
        segment="orders-3/00000000000000000000.log",
        position=42496,
        offset=512,
        last_offset=516,
        producer_id=1000,
        producer_epoch=0,
        evidence=StoredEvidence(
            {
                "rule": "the next sequence after 106 is 107; a leader answers a re-send older than its window of 5 batches "
                "with OUT_OF_ORDER_SEQUENCE_NUMBER and appends nothing",
                "previous": batch(507, 511, 0.123, 102, 106),
                "offending": batch(512, 516, 0.2, 57, 61),
                "next": batch(517, 517, 61.5, 107, 107),
                "first_offset_of_original": 462,
            }
        ),
        explanations=(
            Explanation(
                "the leader had lost its producer state when the client re-sent",
                ("the leader epoch rises from 4 to 5 at offset 512", "both copies have the CRC c0ffee39"),
                ("there is no snapshot of that time to compare with",),
            ),
            Explanation("someone copied segments into the directory"),
            Explanation("the application meant to send it twice", (), ("sequences repeat too",), innocent=True),
        ),
        impact=Impact(records_duplicated=5, records_duplicated_at_most=5),
        next=("kaudit timeline --producer-id 1000 --topic orders --partition 3 /data",),
        absent={"suppression": "not suppressed"},
    )
    return replace(finding, **changes)


def unknown_start():
    return Finding(
        code="KA106",
        name="unknown-start",
        severity=Severity.WARNING,
        confidence=Confidence.POSSIBLE,
        message="producer 2001 epoch 4 starts at sequence 17",
        topic="orders",
        partition=3,
        replica="1",
        file="orders-3/00000000000000000000.log",
        segment="orders-3/00000000000000000000.log",
        position=0,
        offset=0,
        last_offset=0,
        producer_id=2001,
        producer_epoch=4,
        evidence=StoredEvidence(
            {
                "rule": "a producer the broker does not know must begin at sequence 0",
                "offending": batch(0, 0, -90000, 17, 17, producer_id=2001, producer_epoch=4, is_transactional=True),
                "next": batch(2, 2, 0, 18, 18, producer_id=2001, producer_epoch=4, is_transactional=True),
            }
        ),
        explanations=(Explanation("retention removed the batches before offset 0", innocent=True),),
        next=("kaudit scan --log-start-offset N PATH",),
    )


def crc_mismatch():
    return Finding(
        code="KA001",
        name="crc-mismatch",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message="the batch at offset 900 has CRC 00000001, its bytes give 2a2a2a2a",
        topic="orders",
        partition=3,
        replica="1",
        file="orders-3/00000000000000000000.log",
        segment="orders-3/00000000000000000000.log",
        position=99999,
        offset=900,
        evidence=StoredEvidence({"rule": "a broker refuses a batch whose CRC-32C does not match"}),
        impact=Impact(records_lost_at_least=0, records_lost_at_most=5, bytes_truncated=1_134_568),
        next=("kaudit inspect orders-3/00000000000000000000.log",),
        absent={"producer_id": "unreadable: the CRC fails", "producer_epoch": "unreadable: the CRC fails"},
    )


def fencing():
    return Finding(
        code="KA203",
        name="fencing",
        severity=Severity.NOTE,
        confidence=Confidence.CERTAIN,
        message="producer 1000 went from epoch 0 to 1 once (restart)",
        topic="orders",
        partition=3,
        replica="1",
        offset=1000,
        producer_id=1000,
        producer_epoch=1,
        evidence=StoredEvidence(
            {
                "count": 1,
                "previous": {
                    "offset": 998,
                    "producer_epoch": 0,
                    "coordinator_epoch": 2,
                    "type": "ABORT",
                    "timestamp": -1,
                },
                "offending": batch(1000, 1004, 100, 0, 4, producer_epoch=1, is_transactional=True),
            }
        ),
    )


def scan_result(*findings, **changes):
    kept = sorted(findings, key=Finding.sort_key)
    totals = {"segments": 2, "bytes": 1_234_567, "batches": 345, "records": 1017, "producers": 2, "runs": 5}
    result = ScanResult(
        inputs=["/data"],
        broker_version=BrokerVersions("auto", None, "2.5", "4.2.0", ["meta.properties has version 1"]),
        partitions=[PartitionSummary("orders", 3, "1", 0, 1017, 1017, False, **totals)],
        findings=kept,
        not_audited=[NotAudited("orders-3", "no log start offset is known: offsets before the first are not missed")],
        summary=Summary(partitions=1, **totals, findings=count(kept), statuses=count_statuses(kept)),
    )
    return replace(result, **changes)


def many():
    return scan_result(old_duplicate(), unknown_start(), crc_mismatch(), fencing())


def retry(topic, offset, code="KA702", **changes):
    """A batch without a producer id that a retry has put into the log again, or out of order."""
    repeated = code == "KA702"
    finding = Finding(
        code=code,
        name="retry-duplicate" if repeated else "reordered-retry",
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
        message=f"the batch at offset {offset} is a repeat" if repeated else f"the batch at offset {offset} comes late",
        topic=topic,
        partition=0,
        replica="1",
        file=f"{topic}-0/00000000000000000000.log",
        segment="00000000000000000000.log",
        position=offset * 83,
        offset=offset,
        last_offset=offset + 3,
        evidence=StoredEvidence(
            {
                "rule": "nothing is appended twice",
                "offending": {"offset": offset, "timestamp": MORNING + offset * 1000},
            }
        ),
        explanations=(Explanation("the answer to the first request was lost"),),
        impact=Impact(records_duplicated=4, records_duplicated_at_most=4) if repeated else Impact(),
        next=(f"kaudit inspect {topic}-0 --records --around {offset}",),
    )
    return replace(finding, **changes)


def in_incidents():
    """Two topics with retries, a zombie in two partitions, and one duplicate that two replicas have."""
    zombies = [
        old_duplicate(code="KA201", name="stale-epoch", topic="payments", partition=number, impact=Impact())
        for number in (0, 1)
    ]
    retries = [retry("clicks", offset) for offset in (20, 8)] + [
        retry("clicks", offset, "KA703") for offset in (24, 30)
    ]
    retries += [retry("views", offset) for offset in range(0, 50, 10)]
    copies = [old_duplicate(replica=name) for name in ("1", "2")]
    result = scan_result(*zombies, *retries, *copies)
    return replace(result, findings=with_incidents(result.findings))


def incomplete(*findings):
    return scan_result(
        *findings,
        incomplete=True,
        not_audited=[
            NotAudited("/data/orders-4/00000000000000000000.log", "Permission denied", unreadable=True),
            *(NotAudited(f"/data/old-{number}", "magic 1: no producer fields") for number in range(5)),
        ],
    )


def hostile():
    finding = old_duplicate(
        topic=HOSTILE,
        message=f"producer of {HOSTILE}",
        file=f"{HOSTILE}-3/0.log",
        log_dir=HOSTILE,
        evidence=StoredEvidence(
            {"rule": HOSTILE, "offending": {**batch(1, 1, 0, 1, 1), "type": HOSTILE}, HOSTILE: HOSTILE}
        ),
        explanations=(
            Explanation(HOSTILE, (HOSTILE,), (HOSTILE,)),
            Explanation(HOSTILE, (HOSTILE,), (HOSTILE,), innocent=True),
        ),
        next=(f"kaudit timeline {HOSTILE}",),
    )
    long = old_duplicate(topic="t" * 249, file=f"{'t' * 249}-3/0.log")
    return scan_result(
        finding,
        long,
        inputs=[HOSTILE],
        not_audited=[NotAudited(HOSTILE, HOSTILE), NotAudited(HOSTILE, HOSTILE, unreadable=True)],
        broker_version=BrokerVersions("auto", None, None, None, [HOSTILE]),
    )


def run(first, last, first_sequence, last_sequence, seconds, **more):
    fields = {
        "first_offset": first,
        "last_offset": last,
        "first_sequence": first_sequence,
        "last_sequence": last_sequence,
        "producer_epoch": 0,
        "batches": last - first + 1,
        "records": last - first + 1,
        "bytes": 100 * (last - first + 1),
        "min_timestamp": MORNING + seconds * 1000,
        "max_timestamp": MORNING + seconds * 1000 + 900,
        "first_leader_epoch": 4,
        "last_leader_epoch": 4,
        **more,
    }
    return timelines.run(**fields)


def marker(offset, kind, seconds, **more):
    return timelines.marker(offset, kind, **{"timestamp": MORNING + seconds * 1000, "coordinator_epoch": 3, **more})


def finding_entry(finding):
    return FindingEntry(finding.offset, finding.fingerprint, finding.code, finding.severity.value, finding.message)


def timeline_result(findings=None):
    findings = [old_duplicate(), crc_mismatch(), fencing()] if findings is None else findings
    scan = scan_result(*findings)
    of_producer = [finding for finding in scan.findings if finding.producer_id == 1000]
    plain = Timeline(
        "orders",
        3,
        "1",
        1000,
        None,
        [
            run(405, 511, 0, 106, 0),
            *map(finding_entry, of_producer),
            run(512, 516, 57, 61, 1, first_leader_epoch=4, last_leader_epoch=5),
            MissingEntry(517, 520, 4, MissingCause.COMPACTION),
            run(521, 1016, 107, 602, 90_000),
        ],
        (0, 602, 1016, MORNING + 90_000_900, -1, None),
    )
    transactional = Timeline(
        "orders",
        3,
        "1",
        2000,
        "payments-1",
        [
            run(10, 19, 0, 9, 0, transaction=(10, "committed")),
            marker(20, "COMMIT", 1),
            run(21, 22, 10, 11, 2, transaction=(21, "aborted")),
            marker(23, "ABORT", 3, epoch=1),
            run(
                30,
                31,
                0,
                1,
                4,
                producer_epoch=1,
                transaction=(30, "open"),
            ),
        ],
        (1, 1, 31, MORNING + 4000, 3, 30),
    )
    return TimelineResult(scan, [histories(plain, transactional)])


def place(topic, partition, first, last, **changes):
    known = ProducerPartition(
        topic=topic,
        partition=partition,
        replica="1",
        first_offset=first,
        last_offset=last,
        first_timestamp=MORNING,
        last_timestamp=MORNING + 90_000_900,
        first_epoch=0,
        last_epoch=0,
        epochs=1,
        batches=20,
        records=100,
        state=ProducerState(0, 99, last, MORNING + 90_000_900, -1, -1),
    )
    return replace(known, **changes)


BLOCKS = [
    GrantedBlock(0, 999, 1, 1, MORNING - 3_600_000, "zk/version-2/log.1"),
    GrantedBlock(1000, 1999, 2, 2, MORNING - 1_800_000, "zk/version-2/log.1"),
    GrantedBlock(1000, 1999, 3, 3, None, "blocks.txt:7"),
]


EXPIRED = [
    ExpiredTransactionalId("payments-1", 900_001, 4, MORNING - 700_000_000, MORNING - 90_000_000, 17, 4711, 900_405),
    ExpiredTransactionalId("nightly-report", None, None, None, MORNING - 93_600_000, 3, 12),
]


def producer(producer_id, *partitions, **changes):
    partitions = partitions or (place("orders", 3, 0, 99),)
    known = Producer(
        producer_id=producer_id,
        transactional_id=None,
        pattern="lasting",
        grants=[block for block in BLOCKS if block.start <= producer_id <= block.end],
        partitions=partitions,
        first_timestamp=MORNING,
        last_timestamp=MORNING + 90_000_900,
        batches=20 * len(partitions),
        records=100 * len(partitions),
        epochs=1,
    )
    return replace(known, **changes)


def never_allocated():
    return old_duplicate(
        code="KA401",
        name="unallocated-producer-id",
        message="producer id 900001 was never allocated: it lies beyond the last block granted",
        producer_id=900_001,
        evidence=StoredEvidence({"rule": "every producer id comes from a block of 1000"}),
    )


def producers_result(**changes):
    open_state = ProducerState(4, -1, -1, MORNING, 7, 1017)
    scan = scan_result(old_duplicate(), never_allocated())
    listed = [
        producer(7, batches=1, records=1, pattern="one batch and gone"),
        producer(1000, place("orders", 3, 405, 1016), place("orders", 4, 0, 9), findings=("KA102", "KA102")),
        producer(
            900_001,
            place("payments", 0, 5, 1020, first_epoch=0, last_epoch=4, epochs=5, state=open_state),
            transactional_id="payments-1",
            pattern="payments-#",
            epochs=5,
            findings=("KA401",),
        ),
    ]
    result = ProducersResult(
        scan,
        listed,
        found=12_345,
        listed=3,
        blocks=BLOCKS,
        summary={
            **scan.summary.to_dict(),
            "ids": {
                "found": 12_345,
                "chosen": 3,
                "transactional": 1,
                "batches": 61,
                "records": 301,
                "first_timestamp": MORNING,
                "last_timestamp": MORNING + 90_000_900,
                "per_hour": 0.12,
                "busiest_hour": {"start_timestamp": MORNING - MORNING % 3_600_000, "ids": 3},
                "batches_per_id": {"least": 1, "median": 20.0, "mean": 20.33, "most": 40},
                "alive": {"1d": 3, "7d": 3},
                "histograms": {
                    "batches": [
                        {"from": 1, "to": 1, "ids": 1},
                        {"from": 2, "to": 9, "ids": 0},
                        {"from": 10, "to": 99, "ids": 2},
                    ],
                    "epochs": [{"from": 1, "to": 1, "ids": 2}, {"from": 2, "to": 9, "ids": 1}],
                    "lifetime_ms": [{"from": 604_800_000, "to": None, "ids": 3}],
                    "idle_ms": [
                        {"from": 0, "to": 59_999, "ids": 2},
                        {"from": 60_000, "to": 3_599_999, "ids": 0},
                        {"from": 3_600_000, "to": 86_399_999, "ids": 1},
                    ],
                    "first_seen": [
                        {"start_timestamp": MORNING, "ids": 2},
                        {"start_timestamp": MORNING + 3_600_000, "ids": 1},
                    ],
                },
            },
            "blocks": [
                {
                    "source": "zk/version-2/latest_producer_id_block, blocks.txt",
                    "granted": 3,
                    "complete": False,
                    "next": {"start": 2000, "end": 2999},
                    "ids_left": 2**63 - 2000,
                    "per_day": 48.0,
                    "days_left": 1.9e14,
                    "first_timestamp": MORNING - 3_600_000,
                    "last_timestamp": MORNING - 1_800_000,
                }
            ],
            "creators": [
                {
                    "pattern": "payments-#",
                    "transactional_id": True,
                    "topics": ["payments"],
                    "topic_count": 1,
                    "producers": 2,
                    "batches_per_producer": 20.0,
                },
                {
                    "pattern": "one batch and gone",
                    "transactional_id": False,
                    "topics": ["a", "b", "c", "d", "e"],
                    "topic_count": 7,
                    "producers": 1,
                    "batches_per_producer": 1.0,
                },
            ],
            "expired_transactional_ids": 12_002,
        },
        expired=EXPIRED,
    )
    return replace(result, **changes)


def hostile_producers():
    bad = place(HOSTILE, 3, 0, 9, replica=HOSTILE)
    listed = [producer(5, bad, transactional_id=HOSTILE, pattern=HOSTILE), producer(6, place("t" * 249, 0, 0, 9))]
    figures = producers_result().summary
    creator = {**figures["creators"][0], "pattern": HOSTILE, "topics": [HOSTILE]}
    summary = {**figures, "blocks": [{**figures["blocks"][0], "source": HOSTILE}], "creators": [creator]}
    expired = [replace(EXPIRED[0], transactional_id=HOSTILE)]
    return producers_result(scan=hostile(), producers=listed, listed=2, summary=summary, detailed=True, expired=expired)
