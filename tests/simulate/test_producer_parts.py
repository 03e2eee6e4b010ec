"""The parts of the producer, each alone, held to what the Java client's class of that name does."""

from collections import deque
from itertools import pairwise
from random import Random

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_append_info import MAX_EPOCH
from kaudit.simulate.producer.accumulator import RecordAccumulator
from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.producer.config import ProducerConfig
from kaudit.simulate.producer.recovery import BumpEpoch, FranzGo, Librdkafka, ResetProducerId
from kaudit.simulate.producer.transaction_manager import NO_PRODUCER, TransactionManager
from kaudit.simulate.producer_batch import Payload, ProducerBatch

KEY = ("orders", 0)
CURRENT, V2_0, V0_11 = (client_for(name) for name in ("current", "java 2.0.1", "java 0.11.0.3"))
PAYLOAD = Payload("app", 20, "app", 1)


def config(client=CURRENT, **changes):
    values = {
        "acks": -1,
        "idempotent": True,
        "max_in_flight": 5,
        "batch_size": 400,
        "linger_ms": 5,
        "retries": 2**31 - 1,
        "retry_backoff_ms": 100,
        "retry_backoff_max_ms": 1000,
        "request_timeout_ms": 30000,
        "delivery_timeout_ms": client.default_delivery_timeout_ms,
        "max_request_size": 1 << 20,
        "reconnect_backoff_ms": 50,
        "transactional_id": None,
        "transaction_timeout_ms": 60000,
    }
    return ProducerConfig(client=client, **{**values, **changes})


def batch(*numbers, sequence=None):
    made = ProducerBatch.created(KEY, PAYLOAD, 0)
    for number in numbers:
        made.append(number, 1000 + number, PAYLOAD.encoded_size(number), 0)
    if sequence is not None:
        made.set_producer_state(1, 0, sequence, transactional=False)
    return made


def transaction_manager(*, transactional):
    return TransactionManager(transactional=transactional, first_sequence=0, bump_restarts_idle_partitions=True)


def manager(*batches, transactional=False):
    made = transaction_manager(transactional=transactional)
    made.producer = (1, 0)
    for one in batches:
        made.of(KEY).take(one, transactional=transactional)
    return made


class TestAccumulator:
    def test_a_batch_waits_for_linger_and_not_for_more_when_full(self):
        accumulator = RecordAccumulator(config(), Random(1))
        assert accumulator.append(KEY, PAYLOAD, 0, 0, 0)  # a new batch wakes the sender
        assert not accumulator.append(KEY, PAYLOAD, 1, 0, 1)
        assert accumulator.ready({KEY: 1}, 1, flush=False) == ([], 4, False)
        assert accumulator.ready({KEY: 1}, 5, flush=False)[0] == [1]
        assert accumulator.ready({KEY: 1}, 1, flush=True)[0] == [1]
        for number in range(2, 30):
            accumulator.append(KEY, PAYLOAD, number, 0, 1)
        assert accumulator.ready({KEY: 1}, 1, flush=False)[0] == [1]

    def test_without_a_leader_nothing_is_ready(self):
        accumulator = RecordAccumulator(config(), Random(1))
        accumulator.append(KEY, PAYLOAD, 0, 0, 0)
        assert accumulator.ready({KEY: None}, 99, flush=False) == ([], None, True)

    def test_what_is_ready_and_when_the_rest_will_be(self):
        """RecordAccumulator.ready: muted partitions are none, and one without a leader holds up no other."""
        accumulator = RecordAccumulator(config(), Random(1))
        keys = [("orders", number) for number in range(4)]
        for at, key in zip((0, 0, 2, 3), keys, strict=True):
            accumulator.append(key, PAYLOAD, 0, 0, at)
        leaders: dict[tuple[str, int], int | None] = {keys[0]: 1, keys[1]: None, keys[2]: 2, keys[3]: 2}
        assert accumulator.ready(leaders, 4, flush=False) == ([], 1, True)
        assert accumulator.ready(leaders, 5, flush=False) == ([1], 2, True)
        assert accumulator.ready(leaders, 7, flush=False) == ([1, 2], None, True)
        accumulator.mute([accumulator.queues[keys[0]][0]])
        assert accumulator.ready(leaders, 4, flush=False) == ([], 3, True)
        assert accumulator.ready(leaders, 7, flush=False) == ([2], None, True)

    def test_a_batch_is_full_at_its_size_or_when_the_next_record_does_not_fit(self):
        size = PAYLOAD.encoded_size(0)
        empty = ProducerBatch.created(KEY, PAYLOAD, 0).size
        for limit, woken in ((empty + 2 * size, [True, True, True]), (empty + 2 * size + 1, [True, False, True])):
            accumulator = RecordAccumulator(config(batch_size=limit), Random(1))
            assert [accumulator.append(KEY, PAYLOAD, 0, 0, 0) for _ in range(3)] == woken
            assert [one.record_count for one in accumulator.queues[KEY]] == [2, 1]
            assert accumulator.ready({KEY: 1}, 0, flush=False)[0] == [1]

    @pytest.mark.parametrize(("client", "at_once"), [("java 3.6.2", False), ("java 3.7.0", True), ("current", True)])
    def test_a_batch_that_failed_waits_unless_its_partition_has_another_leader_by_now(self, client, at_once):
        """RecordAccumulator.shouldBackoff; KIP-951 since 3.7."""
        accumulator = RecordAccumulator(config(client_for(client), retry_backoff_max_ms=100), Random(1))
        accumulator.append(KEY, PAYLOAD, 0, 0, 0)
        (sent,) = accumulator.drain({KEY: 1}, 1, None, 5)
        accumulator.reenqueue(sent, False, 10)
        for leader, now, ready in ((1, 109, False), (1, 110, True), (2, 11, at_once), (2, 110, True)):
            found = accumulator.ready({KEY: leader}, now, flush=True)
            assert found == (([leader], None, False) if ready else ([], 110 - now, False))
            again = accumulator.drain({KEY: leader}, leader, None, now)
            assert again == ([sent] if ready else [])
            if again:
                sent.sent_to = 1
                accumulator.queues[KEY].appendleft(sent)

    def test_a_request_has_as_many_batches_as_fit_and_at_least_one(self):
        """drainBatchesForOneNode: the next request begins where this one stopped (KAFKA-13834)."""
        keys = [("orders", number) for number in range(5)]
        leaders = {**dict.fromkeys(keys, 1), ("other", 0): 2}
        for limit, requests in ((2, [[0, 1], [2, 3], [4]]), (0, [[0], [1], [2], [3], [4]]), (9, [[0, 1, 2, 3, 4]])):
            accumulator = RecordAccumulator(config(linger_ms=0), Random(1))
            for key in leaders:
                accumulator.append(key, PAYLOAD, 0, 0, 0)
            size = limit * accumulator.queues[keys[0]][0].size
            accumulator = RecordAccumulator(config(linger_ms=0, max_request_size=size), Random(1))
            for key in leaders:
                accumulator.append(key, PAYLOAD, 0, 0, 0)
            drained = [accumulator.drain(leaders, 1, None, 0) for _ in requests]
            assert [[one.partition[1] for one in batches] for batches in drained] == requests
            assert accumulator.drain(leaders, 1, None, 0) == []
            assert [one.partition for one in accumulator.drain(leaders, 2, None, 0)] == [("other", 0)]
            assert accumulator.drain(leaders, 3, None, 0) == []

    @pytest.mark.parametrize("client", [CURRENT, V2_0])
    @pytest.mark.parametrize("retried", [False, True])
    def test_the_next_expiry_is_when_a_batch_expires_first(self, client, retried):
        accumulator = RecordAccumulator(config(client), Random(1))
        assert accumulator.next_expiry() is None
        other = ("orders", 1)
        for at, key in ((7, other), (0, KEY)):
            accumulator.append(key, PAYLOAD, 0, 0, at)
        if retried:
            for one in accumulator.drain({KEY: 1, other: 1}, 1, None, 20):
                accumulator.reenqueue(one, False, 30 if one.partition == KEY else 35)
        for key in (KEY, other):
            due = accumulator.next_expiry()
            assert due is not None
            assert accumulator.expired(due - 1) == []
            assert [one.partition for one in accumulator.expired(due)] == [key]
        assert accumulator.next_expiry() is None

    @pytest.mark.parametrize(("free", "behind"), [(0, False), (0, True), (1, True), (1, False)])
    @pytest.mark.parametrize("appended_at", [0, 990])
    def test_a_full_batch_expires_without_its_linger_before_2_1(self, free, behind, appended_at):
        """ProducerBatch.maybeExpire of 2.0: a full one by its last append, any by its creation and linger; more than the limit."""
        size = batch(0).size + free
        since = appended_at if behind or not free else 1_000
        for limit, due in ((None, since + 30_001), (120_000, 120_000)):
            client = V2_0 if limit is None else CURRENT
            accumulator = RecordAccumulator(
                config(client, linger_ms=1_000, batch_size=size, delivery_timeout_ms=limit), Random(1)
            )
            accumulator.append(KEY, PAYLOAD, 0, 0, 0)
            accumulator.queues[KEY][0].last_appended_at = appended_at
            if behind:
                accumulator.append(KEY, PAYLOAD, 1, 0, 995)
            assert accumulator.next_expiry() == due
            assert accumulator.expired(due - 1) == []
            assert [one.numbers for one in accumulator.expired(due)][:1] == [[0]]

    @pytest.mark.parametrize(("client", "expires"), [(CURRENT, True), (V2_0, False)])
    def test_a_muted_partition_expires_by_the_delivery_timeout_only(self, client, expires):
        """expiredBatches of 2.0 leaves muted partitions out: a batch of theirs is in flight."""
        accumulator = RecordAccumulator(config(client), Random(1))
        accumulator.append(KEY, PAYLOAD, 0, 0, 0)
        accumulator.mute([accumulator.queues[KEY][0]])
        assert len(accumulator.expired(10**6)) == expires

    def test_one_batch_of_each_partition_is_drained_and_none_of_a_muted_one(self):
        accumulator = RecordAccumulator(config(linger_ms=0, batch_size=100), Random(1))
        other = ("orders", 1)
        for number in range(6):
            accumulator.append(KEY, PAYLOAD, number, 0, 0)
            accumulator.append(other, PAYLOAD, number, 0, 0)
        leaders = {KEY: 1, other: 1}
        drained = accumulator.drain(leaders, 1, None, 0)
        assert sorted(one.partition for one in drained) == [KEY, other]
        accumulator.mute([one for one in drained if one.partition == KEY])
        assert [one.partition for one in accumulator.drain(leaders, 1, None, 0)] == [other]
        accumulator.unmute(KEY)
        assert {one.partition for one in accumulator.drain(leaders, 1, None, 0)} == {KEY, other}

    def test_insert_in_sequence_order_finds_the_place_between_retries_and_before_new_batches(self):
        accumulator = RecordAccumulator(config(linger_ms=0, batch_size=100), Random(1))
        for number in (70, 80):
            accumulator.append(KEY, PAYLOAD, number, 0, 0)
            accumulator.append(KEY, PAYLOAD, number + 1, 0, 0)
            accumulator.append(KEY, PAYLOAD, number + 2, 0, 0)
        for sequence in (4, 0, 8, 2, 6):
            accumulator.insert_in_sequence_order(batch(sequence, sequence=sequence))
        drained = [accumulator.drain({KEY: 1}, 1, None, 10**6)[0] for _ in range(6)]
        assert [one.base_sequence for one in drained] == [0, 2, 4, 6, 8, -1]

    def test_what_failed_first_goes_back_in_front_so_the_order_turns_without_sequences(self):
        accumulator = RecordAccumulator(config(linger_ms=0, batch_size=100, idempotent=False), Random(1))
        for number in range(3):
            accumulator.append(KEY, PAYLOAD, number, 0, 0)
            accumulator.append(KEY, PAYLOAD, number, 0, 0)
        sent = [accumulator.drain({KEY: 1}, 1, None, 0)[0] for _ in range(3)]
        for one in sent:
            accumulator.reenqueue(one, False, 5)
        again = [accumulator.drain({KEY: 1}, 1, None, 10**6)[0] for _ in range(3)]
        assert again == sent[::-1]

    @pytest.mark.parametrize(("attempts", "mean"), [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (60, 1000)])
    def test_backoff_doubles_give_or_take_a_fifth_and_did_not_before_3_7(self, attempts, mean):
        """KIP-580; at most retry.backoff.max.ms, since Kafka 3.7."""
        accumulator = RecordAccumulator(config(), Random(1))
        drawn = {accumulator.backoff(attempts) for _ in range(1000)}
        assert min(drawn) < 0.83 * mean
        assert 0.8 * mean <= min(drawn)
        assert 1.17 * mean < max(drawn) <= 1.2 * mean or max(drawn) == 1000
        assert max(drawn) <= 1000
        assert RecordAccumulator(config(V2_0), Random(1)).backoff(attempts) == 100

    def test_delivery_timeout_ends_waiting_and_before_it_existed_the_request_timeout_did(self):
        current, old = RecordAccumulator(config(), Random(1)), RecordAccumulator(config(V2_0, linger_ms=0), Random(1))
        for accumulator in (current, old):
            accumulator.append(KEY, PAYLOAD, 1, 0, 0)
        assert current.expired(119_999) == []
        assert old.expired(30_000) == []
        assert len(current.expired(120_000)) == len(old.expired(30_001)) == 1

    def test_a_full_batch_of_2_0_expires_by_its_last_record_and_others_by_their_first(self):
        """ProducerBatch.maybeExpire: linger.ms is for batches that may still be filled."""
        room = ProducerBatch.created(KEY, PAYLOAD, 0).size + 2 * PAYLOAD.encoded_size(0)
        accumulator = RecordAccumulator(config(V2_0, batch_size=room, linger_ms=50_000), Random(1))
        for at in (4, 10, 20):
            accumulator.append(KEY, PAYLOAD, 0, 0, at)
        full, last = accumulator.queues[KEY]
        assert accumulator.expired(10 + 30_000) == []
        assert accumulator.expired(10 + 30_001) == [full]
        assert accumulator.expired(20 + 50_000 + 30_000) == []
        assert accumulator.expired(20 + 50_000 + 30_001) == [last]

    def test_parts_of_a_batch_that_was_too_large_are_as_large_as_may_be(self):
        whole = batch(*range(9), sequence=0)
        empty, size = ProducerBatch.created(KEY, PAYLOAD, 0).size, PAYLOAD.encoded_size(0)
        for limit, counts in ((empty + 3 * size, [3, 3, 3]), (empty + 4 * size, [4, 4, 1]), (1, [1] * 9)):
            parts = whole.split(limit, 50)
            assert [part.record_count for part in parts] == counts
            # their delivery timeout goes on
            assert {(part.created_at, part.last_attempt_at, part.is_split, part.closed) for part in parts} == {
                (whole.created_at, 50, True, True)
            }

    def test_a_batch_too_large_is_cut_and_shares_its_sequences(self):
        accumulator = RecordAccumulator(config(batch_size=150), Random(1))
        whole = batch(*range(9), sequence=2**31 - 4)
        accumulator.queues[KEY] = deque()
        parts = accumulator.split_and_reenqueue(whole, 7)
        assert [number for part in parts for number in part.numbers] == list(range(9))
        assert parts[0].base_sequence == 2**31 - 4
        for before, after in pairwise(parts):
            assert after.base_sequence == (before.base_sequence + before.record_count) % 2**31
        assert all(part.size <= 150 for part in parts)

    def test_only_the_current_client_halves_what_is_still_too_large(self):
        for client, smaller in ((CURRENT, True), (V2_0, False)):
            accumulator = RecordAccumulator(config(client, batch_size=400), Random(1))
            accumulator.queues[KEY] = deque()
            (again,) = accumulator.split_and_reenqueue(batch(*range(8)), 0)
            assert (len(accumulator.split_and_reenqueue(again, 0)) > 1) is smaller


class TestDrainRules:
    def test_no_new_batch_while_one_given_up_is_unresolved(self):
        rules = manager(batch(1))
        rules.mark_unresolved(rules.of(KEY).in_flight[0])
        assert rules.must_wait(batch(2))
        del rules.unresolved[KEY]
        assert not rules.must_wait(batch(2))

    def test_a_retry_waits_until_it_is_the_first_in_flight(self):
        first, second = batch(1), batch(2)
        rules = manager(first, second)
        assert rules.must_wait(second)
        assert not rules.must_wait(first)

    def test_nothing_without_a_producer_id_nor_in_a_new_epoch_while_old_batches_are_under_way(self):
        rules = manager(batch(1))
        rules.producer = (1, 1)
        assert rules.must_wait(batch(2))
        rules.of(KEY).in_flight.clear()
        assert not rules.must_wait(batch(2))
        rules.producer = NO_PRODUCER
        assert rules.must_wait(batch(2))

    def test_nothing_while_it_drains_or_after_it_failed(self):
        for name in ("failed", "draining"):
            rules = manager(batch(1))
            assert not rules.must_wait(batch(2))
            setattr(rules, name, True)
            assert rules.must_wait(batch(2))

    def test_of_the_batches_given_up_the_last_sequence_counts(self):
        """markSequenceUnresolved: the greater of the two."""
        for sequences, behind in (((0, 4), 6), ((4, 0), 6), ((4,), 6)):
            rules = manager()
            for sequence in sequences:
                rules.mark_unresolved(batch(1, 2, sequence=sequence))
            assert rules.unresolved == {KEY: behind}
            assert (rules.is_unresolved(KEY), rules.is_unresolved(("orders", 1))) == (True, False)

    @pytest.mark.parametrize(
        ("restarts", "in_flight", "epoch", "producer", "following"),
        [
            (False, 0, 0, (1, 1), 0),  # the last batch of the old epoch: begins again
            (False, 1, 0, (1, 0), 2),
            (False, 0, 1, (1, 0), 2),  # that epoch is current
            (True, 0, 0, (1, 0), 2),
        ],
    )
    def test_before_12152_a_partition_begins_again_with_the_last_answer_of_the_old_epoch(
        self, restarts, in_flight, epoch, producer, following
    ):
        """TransactionManager.handleCompletedBatch of 2.5 to 2.7: maybeUpdateProducerIdAndEpoch when nothing is in flight."""
        rules = TransactionManager(transactional=False, first_sequence=0, bump_restarts_idle_partitions=restarts)
        rules.producer = (1, 0)
        sent = [batch(number) for number in range(2)]
        for one in sent:
            rules.assign(one)
        sequences = rules.of(KEY)
        rules.producer = (1, 1)
        for one in sent:
            one.epoch = epoch
        if not in_flight:
            sequences.untrack(sent[1])
        rules.completed(sent[0])
        assert (sequences.producer, sequences.next_sequence) == (producer, following)

    def test_a_partition_outside_the_transaction_waits(self):
        rules = transaction_manager(transactional=True)
        rules.producer = (1, 0)
        assert rules.must_wait(batch(1))
        rules.partitions_in_transaction[KEY] = None
        assert not rules.must_wait(batch(1))

    def test_a_sequence_once_given_stays(self):
        rules, one = manager(), batch(1, 2, 3)
        rules.assign(one)
        rules.assign(one)
        assert (one.base_sequence, rules.of(KEY).next_sequence) == (0, 3)


E = KafkaError


class TestOtherClients:
    """By their sources: rd_kafka_handle_idempotent_Produce_error of librdkafka, handleReqRespBatch of franz-go."""

    @pytest.mark.parametrize(
        ("error", "number", "attempts", "acknowledged", "again", "fatal"),
        [
            # nothing says why the first in line is out of order; one behind it may follow again
            (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, 0, 0, False, True),
            (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, 0, 0, True, False),
            (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, 0, 1, False, True),
            (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 2, 0, 1, True, False),
            # the first of what is unknown was not written, unless it was sent before
            (E.UNKNOWN_PRODUCER_ID, 0, 0, 0, True, False),
            (E.UNKNOWN_PRODUCER_ID, 0, 1, 0, False, True),
            (E.UNKNOWN_PRODUCER_ID, 1, 0, 0, False, True),
            (E.UNKNOWN_PRODUCER_ID, 1, 0, 1, True, False),
        ],
    )
    def test_librdkafka_goes_on_in_the_next_epoch_where_nothing_can_have_been_written(
        self, error, number, attempts, acknowledged, again, fatal
    ):
        batches = [batch(1), batch(2), batch(3)]
        rules = manager(*batches)
        for one in batches[:acknowledged]:
            rules.completed(one)
        batches[number].attempts = attempts
        assert Librdkafka(rules, CURRENT).can_retry(error, batches[number], 0) is again
        assert (list(rules.bumps), rules.failed) == ([KEY] if again else [], fatal)

    @pytest.mark.parametrize(("error", "again"), [(E.REQUEST_TIMED_OUT, True), (E.MESSAGE_TOO_LARGE, False)])
    def test_other_errors_are_none_of_sequences(self, error, again):
        for client in (Librdkafka, FranzGo):
            one = batch(1)
            rules = manager(one)
            assert client(rules, CURRENT).can_retry(error, one, 0) is again
            assert (rules.bumps, rules.failed) == ({}, False)

    def test_librdkafka_aborts_a_transaction_instead(self):
        first, second = batch(1), batch(2)
        rules = manager(first, second, transactional=True)
        assert not Librdkafka(rules, CURRENT).can_retry(E.OUT_OF_ORDER_SEQUENCE_NUMBER, second, 0)
        assert (rules.bumps, rules.failed) == ({}, False)

    def test_librdkafka_raises_the_epoch_when_all_is_answered(self):
        rules = manager(batch(1))
        recovery = Librdkafka(rules, CURRENT)
        recovery.renew(in_flight=True)
        assert not rules.draining
        rules.request_bump(KEY)
        recovery.renew(in_flight=True)
        assert (rules.draining, rules.producer) == (True, (1, 0))
        recovery.renew(in_flight=False)
        assert (rules.draining, rules.producer) == (False, (1, 1))

    def test_librdkafka_drains_no_transactional_producer(self):
        """Its epoch is raised by InitProducerId, when the transaction has been aborted."""
        rules = manager(batch(1), transactional=True)
        rules.request_bump(KEY)
        Librdkafka(rules, CURRENT).renew(in_flight=True)
        assert (rules.draining, rules.producer) == (False, (1, 0))

    @pytest.mark.parametrize(
        "error",
        [
            E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            E.UNKNOWN_PRODUCER_ID,
            E.INVALID_PRODUCER_ID_MAPPING,
            E.INVALID_PRODUCER_EPOCH,
        ],
    )
    def test_franz_go_raises_the_epoch_after_every_error_of_sequences(self, error):
        one = batch(1)
        rules = manager(one)
        assert FranzGo(rules, CURRENT).can_retry(error, one, 0)
        assert list(rules.bumps) == [KEY]

    def test_franz_go_does_not_send_a_damaged_batch_again(self):
        one = batch(1)
        assert not FranzGo(manager(one), CURRENT).can_retry(E.CORRUPT_MESSAGE, one, 0)

    @pytest.mark.parametrize(
        ("acknowledged", "log_start", "again"),
        [(None, 5, False), (10, 10, False), (10, 11, True), (0, 0, False), (0, 1, True)],
    )
    def test_within_a_transaction_franz_go_goes_on_where_the_log_lost_its_head(self, acknowledged, log_start, again):
        first, second = batch(1), batch(2)
        rules = manager(first, second, transactional=True)
        if acknowledged is not None:
            first.offset = acknowledged
            rules.completed(first)
        assert FranzGo(rules, CURRENT).can_retry(E.UNKNOWN_PRODUCER_ID, second, log_start) is again
        assert list(rules.bumps) == ([KEY] if again else [])


class TestRecovery:
    def test_out_of_order_is_retried_while_an_earlier_batch_is_missing(self):
        first, second = batch(1), batch(2)
        for generation in (BumpEpoch, ResetProducerId):
            rules = manager(first, second)
            recovery = generation(rules, V2_0)
            assert recovery.can_retry(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, second, 0)
            assert rules.bumps == {}
            rules.partitions.clear()

    def test_a_gap_at_the_next_sequence_bumps_the_epoch_now_and_lost_the_producer_id_then(self):
        one = batch(1)
        rules = manager(one)
        recovery = BumpEpoch(rules, CURRENT)
        assert recovery.can_retry(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, one, 0)
        recovery.renew(in_flight=False)
        assert (rules.producer, one.epoch, one.base_sequence) == ((1, 1), 1, 0)
        one = batch(1)
        rules = manager(one)
        old_recovery = ResetProducerId(rules, V2_0)
        assert not old_recovery.can_retry(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, one, 0)
        old_recovery.failed(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, one, adjust=True)
        assert rules.producer == NO_PRODUCER

    def test_the_epoch_after_the_last_is_a_new_producer_id(self):
        rules = manager(batch(1))
        rules.producer = (1, MAX_EPOCH)
        rules.request_bump(KEY)
        BumpEpoch(rules, CURRENT).renew(in_flight=False)
        assert rules.producer == NO_PRODUCER

    def test_old_clients_start_again_at_zero_when_the_head_of_the_log_was_deleted(self):
        first, second = batch(1), batch(2)
        rules = manager(first, second)
        first.offset = 10
        rules.completed(first)
        recovery = ResetProducerId(rules, V2_0)
        # the last record acknowledged is still there
        assert not recovery.can_retry(KafkaError.UNKNOWN_PRODUCER_ID, second, 10)
        assert second.base_sequence == 1
        assert recovery.can_retry(KafkaError.UNKNOWN_PRODUCER_ID, second, 11)
        assert (second.producer_id, second.epoch, second.base_sequence) == (1, 0, 0)
        third = batch(3)
        rules.of(KEY).take(third, transactional=False)
        assert not recovery.can_retry(KafkaError.UNKNOWN_PRODUCER_ID, third, 5)

    def test_a_hole_left_by_expired_batches_is_resolved_by_a_new_epoch_or_id(self):
        for generation, expected in ((BumpEpoch, (1, 1)), (ResetProducerId, NO_PRODUCER)):
            one = batch(1)
            rules = manager(one)
            recovery = generation(rules, V2_0)
            recovery.failed(KafkaError.REQUEST_TIMED_OUT, one, adjust=False)
            rules.mark_unresolved(one)
            recovery.resolve()
            recovery.renew(in_flight=False)
            assert rules.producer == expected

    def test_an_expired_batch_whose_successor_was_acknowledged_leaves_no_hole(self):
        first, second = batch(1), batch(2)
        rules = manager(first, second)
        recovery = BumpEpoch(rules, CURRENT)
        recovery.failed(KafkaError.REQUEST_TIMED_OUT, first, adjust=False)
        rules.mark_unresolved(first)
        rules.completed(second)
        recovery.resolve()
        assert (rules.bumps, rules.unresolved) == ({}, {})

    def test_a_refused_batch_lets_the_later_ones_move_up_in_the_old_client(self):
        first, second = batch(1, 2), batch(3)
        rules = manager(first, second)
        ResetProducerId(rules, V2_0).failed(KafkaError.MESSAGE_TOO_LARGE, first, adjust=True)
        assert (second.base_sequence, rules.of(KEY).next_sequence, second.sequence_was_reset) == (0, 1, True)

    @pytest.mark.parametrize("generation", [BumpEpoch, ResetProducerId])
    @pytest.mark.parametrize(
        ("error", "again"),
        [
            (KafkaError.NOT_LEADER_OR_FOLLOWER, True),
            (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, True),
            (KafkaError.NETWORK_EXCEPTION, True),
            (KafkaError.REQUEST_TIMED_OUT, True),
            (KafkaError.CORRUPT_MESSAGE, True),
            (KafkaError.NOT_ENOUGH_REPLICAS, True),
            (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
            (KafkaError.CONCURRENT_TRANSACTIONS, True),
            (KafkaError.MESSAGE_TOO_LARGE, False),
            (KafkaError.INVALID_PRODUCER_EPOCH, False),
            (KafkaError.INVALID_TXN_STATE, False),
            (KafkaError.INVALID_PRODUCER_ID_MAPPING, False),
            (KafkaError.UNKNOWN_SERVER_ERROR, False),
        ],
    )
    def test_only_retriable_errors_are_sent_again(self, generation, error, again):
        """Which exceptions of org.apache.kafka.common.errors are RetriableException."""
        one = batch(1)
        rules = manager(one)
        assert generation(rules, V2_0).can_retry(error, one, 0) is again
        assert (rules.bumps, rules.producer) == ({}, (1, 0))

    def test_an_old_client_does_not_send_batches_of_a_former_producer_id_again(self):
        one = batch(1)
        rules = manager(one)
        recovery = ResetProducerId(rules, V2_0)
        assert recovery.keeps(one)
        rules.producer = (2, 0)
        assert not recovery.can_retry(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, one, 0)
        assert not recovery.keeps(one)
        assert recovery.keeps(batch(2))  # has no sequence yet
        assert recovery.can_retry(KafkaError.NETWORK_EXCEPTION, one, 0)
        assert BumpEpoch(rules, CURRENT).keeps(one)

    @pytest.mark.parametrize(
        ("client", "error", "producer", "again"),
        [
            (V0_11, E.DUPLICATE_SEQUENCE_NUMBER, (1, 0), True),
            (V0_11, E.OUT_OF_ORDER_SEQUENCE_NUMBER, (1, 0), False),
            (V0_11, E.UNKNOWN_PRODUCER_ID, (1, 0), False),
            (V2_0, E.DUPLICATE_SEQUENCE_NUMBER, (1, 0), False),
            (V2_0, E.UNKNOWN_PRODUCER_ID, (1, 0), True),
            (V2_0, E.UNKNOWN_PRODUCER_ID, (2, 0), False),
            (V2_0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, (1, 0), True),
            (V2_0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, (2, 0), False),
        ],
    )
    def test_what_a_client_before_kip_360_sends_again(self, client, error, producer, again):
        """Sender.canRetry of 0.11 knows no errors of sequences, TransactionManager.canRetry of 2.0 those of its own producer id."""
        first, second = batch(1), batch(2)
        rules = manager(first, second)
        rules.producer = producer
        # with a log that begins after what was acknowledged, and a batch before it that is to be sent again
        assert ResetProducerId(rules, client).can_retry(error, second, 1) is again

    @pytest.mark.parametrize(
        ("client", "error", "transactional", "producer", "following", "sequences"),
        [
            (V2_0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, False, (1, 0), NO_PRODUCER, [0, 1]),
            (V2_0, E.UNKNOWN_PRODUCER_ID, False, (1, 0), NO_PRODUCER, [0, 1]),
            # not an error that 0.11 knows: its batch is refused as any other
            (V0_11, E.UNKNOWN_PRODUCER_ID, False, (1, 0), (1, 0), [0, 0]),
            # a transaction is aborted instead
            (V2_0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, True, (1, 0), (1, 0), [0, 0]),
            # of a producer id given back
            (V2_0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, False, (2, 0), (2, 0), [0, 1]),
            (V2_0, E.MESSAGE_TOO_LARGE, False, (1, 0), (1, 0), [0, 0]),
        ],
    )
    def test_what_a_refused_batch_does_to_a_producer_before_kip_360(
        self, client, error, transactional, producer, following, sequences
    ):
        """Sender.failBatch of 0.11 and 2.0: the id is given back, or the later batches move up."""
        first, second = batch(1), batch(2)
        rules = manager(first, second, transactional=transactional)
        rules.producer = producer
        ResetProducerId(rules, client).failed(error, first, adjust=True)
        assert rules.producer == following
        assert [each.base_sequence for each in (first, second)] == sequences

    def test_a_refused_batch_of_a_partition_that_has_begun_again_changes_nothing(self):
        first = batch(1)
        rules = manager(first)
        rules.partitions.clear()
        ResetProducerId(rules, V2_0).failed(E.MESSAGE_TOO_LARGE, first, adjust=True)
        assert rules.partitions == {}

    def test_what_was_numbered_anew_is_early_whatever_was_acknowledged(self):
        """TransactionManager.canRetry: `batch.sequenceHasBeenReset()`; a hole that is being resolved comes first."""
        for generation in (BumpEpoch, ResetProducerId):
            for transactional in (False, True):
                one = batch(1)
                rules = manager(one, transactional=transactional)
                rules.of(KEY).start_again((1, 0))
                for error in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID):
                    assert generation(rules, V2_0).can_retry(error, one, 0)
                assert rules.bumps == {}

    @pytest.mark.parametrize(("unresolved", "bumps"), [(None, True), (1, False), (0, True)])
    def test_out_of_order_raises_the_epoch_unless_another_hole_is_being_resolved(self, unresolved, bumps):
        """TransactionManager.canRetry of 2.5: a batch that follows the unresolved one, or one where nothing is unresolved."""
        one = batch(1)
        rules = manager(one)
        if unresolved is not None:
            rules.unresolved[KEY] = unresolved
        assert BumpEpoch(rules, CURRENT).can_retry(E.OUT_OF_ORDER_SEQUENCE_NUMBER, one, 0)
        assert list(rules.bumps) == ([KEY] if bumps else [])

    def test_a_forgotten_idempotent_producer_bumps_now(self):
        """UNKNOWN_PRODUCER_ID: TransactionManager.canRetry of 2.5, whatever was acknowledged."""
        one = batch(1)
        rules = manager(one)
        assert BumpEpoch(rules, CURRENT).can_retry(KafkaError.UNKNOWN_PRODUCER_ID, one, 0)
        assert list(rules.bumps) == [KEY]

    @pytest.mark.parametrize(("log_start", "again"), [(10, False), (11, True)])
    def test_a_forgotten_transactional_producer_starts_again_where_its_records_were_deleted(self, log_start, again):
        rules = transaction_manager(transactional=True)
        rules.producer = (1, 0)
        first, second = batch(1), batch(2)
        for each in (first, second):
            rules.of(KEY).take(each, transactional=True)
        first.offset = 10
        rules.completed(first)
        assert BumpEpoch(rules, CURRENT).can_retry(KafkaError.UNKNOWN_PRODUCER_ID, second, log_start) is again
        assert rules.bumps == {}
        assert second.base_sequence == (0 if again else 1)

    def test_a_transactional_producer_with_a_gap_does_not_send_it_again(self):
        rules = transaction_manager(transactional=True)
        rules.producer = (1, 0)
        one = batch(1)
        rules.of(KEY).take(one, transactional=True)
        assert not BumpEpoch(rules, CURRENT).can_retry(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, one, 0)
        assert rules.bumps == {}

    @pytest.mark.parametrize(
        ("error", "adjust", "bumps"),
        [
            (KafkaError.MESSAGE_TOO_LARGE, True, True),  # refused: its sequences will be missing
            (KafkaError.REQUEST_TIMED_OUT, False, False),  # may be in the log: resolved later
            (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, False, True),
            (KafkaError.UNKNOWN_PRODUCER_ID, True, False),
        ],
    )
    def test_what_a_failed_batch_does_to_an_idempotent_producer(self, error, adjust, bumps):
        """TransactionManager.handleFailedBatch."""
        first, second = batch(1), batch(2)
        rules = manager(first, second)
        BumpEpoch(rules, CURRENT).failed(error, first, adjust=adjust)
        assert bool(rules.bumps) is bumps
        assert rules.of(KEY).in_flight == [second]
        assert second.base_sequence == (0 if error is KafkaError.UNKNOWN_PRODUCER_ID else 1)

    @pytest.mark.parametrize(("adjust", "sequence"), [(True, 0), (False, 1)])
    def test_a_failed_batch_of_a_transaction_closes_its_gap_if_it_was_refused(self, adjust, sequence):
        rules = transaction_manager(transactional=True)
        rules.producer = (1, 0)
        first, second = batch(1), batch(2)
        for each in (first, second):
            rules.of(KEY).take(each, transactional=True)
        BumpEpoch(rules, CURRENT).failed(KafkaError.MESSAGE_TOO_LARGE, first, adjust=adjust)
        assert (rules.bumps, second.base_sequence) == ({}, sequence)

    def test_an_old_transactional_producer_fails_for_good_when_a_batch_expires(self):
        """Before KIP-360 there is no way back for its sequences (TransactionManager of 2.0)."""
        rules = transaction_manager(transactional=True)
        rules.producer = (1, 0)
        one = batch(1)
        rules.of(KEY).take(one, transactional=True)
        recovery = ResetProducerId(rules, V2_0)
        assert not recovery.resolve()
        rules.mark_unresolved(one)
        assert recovery.resolve()

    def test_a_hole_is_not_resolved_while_batches_behind_it_are_under_way(self):
        for generation in (BumpEpoch, ResetProducerId):
            first, second = batch(1), batch(2)
            rules = manager(first, second)
            recovery = generation(rules, V2_0)
            recovery.failed(KafkaError.REQUEST_TIMED_OUT, first, adjust=False)
            rules.mark_unresolved(first)
            recovery.resolve()
            recovery.renew(in_flight=False)
            assert (rules.producer, list(rules.unresolved)) == ((1, 0), [KEY])

    def test_only_partitions_that_asked_start_again_at_0(self):
        """bumpIdempotentProducerEpoch: others go on under the new epoch when they are drained."""
        other = ("orders", 1)
        rules = manager(batch(1))
        rules.of(other)
        rules.mark_unresolved(rules.of(KEY).in_flight[0])
        rules.request_bump(KEY)
        BumpEpoch(rules, CURRENT).renew(in_flight=False)
        assert rules.producer == (1, 1)
        assert rules.of(KEY).producer == (1, 1)
        assert rules.of(other).producer == (1, 0)
        assert (rules.bumps, rules.unresolved) == ({}, {})
