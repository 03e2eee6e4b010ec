"""What became of each record of a run, and the sentence that says why, rule by rule."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.simulate.cluster.partition import Election
from kaudit.simulate.output.record_outcomes import Acknowledgement, BatchOutcome, DeliveryOutcome, batch_outcomes
from kaudit.simulate.output.truth import SUMMARY, Truth
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from tests.simulate.test_visibility import KEY, stored

PAYLOAD = Payload("orders-app", 20, "shop", 1)
ACKNOWLEDGED, FAILED, UNANSWERED = Acknowledgement.ACKNOWLEDGED, Acknowledgement.FAILED, Acknowledgement.UNANSWERED
ONCE, TWICE, NOWHERE, DELETED = (
    DeliveryOutcome.ONCE, DeliveryOutcome.TWICE, DeliveryOutcome.NOWHERE, DeliveryOutcome.DELETED,
)  # fmt: skip


def sent(
    *numbers: int,
    producer: tuple[int, int] | None = (7, 0),
    session: int = 1,
    offset: int = -1,
    error: KafkaError | None = None,
    last_error: KafkaError | None = None,
    attempts: int = 0,
    finished: bool = True,
) -> ProducerBatch:
    """A batch of these records, each sent at a hundred times its number."""
    made = ProducerBatch.created(KEY, Payload("orders-app", 20, "shop", session), 0)
    for number in numbers:
        made.append(number, 100 * number, PAYLOAD.encoded_size(number), 0)
    if producer is not None:
        made.set_producer_state(*producer, numbers[0], transactional=False)
    made.offset, made.error, made.last_error, made.attempts, made.finished = (
        offset,
        error,
        last_error,
        attempts,
        finished,
    )
    return made


def written(base, batch, producer=None, epoch=0):
    """A batch as it lies at an offset, as it was written under an earlier producer id or epoch."""
    if producer is None:
        return stored(base, batch, epoch)
    before = (batch.producer_id, batch.epoch)
    batch.producer_id, batch.epoch = producer
    found = stored(base, batch, epoch)
    batch.producer_id, batch.epoch = before
    return found


class Run:
    """A partition led by broker 1, with a replica on broker 2."""

    def __init__(self, leader=(), replica=(), *, log_start=0, elections=(), acks=-1, idempotent=True, leads=True):
        self.partition: Any = SimpleNamespace(
            leader=1 if leads else None, last_leader=1, writes={}, elections=list(elections)
        )
        self.partition.logs = {
            2: SimpleNamespace(batches=list(replica), log_start=0),
            1: SimpleNamespace(batches=list(leader), log_start=log_start),
        }
        config = SimpleNamespace(idempotent=idempotent, acks=acks)
        self.application: Any = SimpleNamespace(batches=[], spec=SimpleNamespace(config=config))
        transactions = SimpleNamespace(under_way=lambda: iter(()))
        self.simulation: Any = SimpleNamespace(
            cluster=SimpleNamespace(partitions={KEY: self.partition}, transactions=transactions),
            applications={"shop": self.application},
        )
        for write in leader:
            self.wrote(write)

    def wrote(self, *writes):
        for write in writes:
            self.partition.writes.setdefault(id(write.sent), []).append(write)

    def outcomes(self, *batches) -> list[BatchOutcome]:
        self.application.batches = list(batches)
        return batch_outcomes(self.simulation)[KEY]

    def outcome(self, batch):
        (found,) = self.outcomes(batch)
        return found.acknowledgement, found.delivery, found.copies, found.why


@pytest.mark.parametrize("leads", [True, False])
def test_a_batch_that_was_written_once(leads):
    """Of a partition without a leader the last one's log counts."""
    batch = sent(0, 1, offset=4)
    assert Run([written(4, batch)], leads=leads).outcome(batch) == (ACKNOWLEDGED, ONCE, [4], "written at offset 4")


@pytest.mark.parametrize(
    ("fields", "acknowledgement", "why"),
    [
        ({"attempts": 2}, ACKNOWLEDGED, "written at offset 4, sent 3 times"),
        (
            {"error": KafkaError.REQUEST_TIMED_OUT, "attempts": 1},
            FAILED,
            "written at offset 4, but the producer gave up: REQUEST_TIMED_OUT, sent 2 times",
        ),
        (
            {"error": KafkaError.INVALID_PRODUCER_EPOCH},
            FAILED,
            "written at offset 4, but the producer gave up: INVALID_PRODUCER_EPOCH",
        ),
        ({"finished": False}, UNANSWERED, "written at offset 4, the answer never arrived"),
        ({"finished": False, "attempts": 1}, UNANSWERED, "written at offset 4, the answer never arrived, sent 2 times"),
        (
            {"finished": False, "error": KafkaError.UNKNOWN_PRODUCER_ID},
            UNANSWERED,
            "written at offset 4, the answer never arrived",
        ),
    ],
)
def test_what_the_application_knows_of_a_batch_that_was_written(fields, acknowledgement, why):
    batch = sent(0, **fields)
    assert Run([written(4, batch)]).outcome(batch) == (acknowledgement, ONCE, [4], why)


def test_a_batch_that_was_written_again_after_it_was_cut_off():
    batch = sent(0, offset=3, attempts=1)
    run = Run()
    run.wrote(written(6, batch), written(3, batch, epoch=1))
    run.partition.logs[1].batches = [written(3, batch, epoch=1)]
    why = "written at offset 3 after an earlier copy at 6 was truncated, sent 2 times"
    assert run.outcome(batch) == (ACKNOWLEDGED, ONCE, [3], why)


@pytest.mark.parametrize(("log_start", "deleted"), [(5, False), (6, True), (7, True)])
def test_a_batch_below_the_log_start_is_deleted(log_start, deleted):
    """Records 4 and 5: the log starts within it, right behind it, or later."""
    batch = sent(0, 1)
    found = Run([written(4, batch)], log_start=log_start).outcome(batch)
    why = f"written at offset 4, deleted with everything below {log_start}" if deleted else "written at offset 4"
    assert found == (ACKNOWLEDGED, DELETED if deleted else ONCE, [4], why)


def test_of_copies_the_last_one_decides_whether_a_batch_is_deleted():
    batch = sent(0)
    for log_start, delivery in ((4, TWICE), (5, DELETED)):
        run = Run([written(1, batch), written(4, batch)], log_start=log_start)
        assert run.outcome(batch)[1:3] == (delivery, [1, 4])


AGAIN = " and sent again what was under way"


@pytest.mark.parametrize(
    ("idempotent", "producers", "last_error", "why"),
    [
        (
            False, (None, None), KafkaError.REQUEST_TIMED_OUT,
            "written at 1 and 4: sent 2 times after REQUEST_TIMED_OUT, and without idempotence the broker cannot know",
        ),
        (
            False, (None, None), None,
            "written at 1 and 4: sent 2 times, and without idempotence the broker cannot know",
        ),
        (
            True, ((7, 0), (7, 0)), None,
            "written at 1 and 4 with the same sequence: the broker had forgotten the producer when it came again",
        ),
        (
            True, ((7, 0), (7, 1)), KafkaError.REQUEST_TIMED_OUT,
            f"written at 1 and 4: after the delivery timed out the producer went on as id 7 epoch 1{AGAIN}",
        ),
        (
            True, ((7, 3), (9, 0)), KafkaError.UNKNOWN_PRODUCER_ID,
            f"written at 1 and 4: after UNKNOWN_PRODUCER_ID the producer went on as id 9 epoch 0{AGAIN}",
        ),
        (
            True, ((7, 3), (9, 0)), None,
            f"written at 1 and 4: after an error the producer went on as id 9 epoch 0{AGAIN}",
        ),
    ],
)  # fmt: skip
def test_why_a_batch_is_there_twice(idempotent, producers, last_error, why):
    first, again = producers
    batch = sent(0, producer=again, attempts=1, last_error=last_error)
    run = Run([written(1, batch, first), written(4, batch)], idempotent=idempotent)
    run.wrote(written(9, batch))  # one that was cut off is not counted
    assert run.outcome(batch) == (ACKNOWLEDGED, TWICE, [1, 4], why)


def election(epoch, lost_from, *, unclean=False, log_end=3, leader=2):
    return Election(0, epoch, leader, unclean, log_end, lost_from, 1, False)


ENDED = ", whose log ended at 3: it had not replicated it"
BEGINS = "written at offset 4 in leader epoch 1, "


@pytest.mark.parametrize(
    ("elections", "fields", "acks", "why"),
    [
        ([], {}, -1, "acknowledged with acks=all, and cut off since"),
        ([], {}, 1, "acknowledged with acks=1, and cut off since"),
        ([], {}, 0, "acknowledged with acks=0, and cut off since"),
        ([], {"error": KafkaError.REQUEST_TIMED_OUT}, -1, "given up by the producer, and cut off since"),
        ([], {"finished": False}, -1, "not answered, and cut off since"),
        (
            [election(2, 4)], {}, 1,
            f"acknowledged with acks=1; then broker 2 became leader of epoch 2{ENDED}",
        ),
        (
            [election(2, 5, unclean=True)], {}, 1,
            f"acknowledged with acks=1; an unclean election made broker 2 leader of epoch 2{ENDED}",
        ),
        # those that lost something of it: of its own epoch none, later ones not if they lost less; the first of several
        ([election(1, 0), election(2, 6), election(3, None)], {}, 1, "acknowledged with acks=1, and cut off since"),
        (
            [election(2, 6), election(3, 0), election(4, 0)], {}, 1,
            f"acknowledged with acks=1; then broker 2 became leader of epoch 3{ENDED}",
        ),
    ],
)  # fmt: skip
def test_why_a_batch_was_lost_that_had_been_written(elections, fields, acks, why):
    """Two records at offsets 4 and 5."""
    batch = sent(0, 1, **fields)
    run = Run(elections=elections, acks=acks)
    run.wrote(written(2, batch), written(4, batch, epoch=1))
    acknowledgement = FAILED if "error" in fields else UNANSWERED if "finished" in fields else ACKNOWLEDGED
    assert run.outcome(batch) == (acknowledgement, NOWHERE, [], BEGINS + why)


def test_copies_that_only_another_replica_has():
    """The leader has the first at 0 as well: what lies at the same offset on both is one copy."""
    one, two, three = sent(0), sent(1), sent(2)
    run = Run([written(0, one), written(1, three)], [written(0, one), written(1, two), written(2, one)])
    outcomes = run.outcomes(one, two, three)
    assert [outcome.elsewhere for outcome in outcomes] == [{2: [2]}, {2: [1]}, {}]
    assert [outcome.delivery for outcome in outcomes] == [ONCE, NOWHERE, ONCE]


def test_batches_are_listed_as_they_were_sent_and_their_order_in_the_log_is_compared():
    """Of each session by itself; of a batch that is there twice its first copy counts; a batch keeps its records in order."""
    late, early, twice, other = sent(0, 1), sent(2, 3), sent(4), sent(5, session=2)
    log = [(0, other), (1, early), (3, twice), (4, late), (6, twice)]
    outcomes = Run([written(base, batch) for base, batch in log]).outcomes(other, twice, early, late)
    assert [outcome.batch.numbers for outcome in outcomes] == [[0, 1], [2, 3], [4], [5]]
    assert [outcome.out_of_order for outcome in outcomes] == [{0, 1}, set(), set(), set()]


def test_a_record_is_out_of_order_behind_any_later_one():
    batches = [sent(number) for number in range(4)]
    order = [2, 0, 3, 1]
    outcomes = Run([written(base, batches[number]) for base, number in enumerate(order)]).outcomes(*batches)
    assert [outcome.out_of_order for outcome in outcomes] == [{0}, {1}, set(), set()]


def test_how_often_each_thing_happened():
    """By records, not batches; what was sent again in another session is counted once for each time but the first."""
    kept, twice, gone = sent(0, 1), sent(2, 3), sent(4, 5)
    failed, refused = sent(6, error=KafkaError.REQUEST_TIMED_OUT), sent(7, error=KafkaError.INVALID_PRODUCER_EPOCH)
    hanging, elsewhere = sent(8, 9, 10, finished=False), sent(11)
    again, third = sent(1, 2, session=2), sent(2, session=3)
    log = [kept, twice, twice, failed, again, third]
    bases = [0, 2, 4, 6, 7, 9]
    run = Run(
        [written(base, batch) for base, batch in zip(bases, log, strict=True)], [written(20, elsewhere)], log_start=2
    )
    run.application.batches = [kept, twice, gone, failed, refused, hanging, elsewhere, again, third]
    counts = Truth(run.simulation).summary()
    assert list(counts) == list(SUMMARY)
    assert counts == {
        "sent": 15,
        "acknowledged": 10,
        "failed": 2,
        "unanswered": 3,
        "present": 6,
        "absent": 7,
        "deleted": 2,
        "acknowledged_but_lost": 3,
        "written_but_not_acknowledged": 1,
        "duplicate_copies": 2,
        "repeated_across_sessions": 3,
        "out_of_order": 0,
        "on_a_replica_only": 1,
        "open_transactions": 0,
        "hanging_transactions": 0,
    }
