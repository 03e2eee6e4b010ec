"""What each rule of incidents takes for one cause and what it keeps apart, pair by pair; and incidents as a closure of pairs."""

from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.checks.incident_groups import rule_of, subjects_of, with_incidents
from kaudit.checks.incident_rules import RULES, Near, windows
from kaudit.model.finding import Finding
from tests.checks.test_incidents import ANY, AT, cause_of, finding, groups

TOGETHER, APART = True, False


def pair(cause, *, together, first, second):
    """Two findings are one incident for this cause, or none."""
    assert groups(first, second) == ([[0, 1]] if together else [])
    if together:
        assert cause_of([first, second]) == cause
    else:
        assert rule_of([first, second]) is None


def test_the_windows_of_times_begin_at_the_first_of_them():
    moments = [Near(key, span, at) for key, span, at in (
        ("k", 10, 22), ("k", 10, 0), ("k", 10, 21), ("k", 10, 10), ("k", 10, 11), ("j", 10, 5), ("k", 5, 6), ("k", 10, 0)
    )]  # fmt: skip
    starts = {(moment.key, moment.span_ms, moment.at_ms): start for moment, start in windows(moments).items()}
    assert starts == {
        ("k", 10, 0): 0,
        ("k", 10, 10): 0,
        ("k", 10, 11): 11,
        ("k", 10, 21): 11,
        ("k", 10, 22): 22,
        ("j", 10, 5): 5,
        ("k", 5, 6): 6,
    }


def test_one_finding_has_no_cause_in_common():
    one = finding("KA101", offset=5, producer_id=7, producer_epoch=0)
    assert rule_of([one]) is None
    assert rule_of([one, one]) == RULES[-1]


# damage


@pytest.mark.parametrize(
    ("first", "last", "together"),
    [(5, 9, APART), (5, 10, TOGETHER), (12, 13, TOGETHER), (19, 25, TOGETHER), (20, 25, APART), (12, None, TOGETHER),
     (30, 12, APART)],
)  # fmt: skip
def test_sequences_go_with_damage_at_their_offsets(first, last, together):
    damage = finding("KA001", replica="b1", offset=10, last_offset=19)
    pair(
        "damage",
        together=together,
        first=damage,
        second=finding("KA104", replica="b1", offset=first, last_offset=last, producer_id=7),
    )


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (finding("KA104", replica="b2", offset=12, producer_id=7), APART),
        (finding("KA104", replica="b1", offset=None, producer_id=7), APART),
        (finding("KA104", replica="b1", offset=12, producer_id=7, partition=1), APART),
        (finding("KA104", replica="b1", offset=12, producer_id=7, topic="u"), APART),
        # what is said of all replicas goes with the damage of any
        (finding("KA601", replica="b2", offset=12, last_offset=14), TOGETHER),
        (finding("KA603", replica=None, offset=12, last_offset=14), TOGETHER),
        (finding("KA602", replica="b2", offset=20, last_offset=22), APART),
        (finding("KA503", replica="b1", segment="0.log"), TOGETHER),
        (finding("KA504", replica="b1", segment="0.log"), TOGETHER),
        (finding("KA503", replica="b2", segment="0.log"), APART),
        (finding("KA503", replica="b1", segment="9.log"), APART),
        (finding("KA503", replica="b1", segment=None), APART),
        (finding("KA503", replica="b1", segment="9.log", offset=12), APART),
        # damage of which nobody knows the offsets
        (finding("KA003", replica="b1", segment="0.log", offset=None, anchor="byte 70"), APART),
    ],
)
def test_what_goes_with_damage(other, together):
    damage = finding("KA001", replica="b1", segment="0.log", offset=10, last_offset=19)
    pair("damage", together=together, first=damage, second=other)


@pytest.mark.parametrize(
    "other",
    [
        finding("KA003", replica="b1", segment="1.log", offset=None, anchor="byte 90"),
        finding("KA007", replica="b1", segment="1.log", offset=0),
        finding("KA601", replica="b1", offset=None),
        finding("KA104", replica="b1", offset=None, producer_id=7),
    ],
)
def test_damage_of_which_nobody_knows_the_offsets_touches_nothing(other):
    unplaced = finding("KA003", replica="b1", segment="0.log", offset=None, anchor="byte 70")
    pair("", together=APART, first=unplaced, second=other)


def test_replicas_that_differ_nobody_knows_where_differ_in_two_places():
    first, second = (finding(code, replica="b1", offset=None) for code in ("KA601", "KA603"))
    pair("", together=APART, first=first, second=second)


def test_damage_that_touches_the_longest_before_it_is_the_same():
    outer, inner = finding("KA006", offset=10, last_offset=40), finding("KA001", offset=15, last_offset=20)
    assert groups(outer, inner, finding("KA007", offset=41, last_offset=45)) == [[0, 1, 2]]
    assert groups(outer, inner, finding("KA007", offset=42, last_offset=45)) == [[0, 1]]
    assert groups(finding("KA007", offset=10), finding("KA007", offset=11), finding("KA007", offset=13)) == [[0, 1]]


def test_what_replicas_have_damaged_is_one_where_a_comparison_says_so():
    damaged = [
        finding(code, replica=name, offset=10, last_offset=19) for code, name in (("KA001", "b1"), ("KA007", "b2"))
    ]
    assert groups(*damaged) == []
    assert groups(*damaged, finding("KA601", replica="b3", offset=19, last_offset=30)) == [[0, 1, 2]]


def test_an_index_goes_with_all_findings_of_one_damage():
    torn = [finding("KA001", segment="0.log", offset=10, last_offset=19), finding("KA007", segment="1.log", offset=20)]
    assert groups(*torn, finding("KA504", segment="1.log")) == [[0, 1, 2]]
    unplaced = finding("KA007", segment=None, offset=40)
    assert groups(*torn, unplaced, finding("KA504", segment=None)) == [[0, 1]]


# replicas


@pytest.mark.parametrize(("offset", "together"), [(9, TOGETHER), (16, TOGETHER), (17, APART), (8, APART)])
def test_what_is_said_of_replicas_is_one_where_offsets_touch(offset, together):
    pair(
        "divergence",
        together=together,
        first=finding("KA601", replica="b1", offset=10, last_offset=15),
        second=finding("KA603", replica="b2", offset=offset, last_offset=max(offset, 0)),
    )


@pytest.mark.parametrize(
    ("fields", "together"),
    [
        ({"replica": "b2"}, TOGETHER),
        ({"log_dir": "/other"}, TOGETHER),
        ({}, APART),  # one file that was read twice
        ({"replica": "b2", "offset": 6}, APART),
        ({"replica": "b2", "partition": 1}, APART),
    ],
)
def test_a_finding_of_two_places_is_one_fault(fields, together):
    common = {"replica": "b1", "log_dir": "/d", "offset": 5, "producer_id": 7, "producer_epoch": 0}
    copies = [finding("KA011", **common), finding("KA011", **(common | fields))]
    assert groups(*copies) == ([[0, 1]] if together else [])


# leader changes


def moved(code="KA104", *, before=4, after=5, at=-1, known=False, producer_id=1, **fields):
    """A batch under another leader epoch than the one before it; `known`: the check says which change it was."""
    evidence = {
        "previous": {"leader_epoch": before, "timestamp": 1},
        "offending": {"leader_epoch": after, "timestamp": at},
    }
    if known:
        evidence["leader_epoch"] = after
    return finding(
        code, producer_id=producer_id, producer_epoch=0, offset=100 * producer_id, evidence=evidence, **fields
    )


LONG = 10**9


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (moved(at=AT), moved(at=AT + 30_000, producer_id=2, partition=1, after=9), TOGETHER),
        (moved(at=AT), moved(at=AT + 30_001, producer_id=2, partition=1), APART),
        (moved(at=0), moved(at=0, producer_id=2, partition=1), TOGETHER),
        # without times by the epoch of the partition
        (moved(), moved(producer_id=2), TOGETHER),
        (moved(), moved(producer_id=2, after=6), APART),
        (moved(), moved(producer_id=2, partition=1), APART),
        (moved(), moved(producer_id=2, topic="u"), APART),
        # as is what is known to belong to the change, however late
        (moved("KA206", at=AT, known=True), moved("KA206", at=AT + LONG, known=True, producer_id=2), TOGETHER),
        (moved("KA206", at=AT, known=True), moved("KA206", at=AT + LONG, producer_id=2), APART),
        (moved("KA206", at=0), moved("KA206", at=LONG, known=True, producer_id=2), APART),
        (moved(before=0, after=1), moved(before=0, after=1, producer_id=2), TOGETHER),
        (moved(before=-1), moved(before=-1, producer_id=2), APART),
        (moved(before=5), moved(before=5, producer_id=2), APART),
        (moved(before=6), moved(before=6, producer_id=2), APART),
        (moved("KA101", at=AT), moved("KA101", at=AT, producer_id=2), APART),
    ],
)
def test_a_change_of_leaders(first, second, together):
    pair("leader-change", together=together, first=first, second=second)


@pytest.mark.parametrize(
    ("copies", "together"),
    [
        ([(3, AT), (7, AT), (5, AT)], TOGETHER),
        ([(7, AT), (3, AT - LONG)], TOGETHER),
        ([(7, AT - LONG), (3, AT)], APART),
        ([(7, AT), (7, AT)], APART),
        ([(7, AT), (-1, AT)], APART),
        ([], APART),
    ],
)
def test_copies_that_part_where_a_leader_began(copies, together):
    batches = {f"b{number}": {"leader_epoch": epoch, "timestamp": at} for number, (epoch, at) in enumerate(copies)}
    diverged = finding("KA601", offset=3, evidence={"copies": batches, "previous": {}, "offending": {}})
    pair("leader-change", together=together, first=diverged, second=moved(at=AT + 7, partition=2))


# producers


def of(code, *, producer_id: int | None = 7, producer_epoch=0, offset: int | None = 5, **fields):
    return finding(code, producer_id=producer_id, producer_epoch=producer_epoch, offset=offset, **fields)


ELSEWHERE: Any = {"topic": "u", "partition": 3, "offset": 9}


@pytest.mark.parametrize(
    ("cause", "first", "second", "together"),
    [
        ("epoch-bump", of("KA203"), of("KA704", **ELSEWHERE), TOGETHER),
        ("epoch-bump", of("KA202"), of("KA203", producer_epoch=1, **ELSEWHERE), APART),
        ("epoch-bump", of("KA203"), of("KA203", producer_id=8, **ELSEWHERE), APART),
        ("epoch-bump", of("KA203", producer_id=None), of("KA203", producer_id=None, **ELSEWHERE), APART),
        ("zombie", of("KA201"), of("KA201", **ELSEWHERE), TOGETHER),
        ("zombie", of("KA201"), of("KA201", producer_epoch=1, **ELSEWHERE), APART),
        ("client-sequences", of("KA107"), of("KA107", producer_epoch=1, **ELSEWHERE), TOGETHER),
        ("client-sequences", of("KA107"), of("KA107", producer_id=8, **ELSEWHERE), APART),
        ("epochs-used-up", of("KA204"), of("KA204", producer_epoch=1, **ELSEWHERE), TOGETHER),
        ("epochs-used-up", of("KA204"), of("KA204", producer_id=8, **ELSEWHERE), APART),
        ("session", of("KA701"), of("KA701", **ELSEWHERE), TOGETHER),
        ("session", of("KA701"), of("KA701", producer_epoch=1, **ELSEWHERE), APART),
        ("retries", of("KA702", producer_id=None), of("KA703", producer_id=None, partition=3), TOGETHER),
        ("retries", of("KA702", producer_id=None), of("KA703", producer_id=None, **ELSEWHERE), APART),
        # one cause does not lead to another one's findings
        ("epoch-bump", of("KA203"), of("KA701", **ELSEWHERE), APART),
    ],
)
def test_what_producers_do(cause, first, second, together):
    pair(cause, together=together, first=first, second=second)


@pytest.mark.parametrize(
    ("second", "together"),
    [
        (of("KA801"), TOGETHER),
        (of("KA803", evidence={"class": "KA201"}), TOGETHER),
        (of("KA801", evidence={"class": "idle"}), APART),
        (of("KA801", evidence={"class": "went-on"}), APART),
        (of("KA801", producer_id=8), APART),
        (of("KA801", producer_id=None), APART),
        (of("KA801", offset=6), APART),
        (of("KA801", offset=None), APART),
        (of("KA801", partition=1), APART),
        (of("KA801", topic="u"), APART),
    ],
)
def test_what_a_producers_state_did_not_allow(second, together):
    pair("producer-state", together=together, first=of("KA101"), second=second)


def test_what_is_about_no_batch_stays_apart():
    missing: list[dict[str, None]] = [{"producer_id": None}, {"offset": None}]
    for fields in missing:
        pair("", together=APART, first=of("KA801", **fields), second=of("KA802", **fields))
        pair("", together=APART, first=of("KA801", **fields), second=of("KA803", **fields))


def unallocated(partition, **evidence):
    blocks = {name: {"start": value, "end": value + 999} for name, value in evidence.items() if name != "class"}
    return of(
        "KA401", partition=partition, producer_id=4000 + partition, evidence={"class": evidence["class"]} | blocks
    )


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ({"class": "beyond", "block_below": 3000, "next_block": 5000}, TOGETHER),
        ({"class": "between", "block_below": 3000, "next_block": 5000}, APART),
        ({"class": "beyond", "block_below": 2000, "next_block": 5000}, APART),
        ({"class": "beyond", "block_below": 3000, "next_block": 6000}, APART),
        ({"class": "beyond", "block_below": 3000}, APART),
    ],
)
def test_ids_missing_at_one_place_of_the_history(other, together):
    first = unallocated(0, **{"class": "beyond", "block_below": 3000, "next_block": 5000})
    pair("unallocated-ids", together=together, first=first, second=unallocated(1, **other))


@pytest.mark.parametrize("seen", [[1001, "1002", None], [True]])
def test_only_numbers_are_producer_ids(seen):
    twice = finding("KA402", topic=None, partition=None, anchor="x", evidence={"seen_ids": seen})
    shared = [of("KA404", producer_id=number, offset=number) for number in (1001, 1002)]
    assert groups(*shared, twice) == ([[0, 2]] if 1001 in seen else [])


# transactions


def opened(code="KA301", *, at: int | None = -1, start: int | None = None, **fields):
    evidence: dict[str, object] = {} if at is None else {"first_timestamp": at}
    if start is not None:
        evidence["remembered"] = {"current_txn_start_offset": start}
    return of(code, evidence=evidence, **fields)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (opened(), opened("KA304"), TOGETHER),
        (opened(), opened("KA304", offset=6), APART),
        (opened(), opened("KA303", offset=9, start=5), TOGETHER),
        (opened(), opened("KA303", offset=5, start=4), APART),
        (opened(), opened("KA303", producer_epoch=1), APART),
        (opened(), opened("KA304", partition=1), APART),
        (opened(at=0), opened(at=60_000, partition=1), TOGETHER),
        (opened(at=AT), opened(at=AT + 60_001, partition=1), APART),
        (opened(at=AT), opened(at=AT, partition=1, producer_epoch=1), APART),
        (opened(at=AT), of("KA303", partition=1, evidence={"offending": {"timestamp": AT}}), TOGETHER),
        (opened(at=AT), of("KA303", partition=1, evidence={"offending": {"timestamp": "soon"}}), APART),
    ],
)
def test_a_transaction_without_an_end(first, second, together):
    pair("transaction", together=together, first=first, second=second)


UUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"


def left_open(transactional_id, at: object = AT, *, coordinator="ongoing", **fields):
    evidence = {"transactional_id": transactional_id, "last_timestamp": at, "coordinator": coordinator}
    return of("KA302", evidence=evidence, **fields)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("payments-sink-0-41", "payments-sink-7-42", TOGETHER),  # Flink: prefix-subtask-checkpoint
        (f"shop-{UUID}-1", f"shop-{UUID.replace('1b', '77')}-2", TOGETHER),  # Kafka Streams: application-process-thread
        ("tx-0.orders.3", "tx-1.orders.12", TOGETHER),
        ("payments-sink-0-41", "refunds-sink-0-41", APART),
        ("payments-sink-0-41", "payments-sink-0", APART),
        ("shop1", "shop2", TOGETHER),
        ("shop", "shop", APART),
        ("7", "8", APART),
        (None, None, APART),
        (7, 7, APART),
    ],
)
def test_producers_of_one_application_fail_together(first, second, together):
    """In other partitions, of other producers: the numbers in an application's transactional ids are ignored."""
    others = {"partition": 1, "producer_id": 8, "offset": 9}
    pair("transaction", together=together, first=left_open(first), second=left_open(second, **others))


@pytest.mark.parametrize(
    ("at", "together"), [(AT + 60_000, TOGETHER), (AT - 60_000, TOGETHER), (AT + 60_001, APART), ("soon", APART)]
)
def test_an_application_fails_within_a_minute(at, together):
    other = left_open("a-2", at, partition=1, producer_id=8)
    pair("transaction", together=together, first=left_open("a-1"), second=other)


@pytest.mark.parametrize("coordinator", ["not-ongoing", "decided", "unknown"])
def test_what_no_coordinator_has_open_hangs_by_itself(coordinator):
    """Each has to be aborted in its own partition."""
    first, second = (
        left_open(f"a-{number}", coordinator=coordinator, partition=number, producer_id=number) for number in (1, 2)
    )
    pair("", together=APART, first=first, second=second)


def decided(code, partition, name: str | None = "t", at: int | None = 7):
    evidence = {"transactional_id": name, "decided_at_offset": at}
    return of(code, partition=partition, evidence={key: value for key, value in evidence.items() if value is not None})


@pytest.mark.parametrize(
    ("second", "together"),
    [
        (decided("KA308", 1), TOGETHER),
        (decided("KA306", 1), TOGETHER),
        (decided("KA306", 1, "u"), APART),
        (decided("KA306", 1, at=8), APART),
        (decided("KA306", 1, at=None), APART),
    ],
)
def test_a_coordinators_decision(second, together):
    pair("decision", together=together, first=decided("KA306", 0), second=second)
    pair("", together=APART, first=decided("KA306", 0, at=None), second=decided("KA306", 1, at=None))


# All of it at once: incidents are the closure of these pairs, each named after its first finding


def closure(findings: Sequence[Finding]) -> list[str | None]:
    """The id of each finding's incident, by walking from finding to finding over what they are about."""
    about: dict[Hashable, list[int]] = {}
    by_partition: dict[tuple[object, object], list[int]] = {}
    for index, each in enumerate(findings):
        by_partition.setdefault((each.topic, each.partition), []).append(index)
    for rule in RULES:
        subjects = []
        for indices in by_partition.values():
            place = {id(findings[index]): index for index in indices}
            subjects += [
                (place[id(each)], about) for each, about in subjects_of(rule, [findings[index] for index in indices])
            ]
        starts = windows(subject for _, subject in subjects if isinstance(subject, Near))
        for index, subject in subjects:
            if isinstance(subject, Near):
                key: Hashable = (rule.cause, subject.key, subject.span_ms, starts[subject])
            else:
                own = None if rule.across else (findings[index].topic, findings[index].partition)
                key = (rule.cause, subject, own)
            about.setdefault(key, []).append(index)
    neighbours: dict[int, set[int]] = {index: {index} for index in range(len(findings))}
    for same in about.values():
        for index in same:
            neighbours[index].update(same)
    ids: list[str | None] = []
    for index in range(len(findings)):
        reached, waiting = {index}, [index]
        while waiting:
            found = neighbours[waiting.pop()] - reached
            reached |= found
            waiting += found
        first = min((findings[each] for each in reached), key=place_of)
        ids.append(first.fingerprint if len(reached) > 1 else None)
    return ids


def place_of(found: Finding) -> tuple[object, ...]:
    """Where a finding stands among others; copies of several replicas stand at one place."""
    topic, partition, _, *rest = found.sort_key()
    return (topic, partition, *rest)


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY, max_size=25))
def test_incidents_are_what_leads_from_one_finding_to_the_next(findings):
    assert [found.incident for found in with_incidents(findings)] == closure(findings)
