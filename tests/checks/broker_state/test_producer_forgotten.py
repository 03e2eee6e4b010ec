"""Producers that brokers and coordinators do not know any more, by lines of logs."""

from kaudit.checks.broker_state.logged_refusals import producer_forgotten
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import append_error, line, reported, sender

UNKNOWN = (
    "UnknownProducerIdException: Found no record of producerId=5 on the broker at offset 41in partition t-0. It is possible that "
    "the last message with the producerId=5 has been removed due to hitting the retention limit."
)


def test_a_broker_before_2_5_refuses_a_producer_it_does_not_know(tmp_path):
    (found,) = reported(producer_forgotten, tmp_path, server=[append_error("t-0", UNKNOWN)])
    assert found.severity is Severity.ERROR
    assert found.message.startswith("the broker refused batches of producer 5 in t-0: it did not know the producer")
    assert "KAFKA-7190" in found.explanations[0].cause


def test_a_client_that_began_anew_mends_it(tmp_path):
    client = [
        sender(
            "Got error produce response with correlation id 5 on topic-partition t-0, retrying (2 attempts left). Error: "
            "UNKNOWN_PRODUCER_ID"
        ),
        sender("ProducerId set to 9 with epoch 0", 1, "INFO"),
    ]
    (found,) = reported(producer_forgotten, tmp_path, client=client[:1])
    assert found.severity is Severity.ERROR
    (mended,) = reported(producer_forgotten, tmp_path, client=client)
    assert mended.severity is Severity.NOTE


def test_an_expired_transactional_id_is_refused_by_its_old_producer_id(tmp_path):
    client = [
        line(
            "[Producer clientId=app, transactionalId=pay] Transiting to fatal error state due to "
            "org.apache.kafka.common.errors.InvalidPidMappingException: The producer attempted to use a producer id which is not "
            "currently assigned to its transactional id.",
            0,
            "ERROR",
            "org.apache.kafka.clients.producer.internals.TransactionManager",
        )
    ]
    (found,) = reported(producer_forgotten, tmp_path, client=client)
    assert found.message.startswith(
        "the broker refused requests of the producer of transactional id pay: the transactional id"
    )


def test_an_expiry_alone_is_a_note(tmp_path):
    server = [
        line(
            "[Transaction State Manager 1]: Failed to remove expired transactionalId: pay from cache. Tombstone append error code: "
            "NOT_LEADER_OR_FOLLOWER, pending state: None, state: CompleteCommit, expected producerEpoch: 1, expected coordinatorEpoch: 0",
            0,
            "WARN",
            "kafka.coordinator.transaction.TransactionStateManager",
        )
    ]
    assert [one.severity for one in reported(producer_forgotten, tmp_path, server=server)] == [Severity.NOTE]
