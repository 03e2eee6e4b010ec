"""What a log shows of lost, duplicated and reordered records, rule by rule; whether kaudit finds it, test_trouble.py says."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.model.batch_fields import NO_SEQUENCE
from kaudit.simulate.application import TransactionEnding
from kaudit.simulate.cluster.partition import Election
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.output.record_outcomes import Acknowledgement, BatchOutcome, DeliveryOutcome
from kaudit.simulate.output.visibility import Trouble, troubles
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from tests.simulate.trouble import epoch_of_loss

KEY = ("orders", 0)
PAYLOAD = Payload("app", 20, "app", 1)
ACKNOWLEDGED, FAILED, UNANSWERED = Acknowledgement.ACKNOWLEDGED, Acknowledgement.FAILED, Acknowledgement.UNANSWERED
NOWHERE, TWICE, ONCE = DeliveryOutcome.NOWHERE, DeliveryOutcome.TWICE, DeliveryOutcome.ONCE


def batch(
    *numbers, sequence=NO_SEQUENCE, producer: tuple[int, int] = (7, 0), at=0, session=1, transactional=False
) -> ProducerBatch:
    made = ProducerBatch.created(KEY, Payload("app", 20, "app", session), 0)
    for number in numbers:
        made.append(number, at, PAYLOAD.encoded_size(number), 0)
    if sequence != NO_SEQUENCE:
        made.set_producer_state(*producer, sequence, transactional=transactional)
    return made


def stored(base, one: ProducerBatch, epoch=0) -> StoredBatch:
    last = base + one.record_count - 1
    state = None
    if one.has_sequence:
        state = DataBatch(
            one.producer_id, one.epoch, one.base_sequence, one.last_sequence, base, last, 0, one.transactional
        )
    return StoredBatch(base, last, epoch, 0, b"", state, one)


def marked(base, producer: tuple[int, int] = (7, 0), epoch=0) -> StoredBatch:
    return StoredBatch(base, base, epoch, 0, b"", MarkerBatch(*producer, 0, base, 0, True), None)


class Story:
    """A partition whose leader has these batches, and what became of its producer's."""

    def __init__(self, *log: StoredBatch, start=0, idempotent=True):
        self.partition: Any = SimpleNamespace(leader=1, last_leader=1, writes={}, elections=[])
        self.partition.logs = {1: SimpleNamespace(batches=list(log), log_start=start)}
        application = SimpleNamespace(
            spec=SimpleNamespace(config=SimpleNamespace(idempotent=idempotent)), transactions=[]
        )
        self.application: Any = application
        self.simulation: Any = SimpleNamespace(applications={"app": application})
        self.outcomes: list[BatchOutcome] = []

    def had(self, one: ProducerBatch, acknowledgement, delivery, copies=(), elsewhere=None, out_of_order=()):
        self.outcomes.append(
            BatchOutcome(one, acknowledgement, delivery, list(copies), elsewhere or {}, set(out_of_order))
        )

    def lost(self, *writes: StoredBatch, elsewhere=None):
        """These were written and acknowledged, and are gone."""
        for write in writes:
            assert write.sent is not None
            self.partition.writes[id(write.sent)] = [write]
            self.had(write.sent, ACKNOWLEDGED, NOWHERE, elsewhere=elsewhere)

    def elected(self, epoch, lost_from):
        self.partition.elections.append(Election(0, epoch, None, False, None, lost_from, None, False))

    @property
    def troubles(self) -> list[Trouble]:
        return list(troubles(self.simulation, KEY, self.partition, self.outcomes))


def trouble(what, kind, records, offset=None):
    return Trouble(what, kind, KEY, records, offset)


def test_what_was_never_written_leaves_no_trace():
    story = Story()
    story.had(batch(0, 1, sequence=0), ACKNOWLEDGED, NOWHERE)
    story.had(batch(2, sequence=2), FAILED, NOWHERE)
    story.had(batch(3, sequence=3), UNANSWERED, NOWHERE)
    story.had(batch(4, sequence=4), FAILED, ONCE, [0])
    assert story.troubles == [
        trouble("acknowledged_but_lost", "what was never written leaves no trace", 2),
        trouble("failed", "what was refused or never arrived leaves no trace", 1),
    ]


@pytest.mark.parametrize(
    ("epoch", "lost_from", "cut"), [(1, 4, 1), (1, 5, 1), (1, 6, -1), (1, None, -1), (0, 4, -1), (2, 5, 2)]
)
def test_a_batch_was_cut_off_by_the_first_later_election_that_lost_some_of_it(epoch, lost_from, cut):
    story = Story()
    story.elected(epoch, lost_from)
    story.elected(9, None)
    write = stored(4, batch(0, 1, sequence=0))
    assert epoch_of_loss(write, story.partition.elections) == cut
    story.elected(9, 0)
    assert epoch_of_loss(write, story.partition.elections) == (9 if cut == -1 else cut)


def test_a_tail_is_lost_together_and_another_election_s_apart():
    story = Story(idempotent=False)
    story.elected(1, 4)
    story.elected(2, 8)
    story.lost(stored(4, batch(0, 1)), stored(6, batch(2)), stored(8, batch(3, 4, 5), epoch=1))
    story.lost(stored(7, batch(6, session=2)), elsewhere={2: [7]})
    why = "without producer ids no sequence is missing"
    elsewhere = "only another replica has them still: kaudit diff compares the replicas"
    assert story.troubles == [
        trouble("acknowledged_but_lost", why, 3),
        trouble("acknowledged_but_lost", why, 3),
        trouble("acknowledged_but_lost", elsewhere, 1),
    ]


BUMPED = (7, 1)
BEFORE, BEHIND = "nothing of the producer lies before them", "the producer wrote nothing more under that producer id"


@pytest.mark.parametrize(
    ("log", "why", "offset"),
    [
        # in the same epoch, before and after it
        ([(0, 0, (7, 0), 0), (2, 4, (7, 0), 1)], "went on in the same epoch", 2),
        ([(0, 0, (7, 0), 0), (2, 5, (7, 0), 1), (3, 4, (7, 0), 1)], "went on in the same epoch", 2),
        ([(2, 4, (7, 0), 1)], BEFORE, None),
        # in the next epoch (KIP-360)
        ([(0, 0, (7, 0), 0), (2, 0, BUMPED, 1), (3, 1, BUMPED, 1)], "wrote before and after", 2),
        ([(2, 0, BUMPED, 1)], BEFORE, None),
        ([(0, 0, (7, 0), 0), (2, 0, BUMPED, 0)], BEHIND, None),
        ([(0, 0, (7, 0), 0)], BEHIND, None),
        ([(0, 0, (7, 0), 0), (2, 0, (8, 0), 1)], BEHIND, None),
        ([], BEHIND, None),
        ([(0, 0, (7, 0), 0), (2, 5, BUMPED, 1)], "wrote before and after", 2),
        ([(0, 0, (7, 0), 0), (2, 2, (7, 0), 1)], BEHIND, None),
        ([(0, -1, (7, 0), 0), (2, 5, (7, 0), 1), (3, -1, (7, 0), 1)], BEFORE, None),
        # an older one of the same epoch, again
        ([(2, 1, (7, 0), 1)], BEHIND, None),
    ],
)
def test_a_lost_tail_shows_where_its_producer_has_batches_on_both_sides(log, why, offset):
    """The tail: sequences 2 and 3 of (7, 0) at offsets 1 and 2, in leader epoch 0."""
    found = [
        stored(base, batch(90 + base, sequence=sequence, producer=producer), epoch)
        for base, sequence, producer, epoch in log
    ]
    story = Story(*found)
    story.elected(1, 1)
    story.lost(stored(1, batch(2, sequence=2)), stored(2, batch(3, sequence=3)))
    assert story.troubles == [trouble("acknowledged_but_lost", why, 2, offset)]


@pytest.mark.parametrize(
    ("start", "why", "offset"), [(0, "wrote before and after", 3), (1, "wrote before and after", 3), (2, BEFORE, None)]
)
def test_what_was_deleted_shows_nothing(start, why, offset):
    head, behind = batch(0, 1, sequence=0), batch(3, sequence=0, producer=BUMPED)
    story = Story(stored(0, head), stored(3, behind, 1), start=start)
    story.elected(1, 2)
    story.lost(stored(2, batch(2, sequence=2)))
    assert story.troubles == [trouble("acknowledged_but_lost", why, 1, offset)]


@pytest.mark.parametrize(
    ("first", "last", "ending", "shown"),
    [
        (2, 4, TransactionEnding.COMMITTED, "committed"),
        (0, 2, TransactionEnding.COMMITTED, "committed"),
        (0, 1, TransactionEnding.COMMITTED, "not committed"),
        (3, 4, TransactionEnding.COMMITTED, "not committed"),
        (2, 2, TransactionEnding.ABORTED, "not committed"),
    ],
)
def test_a_transaction_without_its_tail_looks_whole(first, last, ending, shown):
    head = batch(0, sequence=0, transactional=True)
    story = Story(stored(0, head), marked(1, epoch=1), marked(2, BUMPED, epoch=1))
    story.application.transactions.append((first, last, ending))
    story.elected(1, 1)
    story.lost(stored(1, batch(2, sequence=2, transactional=True)))
    why = f"a transaction without them looks whole ({shown})"
    assert story.troubles == [trouble("acknowledged_but_lost", why, 1)]


@pytest.mark.parametrize(
    ("start", "kinds"),
    [
        (0, [("same sequences", 2), ("same sequences", 4)]),
        (1, [("the first copy was deleted", None), ("same sequences", 4)]),
        (2, [("the first copy was deleted", None), ("same sequences", 4)]),
        (3, [("the first copy was deleted", None), ("the first copy was deleted", None)]),
    ],
)
def test_each_further_copy_is_shown_beside_the_first_that_is_there(start, kinds):
    one = batch(0, 1, sequence=0)
    story = Story(*(stored(base, one) for base in (0, 2, 4)), start=start)
    story.had(one, ACKNOWLEDGED, TWICE, [0, 2, 4])
    assert story.troubles == [trouble("duplicates", kind, 2, offset) for kind, offset in kinds]


@pytest.mark.parametrize(
    ("first", "again", "kind"),
    [
        (None, None, "retried without idempotence"),
        ((7, 0), None, "retried without idempotence"),
        (None, (7, 0), "retried without idempotence"),
        ((7, 0), (8, 0), "under another producer id"),
        ((7, 0), (8, 1), "under another producer id"),
        ((7, 0), (7, 1), "under another epoch"),
        ((7, 0), (7, 0), "same sequences"),
    ],
)
def test_how_a_copy_was_written(first, again, kind):
    writes = []
    for base, producer in ((0, first), (1, again)):
        plain = producer is None
        writes.append(stored(base, batch(0) if plain else batch(0, sequence=0, producer=producer)))
    story = Story(*writes)
    story.had(batch(0), ACKNOWLEDGED, TWICE, [0, 1])
    assert story.troubles == [trouble("duplicates", kind, 1, 1)]


def test_a_producer_that_goes_on_in_the_same_epoch_alone_was_not_there_before():
    before = stored(0, batch(0, sequence=0))
    story = Story(before, stored(3, batch(9, sequence=5, producer=BUMPED), 1))
    story.elected(1, 2)
    story.lost(stored(2, batch(2, sequence=0, producer=BUMPED)))
    assert story.troubles == [trouble("acknowledged_but_lost", BEFORE, 1)]


def test_a_transaction_that_goes_on_behind_its_tail_shows_it():
    one: dict[str, Any] = {"transactional": True}
    log = [stored(0, batch(0, sequence=0, **one)), stored(2, batch(9, sequence=5, **one), 1)]
    for found, why, offset in ((log, "went on in the same epoch", 2), (log[1:], BEFORE, None)):
        story = Story(*found)
        story.elected(1, 1)
        story.lost(stored(1, batch(2, sequence=2, **one)), elsewhere={3: [1]} if offset else None)
        assert story.troubles == [trouble("acknowledged_but_lost", why, 1, offset)]


NOT_SHOWN = "offsets are the order of the log; that of sending is in the payload, if anywhere"
OLDER = "older than those before them"


@pytest.mark.parametrize(
    ("order", "start", "offset"),
    [
        ("0122", 0, None),  # a copy, and nothing is out of order
        ("01203", 0, None),  # 0 again, older than 2: it is a copy
        ("0213", 0, None),  # older, and no copy that would explain it
        ("02103", 0, 2),  # 1 came late, beside a copy of 0
        ("021032", 0, 2),
        ("0210 3", 1, None),  # the first copy of 0 was deleted
        ("01310", 0, 4),  # sent again the other way round
        ("013103", 0, 4),
        ("0131", 0, None),
        ("212", 0, 1),
        ("03210", 0, 2),
        ("2101", 0, None),
        ("0101", 0, None),
        ("01232301", 0, None),
        ("010", 0, None),
        ("01021", 0, None),
    ],
)
def test_reordered_batches_show_by_their_times_beside_a_copy(order, start, offset):
    """Batches without producer ids by the time of their first record; they show nothing where times go back elsewhere."""
    sent = {name: batch(int(name), at=int(name)) for name in "0123"}
    names = order.replace(" ", "")
    story = Story(*(stored(base, sent[name]) for base, name in enumerate(names)), start=start, idempotent=False)
    story.had(sent["1"], ACKNOWLEDGED, ONCE, [0], out_of_order=[1])
    story.had(sent["2"], ACKNOWLEDGED, ONCE, [0])
    assert [one.kind for one in story.troubles] == [NOT_SHOWN if offset is None else OLDER]
    assert [(one.what, one.records, one.offset) for one in story.troubles] == [("out_of_order", 1, offset)]


def test_records_in_order_are_no_trouble():
    story = Story(stored(0, batch(0)), stored(1, batch(1)))
    story.had(batch(0), ACKNOWLEDGED, ONCE, [0])
    assert story.troubles == []
