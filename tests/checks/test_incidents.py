"""Which findings of a scan have one cause: against what is known of recordings, and the rules one by one."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import kaudit
from kaudit.checks.incident_groups import parts_of, rule_of, with_incidents
from kaudit.checks.incident_rules import REPLICAS, REQUEST_TIMEOUT_MS, RULES, TRANSACTION_TIMEOUT_MS
from kaudit.checks.registry import CHECKS
from kaudit.engines import replicas
from kaudit.engines.progress import SilentProgress
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.options import ScanOptions

SAMPLES = Path(__file__).parents[2] / "samples"
AT = 1_700_000_000_000


def finding(code, **fields):
    known = {"topic": "t", "partition": 0, **fields, "evidence": StoredEvidence(fields.get("evidence", {}))}
    return Finding(code, code.lower(), Severity.ERROR, Confidence.CERTAIN, "", **known)


def groups(*findings):
    """The positions of the findings of each incident."""
    together: dict[str, list[int]] = {}
    for index, found in enumerate(with_incidents(findings)):
        if found.incident is not None:
            together.setdefault(found.incident, []).append(index)
    return sorted(together.values())


def cause_of(findings):
    rule = rule_of(findings)
    assert rule is not None
    return rule.cause


def incidents(findings):
    together: dict[str, list[Finding]] = {}
    for found in findings:
        if found.incident is not None:
            together.setdefault(found.incident, []).append(found)
    return together


def test_a_transaction_in_two_partitions_is_one_incident(evidence):
    """truth: t-dead was killed with 6 records in tx-open-0 and 3 in tx-a-1; t-live holds another transaction open."""
    result = kaudit.scan(evidence.capture("txn-mix-2.8.2") / "logdirs-live")
    opened = [found for found in result.findings if found.code == "KA302"]
    assert len(opened) == 3
    (dead,) = incidents(opened).values()
    assert [(found.topic, found.partition) for found in dead] == [("tx-a", 1), ("tx-open", 0)]
    assert cause_of(dead) == "transaction"


def test_restarts_of_an_application_one_after_the_other_are_one_incident(evidence):
    """truth: seven sessions, of which each but the first sends again what the one before it had sent, on three partitions."""
    capture = evidence.capture("cross-session")
    result = kaudit.scan(capture / "logdirs", select=["KA701", "KA208"], depth="records")
    (loop,) = incidents(result.findings).values()
    places = {("resend", 0), ("resend", 1), ("resend-samets", 0)}
    assert {(found.topic, found.partition) for found in loop if found.code == "KA208"} == places
    assert {(found.topic, found.partition) for found in loop if found.code == "KA701"} == places
    assert len({found.producer_id for found in loop if found.code == "KA701"}) == 6


def test_retries_of_one_topic_are_one_incident(evidence):
    capture = evidence.capture("retry-dup")
    truth = json.loads((capture / "truth.json").read_text())
    result = kaudit.scan(capture / "logdirs", select=["KA702", "KA703"])
    by_topic: dict[str | None, set[str | None]] = {}
    for found in result.findings:
        by_topic.setdefault(found.topic, set()).add(found.incident)
    assert set(by_topic) <= set(truth)
    assert all(len(ids) == 1 for ids in by_topic.values())
    assert len(set.union(*by_topic.values())) == len(by_topic)


def test_a_late_write_and_the_transaction_it_opened_are_one_incident():
    result = kaudit.scan(SAMPLES / "hanging-transaction")
    (late,) = incidents(result.findings).values()
    assert Counter(found.code for found in late) == {"KA301": 1, "KA304": 1}
    assert {found.topic for found in late} == {"s29d-late-write-after-abort"}


@pytest.mark.parametrize("sample", ["side-files", "duplicates", "producer-ids", "malformed", "coordinator"])
def test_faults_of_different_logs_stay_apart(sample):
    """These samples hold one fault a log, each made for itself; what the logs have in common are notes."""
    faults = [found for found in kaudit.scan(SAMPLES / sample).findings if found.severity is not Severity.NOTE]
    assert faults
    assert not incidents(faults)


def test_damage_of_copies_at_the_same_offsets_is_one_incident_with_what_a_copy_lacks():
    faults = [found for found in kaudit.scan(SAMPLES / "damaged").findings if found.severity is not Severity.NOTE]
    (together,) = incidents(faults).values()
    lacks = [found for found in together if found.code == "KA601"]
    assert [(found.replica, found.offset) for found in lacks] == [("batch-removed", 990), ("empty-log", 662)]
    for found in lacks:
        own = [other.code for other in together if other.replica == found.replica and other.offset == found.offset]
        assert len(own) == 2
    assert {found.partition for found in together} == {0}


def test_damage_that_touches_is_one_incident_in_each_log():
    crc = finding("KA001", replica="b1", offset=10, last_offset=19)
    gap = finding("KA007", replica="b1", offset=20, last_offset=24)
    lacking = finding("KA104", replica="b1", offset=20, last_offset=24, producer_id=7)
    elsewhere = finding("KA007", replica="b2", offset=22, last_offset=23)
    later = finding("KA001", replica="b1", offset=26, last_offset=29)
    assert groups(crc, gap, lacking, elsewhere, later) == [[0, 1, 2]]
    assert cause_of([crc, gap]) == "damage"


def test_an_index_goes_with_the_only_damage_of_its_segment():
    torn = finding("KA002", segment="0.log", offset=10, last_offset=19)
    index = finding("KA503", segment="0.log", anchor="0.index")
    second = finding("KA001", segment="0.log", offset=40, last_offset=49)
    assert groups(torn, index) == [[0, 1]]
    assert groups(torn, index, second) == []


def test_what_replicas_say_alike_is_one_incident():
    copies = [finding("KA101", replica=name, offset=5, producer_id=7, producer_epoch=0) for name in ("b2", "b1")]
    other = finding("KA101", replica="b1", offset=6, producer_id=7, producer_epoch=0)
    assert groups(*copies, other) == [[0, 1]]
    assert {found.incident for found in with_incidents(copies)} == {copies[0].fingerprint}
    assert cause_of(copies) == "replicas"


def bump(partition, producer_id, at, *, epochs=(4, 5), producer_epoch=1):
    return finding(
        "KA206",
        partition=partition,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        offset=100 + producer_id,
        evidence={"previous": {"leader_epoch": epochs[0]}, "offending": {"leader_epoch": epochs[1], "timestamp": at}},
    )


def test_partitions_and_producers_that_change_leaders_at_once_are_one_incident():
    first, second = bump(0, 1, AT), bump(1, 2, AT + REQUEST_TIMEOUT_MS, epochs=(8, 9))
    later = bump(0, 3, AT + REQUEST_TIMEOUT_MS + 1, epochs=(5, 6))
    same_leader = bump(2, 4, AT, epochs=(5, 5))
    assert groups(first, second, later, same_leader) == [[0, 1]]
    # each stands alone in its partition: the incident is named after the first of them all the same
    for ordered in ((first, second), (second, first)):
        assert {found.incident for found in with_incidents(ordered)} == {first.fingerprint}


def test_what_an_unclean_election_cut_off_in_two_partitions_is_one_incident(evidence):
    """truth: the leader of both *-unclean topics was killed when it alone was in sync; acks1 stayed leaderless."""
    moment = evidence.capture("failover-acks1") / "B2-unclean-leader-old-one-down"
    directories = [str(moment / name) for name in ("b1", "b2", "b3")]
    compared = replicas.diff(ScanOptions(directories), replicas.name_replicas(directories, {}), SilentProgress())
    diverged = [found for found in compared.scan.findings if found.code == "KA601"]
    assert [found.topic for found in diverged] == ["acks1-unclean", "all-idem-unclean"]
    assert incidents(compared.scan.findings)[str(diverged[0].incident)] == diverged
    assert cause_of(diverged) == "leader-change"


def test_a_raised_epoch_is_one_event_in_all_partitions_of_its_producer():
    fenced = finding("KA203", topic="u", producer_id=1, producer_epoch=1, offset=3)
    assert groups(bump(0, 1, AT), fenced, bump(1, 1, AT + 10**9, producer_epoch=2)) == [[0, 1]]


def test_a_zombie_is_one_incident_and_its_successor_none_of_it():
    written = [finding("KA201", partition=part, producer_id=7, producer_epoch=1, offset=9) for part in (0, 1)]
    assert groups(*written, finding("KA201", producer_id=7, producer_epoch=2, offset=20)) == [[0, 1]]


def hanging(partition, at, producer_id=7):
    return finding(
        "KA301",
        partition=partition,
        producer_id=producer_id,
        producer_epoch=0,
        offset=3,
        evidence={"first_timestamp": at},
    )


def test_transactions_of_other_producers_and_times_stay_apart():
    together = [hanging(0, AT), hanging(1, AT + TRANSACTION_TIMEOUT_MS)]
    apart = [hanging(2, AT + TRANSACTION_TIMEOUT_MS + 1), hanging(3, AT, producer_id=8), hanging(4, -1), hanging(5, -1)]
    assert groups(*together, *apart) == [[0, 1]]


def test_ids_of_a_block_that_was_granted_twice_are_one_incident():
    twice = finding("KA402", topic=None, partition=None, anchor="x", evidence={"seen_ids": [1001, 1002]})
    shared = [finding("KA404", producer_id=number, producer_epoch=0, offset=number) for number in (1001, 1002, 1003)]
    assert groups(*shared, twice) == [[0, 1, 3]]


def test_checks_take_part_in_every_rule_but_that_of_copies():
    assert [rule for rule in RULES if not parts_of(rule, CHECKS)] == [REPLICAS] == [RULES[-1]]
    assert {code for rule in RULES for code in parts_of(rule, CHECKS)} <= set(CHECKS)
    assert len({rule.cause for rule in RULES}) == len(RULES)


CODES = sorted({code for rule in RULES for code in parts_of(rule, CHECKS)})
few = st.integers(0, 3)
batches = st.fixed_dictionaries(
    {"leader_epoch": few, "timestamp": st.sampled_from([-1, AT, AT + 40_000, AT + 80_000, AT + 10**9])}
)
ANY = st.builds(
    finding,
    st.sampled_from(CODES),
    topic=st.sampled_from(["t", "u", None]),
    partition=few,
    replica=st.sampled_from(["b1", "b2", None]),
    segment=st.sampled_from(["0.log", None]),
    offset=st.none() | st.integers(0, 30),
    last_offset=st.none() | st.integers(0, 40),
    producer_id=st.none() | few,
    producer_epoch=few,
    evidence=st.fixed_dictionaries(
        {"previous": batches, "offending": batches},
        optional={
            "copies": st.dictionaries(st.sampled_from(["b1", "b2"]), batches),
            "seen_ids": st.lists(few, max_size=2),
        },
    ).map(StoredEvidence),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
KEYS = (
    "previous", "offending", "copies", "remembered", "seen_ids", "class", "block_below", "next_block", "leader_epoch",
    "first_timestamp", "decided_at_offset", "transactional_id",
)  # fmt: skip


@settings(deadline=None)
@given(st.data())
def test_the_order_of_findings_does_not_matter(data):
    findings = data.draw(st.lists(ANY, max_size=30))
    order = data.draw(st.permutations(range(len(findings))))
    expected = with_incidents(findings)
    shuffled = with_incidents([findings[index] for index in order])
    assert [shuffled[place].incident for place in map(order.index, range(len(order)))] == [
        found.incident for found in expected
    ]
    assert [replace(found, incident=None) for found in expected] == findings
    for members in incidents(expected).values():
        assert len(members) > 1


@settings(deadline=None)
@given(
    st.sampled_from(CODES), st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), min_size=2, max_size=4)
)
def test_evidence_may_be_anything(code, evidences):
    """A saved scan was perhaps edited, or written by another release."""
    findings = [finding(code, producer_id=1, offset=number, evidence=held) for number, held in enumerate(evidences)]
    assert len(with_incidents(findings)) == len(findings)
    rule_of(findings)


def test_they_are_found_fast_in_a_ruined_log():
    """Quadratic work would take minutes."""
    ruined = [finding("KA001", offset=10 * index, last_offset=10 * index + 4) for index in range(20_000)]
    ruined += [finding("KA104", offset=10 * index + 2, producer_id=index, producer_epoch=0) for index in range(20_000)]
    assert len(incidents(with_incidents(ruined))) == 20_000
