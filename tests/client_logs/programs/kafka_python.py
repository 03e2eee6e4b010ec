"""kafka-python with Python's logging."""

import common
from kafka import KafkaProducer
from kafka.errors import KafkaError


def play(log, port, transactional, topic):
    producer = None
    try:
        own = {"transactional_id": "payments", "transaction_timeout_ms": 3000} if transactional else {}
        producer = KafkaProducer(
            bootstrap_servers=f"127.0.0.1:{port}", client_id="orders-app", enable_idempotence=True, retry_backoff_ms=50,
            request_timeout_ms=1500, delivery_timeout_ms=3000, linger_ms=0, max_block_ms=4000, **own,
        )  # fmt: skip
        if transactional:
            producer.init_transactions()
            producer.begin_transaction()
        for key in (0, 1):
            try:
                producer.send(topic, key=str(key).encode(), value=b"x", partition=0).get(timeout=5)
            except KafkaError:
                log.exception("send failed")
        if transactional:
            producer.commit_transaction()
    except KafkaError:
        log.exception("producer failed")
    finally:
        if producer is not None:
            producer.close(timeout=1)


common.main(play)
