"""Known bugs that lines of logs alone look like."""

import pytest

from kaudit.checks.broker_state.logged_refusals import batches_refused, producer_forgotten
from tests.checks.broker_state.lines import append_error, out_of_order, reported, sender

KAFKAJS = (
    '{"level":"ERROR","timestamp":"2026-01-01T10:00:00.000Z","logger":"kafkajs","message":"[Connection] Response Produce(key: 0, '
    'version: 7)","broker":"kafka:9092","clientId":"app","error":"The broker received an out of order sequence number",'
    '"correlationId":42,"size":54}'
)


def bugs(findings):
    return [[known.id for known in finding.known_bugs] for finding in findings]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "Found no record of producerId=5 on the broker at offset 41in partition t-0. It is possible that",
            ["KAFKA-7190"],
        ),
        ("This exception is raised by the broker if it could not locate the producer metadata", []),
    ],
)
def test_a_broker_before_2_5_that_forgot_a_producer(tmp_path, text, named):
    server = [append_error("t-0", f"UnknownProducerIdException: {text}")]
    assert bugs(reported(producer_forgotten, tmp_path, server=server)) in ([named], [])


@pytest.mark.parametrize(
    ("base", "last", "offset", "named"),
    [(0, 4, 5, ["KAFKA-15591"]), (0, 4, 6, []), (3, 4, 5, []), (0, 29, 1641969, [])],
)
def test_the_first_batch_of_a_producer_was_overtaken(tmp_path, base, last, offset, named):
    server = [out_of_order(base, last).replace("1641969", str(offset))]
    assert bugs(reported(batches_refused, tmp_path, server=server)) == [named]


@pytest.mark.parametrize(("second", "named"), [(1, ["KAFKA-14397"]), (None, [])])
def test_records_had_expired_before_the_gap(tmp_path, second, named):
    client = [
        sender(
            "Got error produce response with correlation id 5 on topic-partition t-0, retrying (2 attempts left). Error: "
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
            2,
        )
    ]
    if second is not None:
        client.insert(
            0, sender("Expiring 3 record(s) for t-0:120005 ms has passed since batch creation", second, "ERROR")
        )
    assert bugs(reported(batches_refused, tmp_path, client=client)) == [named]


def test_kafkajs_says_so_itself(tmp_path):
    assert bugs(reported(batches_refused, tmp_path, client=[KAFKAJS])) == [["kafkajs-598"]]
