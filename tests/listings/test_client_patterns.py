"""Producer ids joined over replicas, and the kinds of clients that opened them."""

import numpy as np
import pytest

from kaudit.listings.activity import PRODUCER_ACTIVITY
from kaudit.listings.partition_join import ReplicaPlace, ReplicaRows, join
from kaudit.listings.statistics import Creator, creators, pattern_of, top_creators

MINUTE = 60_000
PLACES = [
    ReplicaPlace("a", 0, "b1"),
    ReplicaPlace("a", 0, "b2", counted=False),
    ReplicaPlace("a", 1, "b1"),
    ReplicaPlace("b", 0, "b1"),
]


def rows(place, *producers):
    """Producers of a replica as (id, batches, records, first and last timestamp, epochs, transactional)."""
    found = np.zeros(len(producers), dtype=PRODUCER_ACTIVITY)
    names = ("batches", "records", "first_timestamp", "last_timestamp", "epochs", "is_transactional")
    for number, (_, *values) in enumerate(producers):
        for name, value in zip(names, values, strict=True):
            found[name][number] = value
    return ReplicaRows(place, np.array([one[0] for one in producers], dtype=np.int64), found)


PARTS = [
    rows(0, (5, 1, 10, 1000, 2000, 1, False), (9, 3, 3, 0, MINUTE, 1, False), (7, 2, 2, -1, -1, 1, True)),
    rows(1, (5, 100, 100, 900, 2500, 3, False)),
    rows(2, (9, 1, 1, -1, MINUTE + 1, 2, False), (7, 1, 1, 50, 60, 1, False)),
    rows(3, (5, 4, 4, 1500, 1600, 2, False), (2, 1, 1, 5, 5, 1, False)),
]


def test_totals_count_a_partition_once_and_times_every_replica():
    found = join(PLACES, PARTS)
    assert found.ids.tolist() == [2, 5, 7, 9]
    assert found.batches.tolist() == [1, 5, 3, 4]
    assert found.records.tolist() == [1, 14, 3, 4]
    assert found.first_timestamp.tolist() == [5, 900, 50, 0]
    assert found.last_timestamp.tolist() == [5, 2500, 60, MINUTE + 1]
    assert found.epochs.tolist() == [1, 3, 1, 2]
    assert found.partitions.tolist() == [1, 2, 2, 2]
    assert found.replicas.tolist() == [1, 3, 2, 2]
    assert found.is_transactional.tolist() == [False, False, True, False]
    # 7 and 9 wrote to a alone, 2 to b, 5 to both
    numbers = found.topics.tolist()
    assert [numbers.index(number) for number in numbers] == [0, 1, 2, 2]
    assert [found.topics_of(number) for number in range(4)] == [["b"], ["a", "b"], ["a"], ["a"]]
    assert [(place.key, int(row["batches"])) for place, row in found.entries(1)] == [
        (("a", 0, "b1"), 1), (("a", 0, "b2"), 100), (("b", 0, "b1"), 4),
    ]  # fmt: skip
    assert [producer_id for producer_id in range(-1, 11) if found.holds(producer_id)] == [2, 5, 7, 9]


def test_without_parts_there_are_no_ids():
    for parts in ([], [rows(0), rows(2)]):
        found = join(PLACES, parts)
        assert (found.ids.tolist(), found.batches.tolist(), found.topics.tolist()) == ([], [], [])
        assert not found.holds(0)
        assert creators(found, np.empty(0, dtype=np.int64), {}) == []


@pytest.mark.parametrize(
    ("batches", "span", "expected"),
    [
        (0, 10 * MINUTE, "one batch and gone"),
        (1, 10 * MINUTE, "one batch and gone"),
        (2, 0, "gone within a minute"),
        (2, MINUTE, "gone within a minute"),
        (2, MINUTE + 1, "lasting"),
    ],
)
def test_how_long_an_id_lived(batches, span, expected):
    found = join(PLACES, [rows(0, (5, batches, 9, 1000, 1000 + span, 1, False))])
    assert pattern_of(found, 0, None) == expected
    assert pattern_of(found, 0, "payments-12-7") == "payments-#-#"


def test_kinds_of_clients():
    brief = [(number, 2, 9, 1000, 1000, 1, False) for number in (10, 11, 14)]
    lasting = [(12, 7, 9, 1000, 10**6, 1, False), (13, 1, 1, 5, 5, 1, False), (20, 2, 2, 5, 5, 1, False)]
    found = join(PLACES, [rows(0, *brief, *lasting), rows(3, (20, 1, 1, 5, 5, 1, False), (21, 2, 2, 0, 1, 1, False))])
    names = {11: "x-1", 14: "x-22", 12: "y-1", 99: "z", 3: "z"}
    kinds = {one.producer_id: one for one in creators(found, np.arange(len(found.ids))[::-1], names)}
    assert {
        number: (one.key[0], one.is_named, one.producers, one.batches, one.topics, one.topic_count)
        for number, one in kinds.items()
    } == {
        10: ("gone within a minute", False, 1, 2, ["a"], 1),
        11: ("x-#", True, 2, 4, ["a"], 1),
        12: ("y-#", True, 1, 7, ["a"], 1),
        13: ("one batch and gone", False, 1, 1, ["a"], 1),
        20: ("gone within a minute", False, 1, 3, ["a", "b"], 2),
        21: ("gone within a minute", False, 1, 2, ["b"], 1),
    }
    assert kinds[11].to_dict() == {
        "pattern": "x-#", "transactional_id": True, "topics": ["a"], "topic_count": 1, "producers": 2,
        "batches_per_producer": 2.0,
    }  # fmt: skip
    # of ids that were not chosen nothing is counted
    (one,) = creators(found, np.array([1]), names)
    assert (one.key[0], one.producers, one.batches) == ("x-#", 1, 2)


def test_five_topics_are_named():
    places = [ReplicaPlace(topic, 0, "") for topic in "abcdefg"]
    for count, named in ((5, 5), (6, 5)):
        parts = [rows(place, (1, 1, 1, 0, 0, 1, False)) for place in range(count)]
        (one,) = creators(join(places, parts), np.array([0]), {})
        assert (one.topics, one.topic_count) == (list("abcde")[:named], count)


def creator(name, producers, producer_id, is_named=True, topics=0, batches=1):
    return Creator((name, topics), is_named, producers, batches, producer_id, [name], 1)


def test_the_ten_kinds_that_opened_most():
    found = [creator(str(number), number, 100 - number) for number in range(12)]
    assert [one.producers for one in top_creators(found)] == list(range(11, 1, -1))
    assert [one.producer_id for one in top_creators([creator("b", 3, 9), creator("a", 3, 8)])] == [8, 9]
    # of two shares of the ids, those of one kind are added up, and the least id stands for all
    shares = [creator("a", 3, 9, batches=5), creator("a", 4, 8, batches=1), creator("a", 1, 7, is_named=False),
              creator("a", 2, 6, topics=1)]  # fmt: skip
    assert [(one.producers, one.batches, one.producer_id, one.is_named) for one in top_creators(shares)] == [
        (7, 6, 8, True), (2, 1, 6, True), (1, 1, 7, False),
    ]  # fmt: skip
