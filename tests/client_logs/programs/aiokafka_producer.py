"""aiokafka with Python's logging."""

import asyncio
import contextlib

import common
from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalOperation, KafkaError


async def run(log, port, transactional, topic):
    own = {"transactional_id": "payments", "transaction_timeout_ms": 3000} if transactional else {}
    producer = AIOKafkaProducer(
        bootstrap_servers=f"127.0.0.1:{port}", client_id="orders-app", enable_idempotence=True, retry_backoff_ms=50,
        request_timeout_ms=1500, **own,
    )  # fmt: skip
    try:
        await producer.start()
        if transactional:
            await producer.begin_transaction()
        for key in (0, 1):
            try:
                await producer.send_and_wait(topic, key=str(key).encode(), value=b"x", partition=0)
            except (IllegalOperation, KafkaError):
                log.exception("send failed")
        if transactional:
            await producer.commit_transaction()
    except (IllegalOperation, KafkaError):
        log.exception("producer failed")
    finally:
        with contextlib.suppress(KafkaError, TimeoutError):  # that of the transaction, once more
            await asyncio.wait_for(producer.stop(), 2)


def play(log, port, transactional, topic):
    async def limited():
        try:
            await asyncio.wait_for(run(log, port, transactional, topic), 5)
        except Exception:
            log.exception("producer gave up")

    asyncio.run(limited())


common.main(play)
