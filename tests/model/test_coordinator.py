"""What a coordinator will do with an open transaction, by what its log says of the producer."""

import pytest

from kaudit.model.coordinator import (
    MAX_TRANSACTION_TIMEOUT_MS,
    CoordinatorEntry,
    CoordinatorView,
    TopicPartitions,
    TransactionStanding,
    TransactionStatus,
    TransactionValue,
)

LISTED = (TopicPartitions("other", (3,)), TopicPartitions("orders", (1, 3)))


def view(status=TransactionStatus.ONGOING, epoch=5, partitions=LISTED, **more):
    value = TransactionValue(1, 1000, epoch, 60_000, status, status.value, partitions, 0, 0)
    return CoordinatorView({1000: CoordinatorEntry("pay", value, 77)}, present=True, **more)


@pytest.mark.parametrize(("status", "its_epoch", "topic", "partition", "standing"), [
    ("ONGOING", 5, "orders", 3, "ONGOING"),
    ("ONGOING", 5, "orders", 1, "ONGOING"),
    ("ONGOING", 5, "orders", 2, "NOT_ONGOING"),
    ("ONGOING", 5, "other", 1, "NOT_ONGOING"),
    ("ONGOING", 4, "orders", 3, "NOT_ONGOING"),
    ("ONGOING", 6, "orders", 3, "NOT_ONGOING"),
    ("PREPARE_COMMIT", 5, "orders", 3, "DECIDED"),
    ("PREPARE_ABORT", 5, "orders", 3, "DECIDED"),
    # an abort by time-out raises the epoch before the markers are written
    ("PREPARE_ABORT", 6, "orders", 3, "DECIDED"),
    ("PREPARE_ABORT", 7, "orders", 3, "NOT_ONGOING"),
    ("PREPARE_ABORT", 4, "orders", 3, "NOT_ONGOING"),
    ("PREPARE_ABORT", 5, "orders", 2, "NOT_ONGOING"),
    ("PREPARE_EPOCH_FENCE", 5, "orders", 3, "NOT_ONGOING"),
    ("COMPLETE_COMMIT", 5, "orders", 3, "NOT_ONGOING"),
    ("COMPLETE_ABORT", 5, "orders", 3, "NOT_ONGOING"),
    ("EMPTY", 5, "orders", 3, "NOT_ONGOING"),
    ("DEAD", 5, "orders", 3, "NOT_ONGOING"),
])  # fmt: skip
def test_standing(status, its_epoch, topic, partition, standing):
    found = view(TransactionStatus[status], its_epoch).standing(1000, 5, topic, partition)
    assert found.standing is TransactionStanding[standing]
    label = "".join(word.title() for word in status.split("_"))
    said = f"__transaction_state has 'pay' at {label}, epoch {its_epoch}"
    not_in_it = status == "ONGOING" and its_epoch == 5 and standing == "NOT_ONGOING"
    assert found.reason == said + (f", and its transaction does not include {topic}-{partition}" if not_in_it else "")
    assert found.entry is not None
    assert found.entry.offset == 77


def test_no_partitions():
    for partitions in (None, ()):
        found = view(partitions=partitions).standing(1000, 5, "orders", 3)
        assert found.standing is TransactionStanding.NOT_ONGOING


def test_what_is_not_there_is_unknown_unless_all_was_read():
    absent = CoordinatorView(view().entries, complete=True).standing(1000, 5, "orders", 3)
    assert (absent.standing, absent.reason) == (
        TransactionStanding.UNKNOWN,
        "__transaction_state is not among the inputs",
    )
    partly = view(unknown="unread").standing(7, 5, "orders", 3)
    assert (partly.standing, partly.reason, partly.entry) == (TransactionStanding.UNKNOWN, "unread", None)
    wholly = view(complete=True).standing(7, 5, "orders", 3)
    assert (wholly.standing, wholly.reason) == (
        TransactionStanding.NOT_ONGOING,
        "no transactional id in __transaction_state has this producer id",
    )
    assert not CoordinatorView().present
    assert not CoordinatorView().complete


def test_the_transactional_id_of_a_producer():
    assert (view().transactional_id(1000), view().transactional_id(7)) == ("pay", None)


def test_numbers_of_kafka():
    # TransactionStateManagerConfig.TRANSACTIONS_MAX_TIMEOUT_MS_DEFAULT, and TransactionState's ids
    assert MAX_TRANSACTION_TIMEOUT_MS == 900_000
    assert [(status.value, status.label) for status in TransactionStatus] == [
        (-1, "Unknown"), (0, "Empty"), (1, "Ongoing"), (2, "PrepareCommit"), (3, "PrepareAbort"), (4, "CompleteCommit"),
        (5, "CompleteAbort"), (6, "Dead"), (7, "PrepareEpochFence"),
    ]  # fmt: skip
