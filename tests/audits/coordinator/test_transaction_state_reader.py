"""The newest states of __transaction_state, out of partitions written by hand."""

import struct
from pathlib import Path

import pytest

from kaudit.audits.coordinator import transaction_state_reader
from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.model.coordinator import ExpiredTransactionalId, MemberState, TransactionStatus
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.checks.transactions.coordinator_log import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT, state, tombstone
from tests.logs import BASE_TIMESTAMP, Batch, sealed_records

AT = struct.pack(">q", BASE_TIMESTAMP)
RECORDED = Path(__file__).parents[2] / "data/expired-ids"


def later(one, ms):
    """The same state, last updated later."""
    assert one.count(AT) == 2
    head, middle, tail = one.split(AT)
    return head + struct.pack(">q", BASE_TIMESTAMP + ms) + middle + AT + tail


def write(root, *partitions):
    for number, states in partitions:
        raw = b"".join(sealed_records(Batch(base_offset=offset), [one]) for offset, one in enumerate(states))
        directory = root / f"__transaction_state-{number}"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(raw)
    return discover([str(root)]).partitions


def view(root, *partitions, wanted=(7, 8)):
    reader = CoordinatorReader(open_segment)
    return reader, reader.view(write(root, *partitions), wanted)


def known(view):
    return {
        producer_id: (entry.transactional_id, entry.value.status, entry.offset)
        for producer_id, entry in view.entries.items()
    }


def test_the_newest_state_of_each_wanted_producer(tmp_path):
    states = [
        state("a", EMPTY),
        state("b", ONGOING, [("x", 1)], producer_id=8),
        later(state("a", ONGOING, [("x", 0)]), 5),
        state("c", ONGOING, [("x", 0)], producer_id=9),
    ]
    reader, found = view(tmp_path, (0, states))
    assert known(found) == {7: ("a", TransactionStatus.ONGOING, 2), 8: ("b", TransactionStatus.ONGOING, 1)}
    assert (found.present, found.complete, reader.unreadable, reader.has_flexible_value) == (True, True, [], False)


@pytest.mark.parametrize("moved", [tombstone("a"), state("a", EMPTY, producer_id=9), state("a", EMPTY, producer_id=8)])
def test_an_id_that_has_moved_on_says_nothing_of_its_old_producer(moved, tmp_path):
    """An expired id, or one with a new producer id: nobody will end what the old one left open."""
    _, found = view(tmp_path, (0, [state("a", ONGOING, [("x", 0)]), moved]))
    assert 7 not in found.entries
    assert (8 in found.entries) == (moved == state("a", EMPTY, producer_id=8))


@pytest.mark.parametrize(("updated", "name"), [(-1, "a"), (0, "b"), (1, "b")])
def test_of_two_ids_with_one_producer_the_newest_counts_the_last_of_equals(updated, name, tmp_path):
    states = [state("a", ONGOING), later(state("b", EMPTY), updated)]
    _, found = view(tmp_path, (0, states))
    assert found.entries[7].transactional_id == name


def test_an_older_state_of_another_replica_is_not_taken(tmp_path):
    """Two copies of the partition: the one that is behind must not win, whichever is read last."""
    for broker, states in (
        ("b1", [state("a", ONGOING), later(state("a", PREPARE_COMMIT), 9)]),
        ("b2", [state("a", ONGOING)]),
    ):
        (tmp_path / broker).mkdir()
        write(tmp_path / broker, (0, states))
    found = CoordinatorReader(open_segment).view(discover([str(tmp_path)]).partitions, [7])
    assert known(found) == {7: ("a", TransactionStatus.PREPARE_COMMIT, 1)}


@pytest.mark.parametrize(
    ("partitions", "complete"),
    [
        (((0, [state("a", EMPTY)]),), True),
        (((1, [state("a", EMPTY)]),), False),  # partition 0 is not there
        (((0, []), (1, [state("a", EMPTY)])), True),  # "a".hashCode() is 97
        (((0, [state("a", EMPTY)]), (1, [])), False),  # then there are not two partitions
        (((0, [state("b", EMPTY)]), (1, [state("a", EMPTY)])), True),
        (((0, [state("a", EMPTY), state("b", EMPTY)]), (1, [])), False),  # whatever follows the one that lies elsewhere
        (((0, [state("b", EMPTY), state("a", EMPTY)]), (1, [])), False),
        (((0, []), (2, [])), False),
    ],
)
def test_all_partitions_are_there_where_ids_lie_as_their_hash_says(partitions, complete, tmp_path):
    _, found = view(tmp_path, *partitions)
    assert found.complete is complete


def test_nothing_is_known_without_a_partition():
    found = CoordinatorReader(open_segment).view([], [7])
    assert (found.present, found.complete, dict(found.entries)) == (False, False, {})


def test_a_value_of_version_1_is_evidence_of_4_0(tmp_path):
    """TransactionLogValue is flexible from version 1 on (KIP-890): compact arrays and tags."""
    key = struct.pack(">hh", 0, 1) + b"a"
    value = struct.pack(">hqhib", 1, 7, 0, 60000, EMPTY) + b"\1" + struct.pack(">qq", BASE_TIMESTAMP, -1) + b"\0"
    from tests.logs import record

    reader, found = view(tmp_path, (0, [record(0, key, value)]))
    assert (known(found)[7][0], reader.has_flexible_value) == ("a", True)


def test_damage_hides_what_the_coordinator_knows(tmp_path):
    partitions = write(tmp_path, (0, [state("a", EMPTY), state("b", EMPTY, producer_id=8)]))
    file = tmp_path / "__transaction_state-0" / f"{0:020d}.log"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    reader = CoordinatorReader(open_segment)
    found = reader.view(partitions, [7, 8])
    assert (list(found.entries), found.complete) == ([7], False)
    assert [problem.partition(":")[0] for problem in reader.unreadable] == ["__transaction_state-0"]


def test_names_of_former_producers_too(tmp_path):
    states = [state("a", EMPTY), state("a", EMPTY, producer_id=8), state("b", EMPTY, producer_id=9), tombstone("b")]
    reader = CoordinatorReader(open_segment)
    assert reader.names(write(tmp_path, (0, states)), lambda producer_id: producer_id != 9) == {7: "a", 8: "a"}


class TestDecisions:
    def decided(self, root, states, offsets=None):
        reader = CoordinatorReader(open_segment)
        partitions = write(root, (0, []))
        raw = b"".join(
            sealed_records(Batch(base_offset=number if offsets is None else offsets[number]), [one])
            for number, one in enumerate(states)
        )
        (root / "__transaction_state-0" / f"{0:020d}.log").write_bytes(raw)
        partitions = discover([str(root)]).partitions
        reader.view(partitions, [])
        return {
            producer_id: None if known is None else [(one.type, sorted(one.partitions), one.offset) for one in known]
            for producer_id, known in reader.history.decisions.items()
        }

    def test_each_prepared_end_is_a_decision(self, tmp_path):
        states = [
            state("a", ONGOING, [("x", 0)]),
            state("a", PREPARE_COMMIT, [("x", 0), ("y", 3)]),
            state("a", COMPLETE_COMMIT),
            state("a", ONGOING, [("x", 0)]),
            state("a", 3, [("x", 0)]),
            state("a", 5),
        ]
        assert self.decided(tmp_path, states) == {7: [(1, [("x", 0), ("y", 3)], 1), (0, [("x", 0)], 4)]}

    def test_a_decision_that_is_not_carried_out_leaves_its_producer_out(self, tmp_path):
        states = [
            state("a", PREPARE_COMMIT, [("x", 0)]),
            state("b", PREPARE_COMMIT, [("x", 0)], producer_id=8),
            state("b", COMPLETE_COMMIT, producer_id=8),
        ]
        assert self.decided(tmp_path, states) == {7: None, 8: [(1, [("x", 0)], 1)]}

    def test_a_decision_without_a_list_of_partitions_is_about_none(self, tmp_path):
        states = [state("a", PREPARE_COMMIT, None), state("a", COMPLETE_COMMIT)]
        assert self.decided(tmp_path, states) == {7: [(1, [], 0)]}

    def test_an_id_that_expired_has_nothing_left_to_carry_out(self, tmp_path):
        states = [state("a", PREPARE_COMMIT, [("x", 0)]), state("a", COMPLETE_COMMIT), tombstone("a")]
        assert self.decided(tmp_path, states) == {7: [(1, [("x", 0)], 0)]}

    @pytest.mark.parametrize("offsets", [[1, 2], [0, 2]])
    def test_where_records_are_missing_there_are_none(self, offsets, tmp_path):
        states = [state("a", PREPARE_COMMIT, [("x", 0)]), state("a", COMPLETE_COMMIT)]
        assert self.decided(tmp_path, states, offsets) == {}

    @pytest.mark.parametrize(("limit", "complete"), [(2, False), (3, True)])
    def test_beyond_a_limit_no_partition_has_decisions(self, limit, complete, tmp_path, monkeypatch):
        monkeypatch.setattr(transaction_state_reader, "MAX_DECISIONS", limit)
        one = [state("a", PREPARE_COMMIT, [("x", 0)]), state("a", COMPLETE_COMMIT)]
        two = [state("b", PREPARE_COMMIT, [("x", 0)], producer_id=8), state("b", COMPLETE_COMMIT, producer_id=8)] * 2
        reader = CoordinatorReader(open_segment)
        reader.view(write(tmp_path, (0, one), (1, two)), [])
        assert reader.history.complete is complete
        assert sorted(reader.history.decisions) == ([7, 8] if complete else [7])

    def test_another_copy_of_the_partition_changes_nothing(self, tmp_path):
        """The copy that is read first counts, and a copy with a hole has no decisions of its own."""
        states = [state("a", PREPARE_COMMIT, [("x", 0)]), state("a", COMPLETE_COMMIT)]
        for name, copy in (("b1", states), ("b2", [state("a", 3, [("x", 0)])]), ("b3", [])):
            (tmp_path / name).mkdir()
            write(tmp_path / name, (0, copy))
        reader = CoordinatorReader(open_segment)
        reader.view(discover([str(tmp_path)]).partitions, [])
        (known,) = reader.history.decisions.values()
        assert known is not None
        assert [(one.transactional_id, one.type, one.offset) for one in known] == [("a", 1, 0)]

    def test_an_illegal_transition_names_its_directory_and_both_records(self, tmp_path):
        states = [
            state("b", EMPTY, producer_id=8),
            state("a", ONGOING),
            state("b", EMPTY, producer_id=8),
            state("a", EMPTY),
        ]
        reader = CoordinatorReader(open_segment)
        reader.view(write(tmp_path, (0, states)), [])
        ((directory, found),) = reader.history.transitions
        assert directory == str(tmp_path / "__transaction_state-0")
        assert (found.transactional_id, found.before_offset, found.offset) == ("a", 1, 3)
        assert (found.before.status, found.after.status) == (TransactionStatus.ONGOING, TransactionStatus.EMPTY)


class TestExpiredIds:
    """A null value is a tombstone: TransactionStateManager writes one for an id that was idle for too long."""

    def written(self, root, *partitions):
        """Each partition's records by offset, at BASE_TIMESTAMP and as many ms."""
        for number, states in partitions:
            raw = b"".join(
                sealed_records(Batch(base_offset=offset, timestamp=BASE_TIMESTAMP + offset), [one])
                for offset, one in states.items()
            )
            directory = root / f"__transaction_state-{number}"
            directory.mkdir(parents=True)
            (directory / f"{0:020d}.log").write_bytes(raw)

    def found(self, root):
        reader = CoordinatorReader(open_segment)
        reader.view(discover([str(root)]).partitions, [])
        return reader.expired

    def brief(self, expired):
        """Transactional id, producer ids before and after, partition and offset."""
        return [
            (one.transactional_id, one.producer_id, one.next_producer_id, one.partition, one.offset)
            for one in expired.newest()
        ]

    def test_what_an_id_had_and_what_it_was_given_afterwards(self, tmp_path):
        states = [
            state("a", EMPTY, epoch=3),
            later(state("a", COMPLETE_COMMIT, epoch=4), 70),
            state("b", EMPTY, producer_id=8),
            tombstone("a"),
            state("a", EMPTY, producer_id=9),
            state("a", EMPTY, producer_id=10),
        ]
        self.written(tmp_path, (0, dict(enumerate(states))))
        expired = self.found(tmp_path)
        assert expired.newest() == [
            ExpiredTransactionalId("a", 7, 4, BASE_TIMESTAMP + 70, BASE_TIMESTAMP + 3, 0, 3, next_producer_id=9)
        ]
        assert expired.omitted == 0

    def test_what_a_broker_wrote(self):
        """What it answered is in the README beside its log."""
        recorded = {one[0]: one[1:] for one in self.brief(self.found(RECORDED))}
        assert recorded.pop("tx-invoices") == (1, 2, 0, 6)
        assert recorded == {"warm-up": (0, None, 0, 5)}

    def test_each_time_an_id_expires_the_last_first(self, tmp_path):
        states = {0: state("a", EMPTY), 1: tombstone("a"), 2: state("a", EMPTY, producer_id=8), 3: tombstone("a")}
        self.written(tmp_path, (0, {4: tombstone("c")}), (1, states))
        assert self.brief(self.found(tmp_path)) == [("c", None, None, 0, 4), ("a", 8, None, 1, 3), ("a", 7, 8, 1, 1)]

    def test_what_the_cleaner_took_is_not_known(self, tmp_path):
        self.written(tmp_path, (0, {41: tombstone("a"), 44: state("a", EMPTY, producer_id=9)}))
        (entry,) = self.found(tmp_path).newest()
        assert (entry.producer_id, entry.producer_epoch, entry.last_update_timestamp) == (None, None, None)
        assert (entry.offset, entry.next_producer_id) == (41, 9)

    def test_a_tombstone_that_is_written_again_is_not_another_expiry(self, tmp_path):
        """A coordinator whose write seemed to fail keeps the id, and writes again at its next look."""
        states = [state("a", EMPTY), tombstone("a"), tombstone("a"), state("a", EMPTY, producer_id=8)]
        self.written(tmp_path, (0, dict(enumerate(states))))
        assert self.brief(self.found(tmp_path)) == [("a", 7, 8, 0, 1)]

    @pytest.mark.parametrize("order", ["123", "321", "213"])
    def test_replicas_complete_one_another(self, order, tmp_path):
        """One is behind, of one the cleaner took what was before, one has both: it is one expiry."""
        whole = {0: state("a", EMPTY), 1: tombstone("a"), 2: state("a", EMPTY, producer_id=8)}
        copies = whole, {1: whole[1], 2: whole[2]}, {0: whole[0], 1: whole[1]}
        for name, number in zip("abc", order, strict=True):
            self.written(tmp_path / name, (0, copies[int(number) - 1]))
        assert self.brief(self.found(tmp_path)) == [("a", 7, 8, 0, 1)]

    def test_many_are_counted_and_the_last_are_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(transaction_state_reader, "PRODUCERS", 3)
        names = [f"id-{number}" for number in range(20)]
        states = [one for name in names for one in (state(name, EMPTY), tombstone(name))]
        # the first have long been dropped when they come back, the last has not
        back = [state(names[0], EMPTY, producer_id=8), state(names[-1], EMPTY, producer_id=9)]
        for broker, own in (("b1", states + back), ("b2", states[:4])):
            self.written(tmp_path / broker, (0, dict(enumerate(own))), (1, {100: tombstone("other")}))
        expired = self.found(tmp_path)
        last = [("other", None, None, 1, 100), ("id-19", 7, 9, 0, 39), ("id-18", 7, None, 0, 37)]
        assert self.brief(expired) == last
        assert expired.omitted == 18
        assert len(expired.kept) < 6
        # what was read elsewhere, the same once more and another partition's
        self.written(tmp_path / "b3", (0, dict(enumerate(states))), (2, {n: tombstone(f"p{n}") for n in (3, 4, 101)}))
        expired.add(self.found(tmp_path / "b3"))
        assert self.brief(expired) == [("p101", None, None, 2, 101), *last[:2]]
        assert expired.omitted == 21

    def test_a_text_of_kafka_dump_log_has_the_times_too(self, tmp_path):
        batch = (
            "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
            "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
            "position: {0}00 CreateTime: {1} size: 100 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
            "| offset: {0} CreateTime: {1} keySize: 5 valueSize: {2} sequence: -1 headerKeys: [] "
            "key: transaction_metadata::transactionalId=a payload: {3}\n"
        )
        value = "producerId:{},producerEpoch:3,state=Empty,partitions=[],txnLastUpdateTimestamp=1795241986489,txnTimeoutMs=1"
        (tmp_path / "dump.txt").write_text(
            "Dumping __transaction_state-0/00000000000000000000.log\nLog starting offset: 0\n"
            + batch.format(0, 1795241986492, 37, value.format(7))
            + batch.format(1, 1795846790000, -1, "<DELETE>")
            + batch.format(2, 1795846799000, 37, value.format(8))
        )
        assert self.found(tmp_path / "dump.txt").newest() == [
            ExpiredTransactionalId("a", 7, 3, 1795241986489, 1795846790000, 0, 1, next_producer_id=8)
        ]


def test_the_applications_and_commits_of_the_producers_asked_for(tmp_path):
    """Ids are pooled: two of one subtask commit three times; another application and its members are not kept."""
    of = [("x", 0), ("__consumer_offsets", 4)]
    states = [
        *(state(f"sink-0-{number}", PREPARE_COMMIT, [("x", 0)], producer_id=9) for number in (0, 1, 0)),
        later(state("sink-1-0", ONGOING, [("x", 0)]), 5),
        state("other-0-0", PREPARE_COMMIT, of, producer_id=10),
        state("connect-cluster-prod", EMPTY, producer_id=11),
        state("moved", ONGOING, [("x", 0)], producer_id=8),
        state("moved", EMPTY, producer_id=12),
        state("sink-1-0", PREPARE_COMMIT, of, epoch=1),
        state("sink-1-0", COMPLETE_COMMIT, epoch=1),
    ]
    _, found = view(tmp_path, (0, states))
    (application,) = found.applications.values()
    assert list(found.applications) == ["sink"]
    assert application.sends_offsets
    assert application.members["sink-0-*"] == MemberState(BASE_TIMESTAMP, BASE_TIMESTAMP, commits=3, highest=1)
    assert application.members["sink-1-*"].commits == 1
    assert found.connect_groups == ["prod"]
    assert found.names == {7: "sink-1-0", 8: "moved"}
    (commit,) = found.commits[7]
    assert (commit.producer_epoch, commit.decided_ms, commit.offset) == (1, BASE_TIMESTAMP, 8)
    assert commit.includes("x", 0)
    assert not commit.includes("x", 1)
    assert list(found.begun) == [0]


def test_replicas_and_many_commits_count_once_and_up_to_a_bound(tmp_path):
    states = [state("sink-0-0", PREPARE_COMMIT, [("x", 0)], epoch=number) for number in range(12)]
    directories = []
    for replica in ("b1", "b2"):
        (tmp_path / replica).mkdir()
        directories += write(tmp_path / replica, (0, states))
    found = CoordinatorReader(open_segment).view(directories, [7])
    assert found.applications["sink"].members["sink-0-*"].commits == 12
    assert [commit.producer_epoch for commit in found.commits[7]] == list(range(4, 12))
