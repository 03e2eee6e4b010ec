"""Which lines say something about producers, and which exceptions say what they are about."""

import pytest

from kaudit.formats.plain_text.facts import gives_a_reason, has_facts


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (b"producerId=4001", True),
        (b"producer id: 4001", True),
        (b"Producer-Epoch 3", True),
        (b"producerId of nobody who is known: 4001", False),
        (b"Producer 4001", True),
        (b"Producers 4001", False),
        (b"baseOffset", True),
        (b"baseSequence: 5", True),
        (b"seq 5", True),
        (b"sequence number 17", True),
        (b"consequence 5", False),
        (b"epoch 5", True),
        (b"epoch=-1", True),
        (b"leader epoch five", False),
        (b"org.apache.kafka.common.errors.TimeoutException", True),
        (b"an exception", False),
        (b"OUT_OF_ORDER_SEQUENCE_NUMBER", True),
        (b"error NOT_LEADER_OR_FOLLOWER.", True),
        (b"MY_REQUEST_TIMED_OUT_X", False),
        (b"nothing at all", False),
        (b"x" * 16_371 + b" producerId=4001", True),
        (b"x" * 16_372 + b" producerId=4001", False),
    ],
)
def test_facts(line, facts):
    assert has_facts(line) is facts


@pytest.mark.parametrize(
    ("line", "partitions", "facts"),
    [
        (b"rolled orders-3", [], False),
        (b"rolled orders-3", [b"orders-3"], True),
        (b"rolled orders-31", [b"orders-3"], False),
        (b"rolled orders-3.log", [b"orders-3"], True),
        (b"rolled my.orders-3", [b"orders-3"], False),
        (b"rolled a-1 b-2", [b"b-2", b"c-3"], True),
    ],
)
def test_names_of_partitions_are_facts(line, partitions, facts):
    assert has_facts(line, partitions) is facts


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"OutOfOrderSequenceException: Out of order sequence number for producer 4001", True),
        (b"ProducerFencedException: producerId: 5", True),
        (b"InvalidProducerEpochException: (request epoch), seen epoch 5", True),
        (b"OutOfOrderSequenceException: (incoming seq. number)", True),
        (b"OutOfOrderSequenceException", False),
        (b"TimeoutException: producer 4001", False),
        (b"OutOfOrderSequenceException: x\nproducer 4001", False),
        (b"ProducerFencedException" + b" " * 16_349 + b"producer 4001", True),
        (b"ProducerFencedException" + b" " * 16_353 + b"producer 4001", False),
    ],
)
def test_reasons(line, reason):
    assert gives_a_reason(line) is reason
