"""What users hit, as brokers and clients log it: a log alone says what happened.."""

import pytest

from tests.checks.broker_state.lines import all_findings, append_error, line, sender

FETCHER = "kafka.server.ReplicaFetcherThread"
THROWN = "org.apache.kafka.common.errors."


def fetcher(text: str, exception: str) -> str:
    """What a follower logs that cannot follow."""
    head = line(f"[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] {text}", 0, "ERROR", FETCHER)
    return f"{head}\n{exception}"


def fatal(exception: str) -> str:
    """What a Java producer logs before it can only be closed."""
    return sender(f"Transiting to fatal error state due to {THROWN}{exception}", level="ERROR")


SENT_BEFORE = "Error sending record to topic t due to org.apache.kafka.common.errors.UnknownProducerIdException: gone.; No more records"
LOGGED = {
    "zombie-after-its-transaction": (
        "server",
        append_error("t-0", "InvalidTxnStateException: Record was not part of an ongoing transaction"),
        "KA810",
        "outside of a transaction",
    ),
    "gap": (
        "server",
        append_error(
            "t-0",
            "OutOfOrderSequenceException: Out of order sequence number for producer 7 at offset 9 in partition t-0: 5 (incoming seq. "
            "number), 2 (current end sequence number)",
        ),
        "KA810",
        "3..4 are missing",
    ),
    "kafkajs-counts-requests": (
        "client",
        ('{"level":"ERROR","timestamp":"2026-08-18T10:00:00.000Z","logger":"kafkajs","message":"[Connection] Response Produce(key: 0, '
        'version: 7)","broker":"b:9092","clientId":"a","error":"The broker received an out of order sequence number","size":1}'),
        "KA810",
        "client a",
    ),
    "librdkafka-skips": (
        "client",
        ("%3|1659595801.132|ERROR|rdkafka#producer-1| [thrd:b:9092/bootst]: b:9092/1: ProduceRequest for t [0] with 1 message(s) failed due "
        "to skipped sequence numbers (PID{Id:5,Epoch:0}, base seq 77 > next seq 76) caused by previous failed request (Broker: Out of order)"),
        "KA810",
        "76 is missing",
    ),
    "forgotten-after-retention": (
        "server",
        append_error("t-0", "UnknownProducerIdException: Found no record of producerId=7 on the broker."),
        "KA811",
        "it did not know the producer",
    ),
    "forgotten-in-streams": (
        "client",
        line(f"task [0_0] {SENT_BEFORE}", 0, "ERROR", "org.apache.kafka.streams.processor.internals.RecordCollectorImpl"),
        "KA811",
        "it did not know the producer",
    ),
    "coordinator-epoch-went-back": (
        "server",
        line(
            "There was an error in one of the threads during logs loading: "
            f"{THROWN}TransactionCoordinatorFencedException: Invalid coordinator epoch: 3 (zombie), 5 (current)",
            0,
            "ERROR",
            "kafka.log.LogManager",
        ),
        "KA815",
        "its broker does not start",
    ),
    "follower-refuses": (
        "server",
        fetcher(
            "Unexpected error occurred while processing data for partition t-0 at offset 12",
            f"{THROWN}OutOfOrderSequenceException: Out of order sequence number for producerId 7: 5 (incoming seq. number), 2 (current end "
            "sequence number)",
        ),
        "KA815",
        "no longer follows its leader",
    ),
    "follower-dies": (
        "server",
        fetcher("Error due to", "org.apache.kafka.common.KafkaException: Error processing data for partition t-0 offset 12"),
        "KA815",
        "no longer follows its leader",
    ),
    "zombie": (
        "server",
        append_error("t-0", "InvalidProducerEpochException: Epoch of producer 7 at offset 9 in t-0 is 3, which is smaller than the last seen epoch 5"),
        "KA812",
        "it has epoch 3, where epoch 5 had written",
    ),
    "fenced": ("client", fatal("ProducerFencedException: There is a newer producer."), "KA812", "the producer is fenced"),
    "flink-recovery-too-late": (
        "client",
        line("Unable to commit transaction (app-0-1) because its producer is already fenced.", 0, "ERROR", "org.apache.flink.connector.kafka.sink.KafkaCommitter")
        + f"\n{THROWN}ProducerFencedException: newer",
        "KA812",
        "the producer is fenced",
    ),
    "idle-for-a-week": ("client", fatal("InvalidPidMappingException: not assigned."), "KA811", "does not have this producer id"),
    "damaged-at-the-leader": (
        "server",
        fetcher(
            "Found invalid messages during fetch for partition t-0 offset 12",
            f"{THROWN}CorruptRecordException: Record is corrupt (stored crc = 1, computed crc = 2) in topic partition t-0.",
        ),
        "KA815",
        "gets damaged records from its leader",
    ),
    "connect-task-killed": (
        "client",
        ("06:34:01.044 [task-thread-go-source-0] o.a.k.c.r.WorkerTask ERROR - WorkerSourceTask{id=go-source-0} Task threw an uncaught and "
        "unrecoverable exception. Task is being killed and will not recover until manually restarted "
        "org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from producer send callback\n"
        "Caused by: org.apache.kafka.common.errors.TimeoutException: Topic go-topic not present in metadata after 60000 ms."),
        "KA814",
        "gave up records",
    ),
    "truncation-not-allowed-0.10": (
        "server",
        line(
            "[ReplicaFetcherThread-0-1], Halting because log truncation is not allowed for topic t, Current leader 1's latest offset 0 is "
            "less than replica 2's latest offset 151",
            0,
            "FATAL",
            FETCHER,
        ),
        "KA815",
        "its broker stopped rather than cut them off",
    ),
    "fetch-offset-reset-0.10": (
        "server",
        line(
            "[ReplicaFetcherThread-0-1], Replica 2 for partition [t,4] reset its fetch offset from 9 to current leader 1's latest offset 5",
            0,
            "WARN",
            FETCHER,
        ),
        "KA815",
        "a replica of t-4 cut its log off at its leader's end",
    ),
    "damaged-for-a-consumer": (
        "client",
        line("Fetch failed", 0, "ERROR", "app.Main") + "\norg.apache.kafka.common.KafkaException: Received exception when fetching the next "
        "record from t-0. If needed, please seek past the record to continue consumption.\n"
        "Caused by: org.apache.kafka.common.KafkaException: Record for partition t-0 at offset 5 is invalid, cause: Record is corrupt",
        "KA815",
        "has damaged records",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("origin", "text", "code", "says"), LOGGED.values(), ids=LOGGED)
def test_a_log_alone_says_what_happened(tmp_path, origin, text, code, says):
    given = {origin: [text]}
    found = all_findings(tmp_path, server=given.get("server", ()), client=given.get("client", ()))
    found = [one for one in found if one.code == code]
    assert len(found) == 1
    assert says in found[0].message
    assert found[0].explanations
