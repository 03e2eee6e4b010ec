import gc
import json

import jsonschema
import pytest

from tests.capture.test_capture import ORDERS, batches
from tests.logs import BASE_TIMESTAMP
from tests.report.test_json_schemas import DOCUMENT
from tests.source.kafka.fake_broker import DESCRIBE_PRODUCERS, FakeBroker

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
REMEMBERED = {
    "producer_id": 7, "producer_epoch": 0, "last_sequence": 19, "last_timestamp": BASE_TIMESTAMP,
    "coordinator_epoch": -1, "current_txn_start_offset": -1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _collected():
    gc.freeze()  # what other tests have left is not searched
    yield
    gc.collect()


@pytest.fixture
def broker():
    with FakeBroker({ORDERS: batches(10)}) as running:
        running.producers[ORDERS] = [REMEMBERED]
        yield running


def live(kaudit, broker, *more):
    return kaudit("producers", "--live", "-q", f"kafka://{broker.address}/orders", *more)


def test_identical_is_said_too(kaudit, broker):
    done = live(kaudit, broker)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "orders-0 on broker 1: 1 producer, 1 identical", "",
        "1 producer in 1 partition: the brokers remember what the logs yield",
    ]  # fmt: skip


def test_each_difference_has_its_two_values(kaudit, broker):
    broker.producers[ORDERS] = [{**REMEMBERED, "last_sequence": 21, "current_txn_start_offset": 4}]
    done = live(kaudit, broker)
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "last_sequence is 19 in the log, 21 on the broker" in text
    assert "current_txn_start_offset is -1 in the log, 4 on the broker" in text
    assert "1 differ, 1 of them without an explanation" in text
    assert live(kaudit, broker, "--exit-zero").code == 0


def test_the_same_as_json(kaudit, broker, tmp_path):
    broker.producers[ORDERS] = [{**REMEMBERED, "producer_id": 8}]
    broker.configs["1"] = {"producer.id.expiration.ms": "86400000"}
    done = live(kaudit, broker, "--output-format", f"json:{tmp_path / 'live.json'}", "--output-format", "table")
    assert done.code == 1
    document = json.loads((tmp_path / "live.json").read_text())
    assert document["schema"] == "kaudit.producers-live/1"
    jsonschema.validate(document, DOCUMENT)
    assert document["summary"] == {"partitions": 1, "producers": 2, "differing": 2, "unexplained": 1}
    seven, eight = document["partitions"][0]["producers"]
    assert (seven["relation"], seven["broker"], seven["log"]["last_sequence"]) == ("log-only", None, 19)
    assert "producer.id.expiration.ms is 86400 s" in seven["explanation"]
    assert (eight["relation"], eight["log"], eight["explanation"]) == ("broker-only", None, None)
    assert "only in the log (producer_epoch 0, last_sequence 19" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["samples"], 2, "--live asks brokers"),
        (["kafka://{0}/orders", "kafka://other:1/orders"], 2, "different brokers"),
        (["kafka://{0}/orders", "--output-format", "sarif"], 2, "--output-format is table or json"),
        (["kafka://{0}"], 2, "names no topic"),
        (["kafka://{0}/nothing"], 4, "no such topic"),
        (["kafka://127.0.0.1:1/orders"], 4, "connection refused"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(kaudit, broker, arguments, code, said):
    done = kaudit("producers", "--live", "-q", *(argument.format(broker.address) for argument in arguments))
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert said in done.err


def test_brokers_before_2_8_do_not_say_what_they_remember(kaudit, broker):
    del broker.versions[DESCRIBE_PRODUCERS]
    done = live(kaudit, broker)
    assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
    assert "release" in done.err
