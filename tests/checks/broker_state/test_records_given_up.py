"""Records that clients gave up, by lines of their logs."""

from kaudit.checks.broker_state.logged_losses import records_given_up
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import line, reported, sender


def test_an_expired_batch(tmp_path):
    lines = [
        sender(f"Expiring 3 record(s) for t-0:12000{n} ms has passed since batch creation", n, "ERROR")
        for n in range(3)
    ]
    (found,) = reported(records_given_up, tmp_path, client=lines)
    assert found.severity is Severity.ERROR
    assert found.message == (
        "client app gave up records for t-0 after delivery.timeout.ms: they are lost unless the application sent them again; "
        "3 lines, 2026-08-18 10:00:00.000 to 2026-08-18 10:00:02.000"
    )
    assert (found.evidence.to_be_certain or "").startswith("copy the directory t-0 of its leader")


def test_lost_connections_of_that_time_are_the_first_cause_and_the_line_itself_is_none(tmp_path):
    client = [
        line(
            "[Producer clientId=app] Disconnecting from node 1 due to request timeout.",
            3,
            logger="org.apache.kafka.clients.NetworkClient",
        ),
        sender("Expiring 3 record(s) for t-0:120005 ms has passed since batch creation", 9, "ERROR"),
    ]
    (found,) = reported(records_given_up, tmp_path, client=client)
    assert found.explanations[0].cause == "the client lost its connections to brokers"
    assert found.explanations[0].speaks_for == ("client.log:1",)


def test_failed_attempts_that_a_client_repeats_are_silent(tmp_path):
    text = (
        "[sarama] 2026/08/18 10:00:00 async_producer.go:1: Failed retrying batch for t-0 because of kafka server: Tried to send a "
        "message to a replica that is not the leader for some partition. Your metadata is out of date while looking up for new leader"
    )
    assert not reported(records_given_up, tmp_path, client=[text])
