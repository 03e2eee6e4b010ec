"""What `kaudit replay --explain` says of one attempt, to the letter."""

import json

import pytest

from kaudit.report.text.explain_attempt import NoSuchAttemptError, explain

AT = 1_700_000_000_000
BROKER = {"index": 0, "op": "broker", "broker_version": "2.8.2"}


def produce(index, sequence, count=1, epoch=0, **more):
    fields = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": sequence, "record_count": count}
    place = {"topic": "t", "partition": 3, "at": AT + index, "timestamp": AT + index}
    return {"index": index, "op": "produce", "api_version": 7, **place, **fields, **more}


def other(index, op, **fields):
    return {"index": index, "op": op, "topic": "t", "partition": 3, "at": AT + index, **fields}


STORY = [
    BROKER,
    produce(1, 0, 3),
    produce(2, 3),
    produce(3, 0, 3),
    produce(4, 9, 2, is_transactional=True, transactional_id="x"),
    produce(5, 4, is_transactional=True),
    other(6, "write_marker", producer_id=7, producer_epoch=1, commit=False, coordinator_epoch=5, api_version=0),
    produce(7, 0, acks=0, epoch=1),
    other(8, "describe"),
    other(9, "init_producer_id", transactional_id="x", timeout_ms=60000, api_version=1),
    produce(10, 1, epoch=1, is_transactional=True, transactional_id="x"),
]


def explained(index, story=STORY):
    return list(explain((json.dumps(attempt).encode() + b"\n" for attempt in story), index, None))


def test_a_first_batch():
    assert explained(1) == [
        "Attempt 1: produce on t-3, answered by 2.8.2",
        "",
        "Remembered before, of producer id 7:",
        "  nothing",
        "",
        "Request:",
        "  3 records of producer id 7 epoch 0, sequences 0 to 2",
        "",
        "Answer: appended at offset 0",
        "Why: producer 7 at offset 0 in t-3: incoming epoch 0, sequences 0 to 2, remembered nothing; a producer id without state starts at 0",
        "",
        "Remembered afterwards:",
        "  epoch 0",
        "  sequences 0 to 2 at offsets 0 to 2",
        "",
        "All versions answer the same.",
    ]


def test_a_duplicate_which_0_11_did_not_know():
    """It remembered one batch (KAFKA-5494)."""
    assert explained(3)[2:6] == [
        "Remembered before, of producer id 7:",
        "  epoch 0",
        "  sequences 0 to 2 at offsets 0 to 2",
        "  sequence 3 at offset 3",
    ]
    assert explained(3)[10] == "Answer: duplicate at offset 0"
    assert explained(3)[12:] == [
        "",
        "Remembered afterwards: the same.",
        "",
        "Other versions, given the same attempts from the beginning:",
        "    0.11.0.0 to 0.11.0.3  rejected with 45 OUT_OF_ORDER_SEQUENCE_NUMBER",
        "  = 1.0.0 and later       duplicate at offset 0",
    ]


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (4, "  2 records of producer id 7 epoch 0, sequences 9 to 10, transactional as x"),
        (
            5,
            "Request: 1 record of producer id 7 epoch 0, sequence 4, transactional, in a request without a transactional id",
        ),
        (5, "Answer: rejected with 53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (6, "  producer_id 7, producer_epoch 1, commit False, coordinator_epoch 5, api_version 0"),
        (6, "Answer: ok"),
        (6, "  epoch 1, coordinator epoch 5"),
        (6, "  no batch of this epoch"),
        (7, "  1 record of producer id 7 epoch 1, sequence 0, acks 0, so no answer is expected"),
        (7, "Answer: no-response"),
        (8, "Request: describe"),
        (8, "Answer: ok, stable to 6 of 6"),
        (9, "Answer: ok, producer id 0 epoch 0"),
        (10, "  epoch 1, coordinator epoch 5, transaction open since offset 6"),
    ],
)
def test_what_is_said_of_an_attempt(index, said):
    assert said in explained(index)


def test_sequences_wrap_in_a_request():
    story = [{**BROKER, "broker_version": "2.4.1"}, produce(1, 2**31 - 1, 3)]
    assert "  3 records of producer id 7 epoch 0, sequences 2147483647 to 1" in explained(1, story)


def test_an_attempt_that_is_about_no_producer_is_explained_in_four_lines():
    assert explained(0) == [
        "Attempt 0: broker, answered by 2.8.2",
        "",
        "Request: broker_version 2.8.2, config {}",
        "Answer: noted",
        "Why: rules of 2.8.2",
        "",
        "All versions answer the same.",
    ]


def test_there_is_no_such_attempt():
    with pytest.raises(NoSuchAttemptError, match="no attempt has index 99"):
        explained(99)
