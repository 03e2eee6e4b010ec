"""librdkafka below confluent-kafka-python, with its log in Python's logging or, without a logger, on standard error."""

import sys

import common
from confluent_kafka import KafkaException, Producer


def play(log, port, transactional, topic):
    config = {
        "bootstrap.servers": f"127.0.0.1:{port}", "client.id": "orders-app", "enable.idempotence": True, "linger.ms": 0,
        "message.timeout.ms": 3000, "socket.timeout.ms": 1500, "retry.backoff.ms": 50, "retry.backoff.max.ms": 50,
        "error_cb": lambda error: log.error("client error: %s", error),
    }  # fmt: skip
    if transactional:
        config |= {"transactional.id": "payments", "transaction.timeout.ms": 3000}
    own = {} if LAYOUT == "stderr" else {"logger": log}
    producer = Producer(config, **own)

    def delivered(error, message):
        if error is not None:
            log.error("Delivery failed: %r", error)
            log.error("%% Message failed delivery: %s", error.str())

    try:
        if transactional:
            producer.init_transactions(4)
            producer.begin_transaction()
        for key in (0, 1):
            try:
                producer.produce(topic, key=str(key), value=b"x", partition=0, on_delivery=delivered)
                producer.flush(5)
            except (KafkaException, SystemError):  # a fatal error, which the binding raises within a callback too
                log.exception("send failed")
        if transactional:
            producer.commit_transaction(4)
    except KafkaException:
        log.exception("producer failed")


LAYOUT = sys.argv[1]
common.main(play)
