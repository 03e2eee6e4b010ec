"""What the coordinators of a live cluster say, from answers made by hand."""

from types import SimpleNamespace

import pytest

from kaudit.model.coordinator import CoordinatorView, TransactionStanding
from kaudit.model.result import NotAudited
from kaudit.scanning import live_coordinator
from kaudit.source.kafka.answers import DescribedTransaction, ListedTransaction, TopicPartition
from kaudit.source.kafka.failures import AccessDeniedError, UnsupportedRequestError


class Cluster:
    """Answers as brokers do; `asked` are the requests in order."""

    def __init__(self, *described, still=(), authorizer=False, failure=None):
        self.described, self.still, self.authorizer, self.failure = described, still, authorizer, failure
        self.asked = []

    def list_transactions(self):
        self.asked.append("list")
        if self.failure is not None:
            raise self.failure
        return [ListedTransaction(one.transactional_id, one.producer_id, one.state, 0) for one in self.described]

    def describe_transactions(self, listed):
        ids = [one.transactional_id for one in listed]
        self.asked.append(("describe", ids))
        return [one for one in self.described if one.transactional_id in ids]

    def describe_producers(self, partition):
        self.asked.append(("producers", partition))
        return [SimpleNamespace(producer_id=one, current_txn_start_offset=start) for one, start in self.still]

    def has_authorizer(self):
        return self.authorizer


def described(name, producer_id, state="Ongoing", *partitions):
    return DescribedTransaction(name, producer_id, 4, state, 60000, 1000, partitions)


def part(topic, *opened):
    segment = SimpleNamespace(fetched=SimpleNamespace(servers="h:9092", command_config=None))
    directory = SimpleNamespace(topic=topic, partition=0, segments=[segment])
    return SimpleNamespace(
        directory=directory,
        opened=[SimpleNamespace(producer_id=producer_id, first_offset=first) for producer_id, first in opened],
    )


def ask(monkeypatch, cluster, *parts):
    monkeypatch.setattr(live_coordinator, "client_of", lambda servers, config: cluster)
    problems: list[NotAudited] = []
    return live_coordinator.ask_coordinators(parts, problems), problems


def test_only_producers_with_open_transactions_are_described(monkeypatch):
    cluster = Cluster(
        described("a", 7, "Ongoing", TopicPartition("x", 0), TopicPartition("y", 1), TopicPartition("x", 2)),
        described("b", 8),
        still=[(7, 3)],
    )
    one, other = part("x", (7, 3)), part("y")
    view, problems = ask(monkeypatch, cluster, one, other)
    assert problems == []
    # the coordinators first, the leaders after them, and only of partitions where something is open
    assert cluster.asked == ["list", ("describe", ["a"]), ("producers", TopicPartition("x", 0))]
    assert [(known.producer_id, known.first_offset) for known in one.opened] == [(7, 3)]
    (entry,) = view.entries.values()
    assert [(topic.topic, topic.partitions) for topic in entry.value.partitions] == [("x", (0, 2)), ("y", (1,))]
    assert (entry.value.timeout_ms, entry.value.start_timestamp, entry.value.producer_epoch) == (60000, 1000, 4)
    assert view.standing(7, 4, "x", 2).standing is TransactionStanding.ONGOING
    assert view.standing(7, 4, "y", 0).standing is TransactionStanding.NOT_ONGOING


@pytest.mark.parametrize(("still", "left"), [([(7, 3)], [(7, 3)]), ([(7, 9)], []), ([(8, 3)], []), ([], [])])
def test_what_has_ended_meanwhile_is_taken_out(monkeypatch, still, left):
    one = part("x", (7, 3))
    ask(monkeypatch, Cluster(described("a", 7), still=still), one)
    assert [(known.producer_id, known.first_offset) for known in one.opened] == left


@pytest.mark.parametrize(
    ("authorizer", "standing"), [(False, TransactionStanding.NOT_ONGOING), (True, TransactionStanding.UNKNOWN)]
)
def test_a_producer_that_nobody_lists(monkeypatch, authorizer, standing):
    """With an authorizer the principal may not be allowed to see its transactional id."""
    view, _ = ask(monkeypatch, Cluster(still=[(7, 3)], authorizer=authorizer), part("x", (7, 3)))
    verdict = view.standing(7, 4, "x", 0)
    assert verdict.standing is standing
    assert ("to this principal" in verdict.reason) is authorizer


def test_brokers_before_3_0_list_none(monkeypatch):
    failure = UnsupportedRequestError("h:9092", "ListTransactions is not known")
    assert ask(monkeypatch, Cluster(failure=failure), part("x", (7, 3))) == (CoordinatorView(), [])


def test_a_broker_that_does_not_answer_is_a_problem(monkeypatch):
    for failure, unreadable in (
        (TimeoutError(110, "no answer", "h:9092"), True),
        (AccessDeniedError("h:9092", "no answer"), False),  # a principal without rights is no failure
    ):
        view, (note,) = ask(monkeypatch, Cluster(failure=failure), part("x", (7, 3)))
        assert view == CoordinatorView()
        assert note.reason == "their state could not be asked for: h:9092: no answer"
        assert note.unreadable is unreadable
