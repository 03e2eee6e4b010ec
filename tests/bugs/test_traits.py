"""When a trait of a known bug is seen: of evidence on both sides of each boundary, and of a saved scan that says anything."""

import pytest

from kaudit.bugs.broker import files, replication, transactions
from kaudit.bugs.bug import Case, Trait
from kaudit.bugs.client import producers
from kaudit.bugs.registry import BUGS
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity

MINUTE = 60_000
DAY = 86_400_000


def case(code="KA101", others=(), *, compacted=False, version_known=False, **fields) -> Case:
    evidence = StoredEvidence(fields.pop("evidence", {}))
    finding = Finding(
        code, "", fields.pop("severity", Severity.ERROR), Confidence.CERTAIN, "", topic="t", partition=0,
        evidence=evidence, **fields,
    )  # fmt: skip

    def found(code: str, _: str) -> list[Finding]:
        return [other for other in others if other.code == code]

    return Case(finding, compacted=compacted, version_known=version_known, others=found)


def trait_of(bug: str, words: str) -> Trait:
    """The trait of a bug that has these words."""
    (trait,) = (trait for trait in BUGS[bug].traits if words in trait.text)
    return trait


@pytest.mark.parametrize(("idle_ms", "is_long"), [
    (20 * MINUTE, True), (20 * MINUTE - 1, False), (-1, False), (None, False), (str(DAY), False), (True, False),
])  # fmt: skip
def test_a_transaction_is_idle_for_longer_than_any_may_take(idle_ms, is_long):
    """transaction.max.timeout.ms is 15 minutes."""
    evidence = {"idle_ms": idle_ms, "last_timestamp": 0, "now_timestamp": DAY}
    assert transactions.LONG_AGO.seen(case(evidence=evidence)) is is_long


@pytest.mark.parametrize(("state", "decided"), [
    ("PrepareCommit", True), ("PrepareAbort", True), ("Ongoing", False), ("CompleteCommit", False), (None, False),
])  # fmt: skip
def test_a_coordinator_has_decided(state, decided):
    assert transactions.DECIDED.seen(case(evidence={"coordinator_state": state})) is decided


@pytest.mark.parametrize(("offset", "expected", "last_missing", "last_offset", "again"), [
    (5, 6, None, 9, True),
    (5, 5, None, 9, False),
    (5, 7, None, 9, False),
    (None, 6, None, 9, False),
    (5, None, None, 9, False),
    (5, 6, 9, 9, True),  # what seems missing lies in the batch itself
    (5, 6, 10, 9, False),
    (5, 6, 9, None, False),
])  # fmt: skip
def test_a_batch_begins_at_the_offset_of_the_one_before(offset, expected, last_missing, last_offset, again):
    evidence = {"expected_offset": expected, "last_missing_offset": last_missing}
    found = case("KA006", offset=offset, last_offset=last_offset, evidence=evidence)
    assert files._assigned_again(found) is again


@pytest.mark.parametrize(("missing", "is_missing"), [
    ([[{"last_offset": 5}]], True),
    ([[{"last_offset": 4}, {"last_offset": 5}]], True),
    ([None, [{"last_offset": 4}], ({"last_offset": 5},)], True),
    ([[{"last_offset": 4}]], False),
    ([[{}, 5, "last_offset"]], False),
    ([{"last_offset": 5}], False),
    (["last_offset"], False),
    ([], False),
])  # fmt: skip
def test_the_transaction_index_lacks_what_ended_there(missing, is_missing):
    others = [case("KA305", evidence={"missing": each}).finding for each in missing]
    assert files._not_in_index(case("KA006", others, offset=5)) is is_missing


def epochs(*rows):
    return [{"epoch": epoch, "start_offset": start} for epoch, start in rows]


@pytest.mark.parametrize(("histories", "offset", "goes_on"), [
    ({"a": epochs((1, 0), (3, 11)), "b": epochs((1, 0), (2, 8), (3, 12))}, 10, True),
    ({"a": epochs((1, 0), (3, 10)), "b": epochs((1, 0), (3, 12))}, 10, False),  # one has it at the very offset
    ({"a": epochs((1, 0), (3, 12)), "b": epochs((1, 0), (4, 12))}, 10, False),  # none in common behind it
    ({"a": epochs((3, 12)), "b": epochs((3, 12))}, None, False),
    ({"a": epochs((3, 12))}, 10, False),
    ({"a": epochs((3, 12)), "b": None}, 10, False),
    ({"a": epochs((3, 12)), "b": [7, {"epoch": "3", "start_offset": 12}, {"epoch": 3}]}, 10, False),
    (None, 10, False),
])  # fmt: skip
def test_replicas_that_differ_go_on_under_one_leader(histories, offset, goes_on):
    evidence = {"copies": dict.fromkeys(histories or (), 1), "leader_epochs": histories}
    assert replication.GOES_ON.seen(case("KA601", offset=offset, evidence=evidence)) is goes_on
    assert replication.GOES_ON.seen(case("KA601", offset=offset, evidence={"leader_epochs": histories})) is False


@pytest.mark.parametrize(("epoch", "expected", "goes_on"), [
    (6, 5, True), (8, 5, True), (9, 5, False), (5, 5, False), (4, 5, False), (3, None, True), (None, None, False),
])  # fmt: skip
def test_a_log_alone_goes_on_under_one_of_the_next_leaders(epoch, expected, goes_on):
    found = case("KA009", offset=10, evidence={"leader_epoch": epoch, "expected_leader_epoch": expected})
    assert (replication.GOES_ON.seen(found), replication.NOT_CUT.seen(found)) == (goes_on, True)


@pytest.mark.parametrize(("ends", "copies", "offset", "not_cut"), [
    ({"a": 11, "b": 12}, "ab", 10, True),
    ({"a": 10, "b": 12}, "ab", 10, False),
    ({"a": 11, "b": 9}, "a", 10, True),  # b holds none of it
    ({"a": 11}, "ab", 10, False),
    ({"a": 11, "b": "12"}, "ab", 10, False),
    ({"a": 11, "b": 12}, "ab", None, False),
    (None, "ab", 10, False),
    ({"a": 11, "b": 12}, None, 10, False),
])  # fmt: skip
def test_replicas_that_differ_were_not_cut(ends, copies, offset, not_cut):
    evidence = {"end_offsets": ends, "copies": copies and dict.fromkeys(copies, 1)}
    assert replication.NOT_CUT.seen(case("KA601", offset=offset, evidence=evidence)) is not_cut


@pytest.mark.parametrize(
    ("counts", "often"), [([5], True), ([4], False), ([2, 3], True), ([None] * 4, False), ([], False)]
)
def test_an_epoch_is_raised_again_and_again(counts, often):
    others = [case("KA203", evidence={} if count is None else {"count": count}).finding for count in counts]
    assert producers.RAISED_OFTEN.seen(case("KA206", others)) is often


def test_one_that_is_not_counted_is_one():
    others = [case("KA203").finding] * 5
    assert producers.RAISED_OFTEN.seen(case("KA206", others)) is True
    assert producers.RAISED_OFTEN.seen(case("KA206", others[1:])) is False


@pytest.mark.parametrize(("before", "after", "changed"), [
    (0, 1, True), (1, 1, False), (2, 1, False), (-1, 1, False), (None, 1, False), (0, None, False),
])  # fmt: skip
def test_the_leader_had_changed_in_between(before, after, changed):
    evidence = {"copied": {"last_leader_epoch": before}, "again": {"first_leader_epoch": after}}
    assert producers.ANOTHER_LEADER.seen(case("KA704", evidence=evidence)) is changed


@pytest.mark.parametrize(("code", "offset", "late"), [("KA304", 1, True), ("KA301", 7, True), ("KA301", 8, False)])
def test_a_batch_came_after_its_transaction_had_ended(code, offset, late):
    others = [case("KA304", offset=7).finding, case("KA302", offset=8).finding]
    assert transactions.CAME_LATE.seen(case(code, others, offset=offset)) is late


@pytest.mark.parametrize(("first", "marker", "later"), [
    (6, 5, True), (5, 5, False), (4, 5, False), (1, 0, True), (1, -1, False), (None, 5, False), (6, None, False),
])  # fmt: skip
def test_a_late_batch_was_made_after_the_marker(first, marker, later):
    evidence = {"first_timestamp": first, "previous_marker_timestamp": marker}
    assert transactions.was_made_later(case("KA304", evidence=evidence)) is later


@pytest.mark.parametrize(("agreeing", "state", "first", "torn"), [
    (["orders-1"], None, None, True),
    ([], "CompleteCommit", 6, True),
    ([], "CompleteCommit", 5, False),
    ([], "CompleteAbort", 6, False),
    (None, None, 6, False),
])  # fmt: skip
def test_a_transaction_was_torn(agreeing, state, first, torn):
    evidence = {
        "agreeing": agreeing,
        "coordinator_state": state,
        "first_timestamp": first,
        "previous_marker_timestamp": 5,
    }
    assert trait_of("KAFKA-17754", "went on in the same epoch").seen(case("KA304", evidence=evidence)) is torn


@pytest.mark.parametrize(("size", "breaks_off"), [
    (0, True), (9, True), (10, False), (11, True), (55, True), (56, False), (57, True), (10 + 46 * 3, False), (None, False),
])  # fmt: skip
def test_a_producer_snapshot_breaks_off(size, breaks_off):
    """Version, CRC and count are 2 + 4 + 4 bytes, an entry 46 (ProducerStateManager.ProducerSnapshotEntrySchema)."""
    assert trait_of("KAFKA-5747", "breaks off").seen(case(evidence={"size": size})) is breaks_off


@pytest.mark.parametrize(("last", "offset", "ahead"), [(7, 7, True), (6, 7, False), (None, 7, False), (7, None, False)])
def test_a_producer_snapshot_runs_ahead(last, offset, ahead):
    """A snapshot of offset 7 holds what lies below it."""
    assert (
        trait_of("KAFKA-6683", "its own offset").seen(case(offset=offset, evidence={"stored": {"last_offset": last}}))
        is ahead
    )


@pytest.mark.parametrize(("data", "marker", "forgotten"), [
    (0, 7 * DAY, True), (0, 7 * DAY - 1, False), (None, 7 * DAY, False), (0, None, False),
])  # fmt: skip
def test_a_producer_was_forgotten(data, marker, forgotten):
    """transactional.id.expiration.ms is 7 days."""
    evidence = {"previous": {"timestamp": data}, "offending": {"timestamp": marker}}
    trait = trait_of("KAFKA-9144", "7 days")
    assert trait.seen(case("KA205", evidence=evidence)) is forgotten


@pytest.mark.parametrize(("epoch", "producer_epoch", "offset", "sequence", "expected"), [
    (0, 0, 0, 5, [True, True, True]),
    (1, 0, 0, 5, [True, False, True]),
    (0, 1, 0, 5, [True, False, True]),
    (0, 0, 1, 5, [False, True, True]),
    (0, 0, 0, 0, [True, True, False]),
    (None, 0, 0, None, [True, False, False]),
])  # fmt: skip
def test_the_first_batch_of_a_partition_does_not_begin_at_0(epoch, producer_epoch, offset, sequence, expected):
    evidence = {"offending": {"leader_epoch": epoch, "base_sequence": sequence}}
    found = case(offset=offset, producer_epoch=producer_epoch, evidence=evidence)
    words = ("the first of the partition", "first leader", "is not 0")
    assert [trait_of("KAFKA-15591", each).seen(found) for each in words] == expected


@pytest.mark.parametrize(("severity", "resynchronised", "closed"), [
    (Severity.ERROR, None, True), (Severity.ERROR, 400, False), (Severity.NOTE, None, False),
])  # fmt: skip
def test_a_closed_segment_ends_in_zeros(severity, resynchronised, closed):
    trait = trait_of("KAFKA-5431", "zeros")
    assert trait.seen(case(severity=severity, evidence={"resynchronised_at": resynchronised})) is closed


@pytest.mark.parametrize(("classes", "there"), [(["stale"], True), ([], True), (["stale", "missing"], False)])
def test_the_offset_index_is_there(classes, there):
    others = [case("KA503", evidence={"class": name}).finding for name in classes]
    found = case("KA503", others, evidence={"class": "missing"})
    traits = [trait_of("KAFKA-5752", each).seen(found) for each in ("time index", "offset index")]
    assert traits == [True, there]


@pytest.mark.parametrize(("first_missing", "expected", "resynchronised", "traits"), [
    (None, 5, 400, [True, True]), (4, 5, 400, [True, False]), (None, None, 400, [True, False]), (None, 5, None, [False, True]),
])  # fmt: skip
def test_valid_batches_follow_what_is_no_whole_batch(first_missing, expected, resynchronised, traits):
    evidence = {
        "first_missing_offset": first_missing,
        "expected_offset": expected,
        "resynchronised_at": resynchronised,
    }
    words = ("valid batches follow", "was to get")
    assert [trait_of("KAFKA-10778", each).seen(case(evidence=evidence)) for each in words] == traits


@pytest.mark.parametrize(("said", "not_added"), [
    ("Ongoing, and does not include the partition", True), ("Ongoing", False), (None, False), (7, False),
])  # fmt: skip
def test_a_transaction_does_not_include_the_partition(said, not_added):
    trait = trait_of("KAFKA-14402", "does not include")
    assert trait.seen(case(evidence={"coordinator_says": said})) is not_added


def test_a_bug_lists_its_traits_with_those_of_logs_only_where_they_are_seen():
    """Few audits are given the logs of brokers and clients; any other trait that is not seen is listed as one to look for."""
    restart, behind, answered = (trait.text for trait in BUGS["KAFKA-8483"].traits)
    without = BUGS["KAFKA-8483"].named_by(case("KA105", evidence={"times_go_back": True}))
    assert without is not None
    assert (tuple(without.traits), tuple(without.traits_seen)) == ((restart, behind), (restart, behind))
    events = {"times_go_back": True, "log_events": [{"event": "unknown_producer_id"}]}
    with_logs = BUGS["KAFKA-8483"].named_by(case("KA105", evidence=events))
    assert with_logs is not None
    assert tuple(with_logs.traits) == tuple(with_logs.traits_seen) == (restart, behind, answered)
    assert BUGS["KAFKA-8483"].named_by(case("KA105")) is None
    migrated, used = (trait.text for trait in BUGS["KAFKA-15552"].traits)
    unused = BUGS["KAFKA-15552"].named_by(case("KA402", evidence={"class": "migration"}))
    assert unused is not None
    assert (tuple(unused.traits), tuple(unused.traits_seen)) == ((migrated, used), (migrated,))
