import gc
import json
import signal
import sys
import threading

import jsonschema
import pytest

from kaudit.capture.capture import Capture
from kaudit.installation import install_command
from tests.capture.test_capture import ORDERS, SIZE, batches, in_pieces, segments
from tests.report.test_json_schemas import DOCUMENT
from tests.source.kafka.fake_broker import FETCH, FakeBroker

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _collected():
    gc.freeze()  # what other tests have left is not searched
    yield
    gc.collect()


@pytest.fixture
def broker():
    with FakeBroker({ORDERS: batches(10), ("orders", 1): [], ("users", 0): batches(3)}) as running:
        yield running


def test_a_line_for_each_partition_and_one_for_all(kaudit, broker, tmp_path):
    done = kaudit("capture", "-o", tmp_path / "copy", f"kafka://{broker.address}/orders")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"orders-0: offsets 0 to 19, {10 * SIZE} B",
        "orders-1: nothing, 0 B",
        f"{10 * SIZE} B captured into {tmp_path / 'copy'}",
    ]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_capture_of_nothing_is_no_success(kaudit, broker, tmp_path, output_format):
    url = f"kafka://{broker.address}/orders/1"
    done = kaudit("capture", "--output-format", output_format, "-o", tmp_path / "copy", url)
    assert (done.code, done.err) == (4, "kaudit: nothing was captured: no partition that was asked for has a batch\n")
    assert done.out  # the account of it, as ever


def test_several_topics_and_partitions_of_one_cluster(kaudit, broker, tmp_path):
    root = f"kafka://{broker.address}"
    done = kaudit("capture", "-q", "-o", tmp_path / "copy", f"{root}/orders/1", f"{root}/orders/1", f"{root}/users")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir() if path.is_dir()) == ["orders-1", "users-0"]
    assert kaudit("scan", tmp_path / "copy").code == 0


def test_the_account_as_json(kaudit, broker, tmp_path):
    url = f"kafka://{broker.address}/orders"
    done = kaudit("capture", "-q", "--output-format", "json", "-o", tmp_path / "copy", url)
    assert done.code == 0
    document = json.loads(done.out)
    assert document == json.loads((tmp_path / "copy" / "capture.json").read_text())
    jsonschema.validate(document, DOCUMENT)


def test_what_is_missing_and_what_failed_are_in_its_line(kaudit, tmp_path):
    logs = {
        ORDERS: [*batches(2), *batches(2, 10)],
        ("users", 0): [*batches(2), *batches(2, 10)],
        ("bad", 0): batches(1),
    }
    with FakeBroker(logs) as broker:
        broker.configs["users"] = {"cleanup.policy": "compact"}
        whole = broker.fetched
        broker.scripts[FETCH] = lambda request: (
            whole(request, records=b"\0" * 99) if request.topics[0].topic == "bad" else whole(request)
        )
        urls = [f"kafka://{broker.address}/{topic}" for topic in ("orders", "users", "bad")]
        done = kaudit("capture", "-o", tmp_path / "copy", *urls)
    assert done.code == 4
    bad, orders, users, _ = done.out.splitlines()
    assert orders.endswith("6 offsets are missing")
    assert users.endswith("6 compacted away")
    assert "bad-0: nothing, 0 B, the broker sends what is not a batch" in bad
    assert done.err.startswith("kaudit: bad-0: the broker sends")


@pytest.mark.parametrize(
    ("urls", "said", "code"),
    [
        (["/var/lib/kafka"], "kaudit capture reads kafka://HOST:PORT/TOPIC", 2),
        (["kafka://{0}"], "names no topic", 2),
        (["kafka://{0}/orders/x"], "a partition number", 2),
        (["kafka://{0}/orders", "kafka://other:9092/orders"], "different brokers", 2),
        (["kafka://{0}/nothing"], "no such topic", 2),
        (["kafka://{0}/orders/9"], "the topic has 2 partitions", 2),
        (["kafka://127.0.0.1:1/orders"], "connection refused", 4),
    ],
)
def test_what_cannot_be_captured_is_one_sentence_and_leaves_no_directory(kaudit, broker, tmp_path, urls, said, code):
    done = kaudit("capture", "-o", tmp_path / "copy", *(url.format(broker.address) for url in urls))
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert said in done.err
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("webhdfs://name:9870/copy", "kaudit writes to local paths, hdfs://, s3://, s3a://"),
        ("{0}/file", "is not a directory"),
        ("{0}/full", "holds notes and no capture.json"),
        ("/proc/copy", "--output /proc/copy"),
    ],
)
def test_where_it_cannot_be_written_is_one_sentence(kaudit, broker, tmp_path, target, said):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    done = kaudit("capture", "-o", target.format(tmp_path), f"kafka://{broker.address}/orders")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_an_interrupted_run_leaves_whole_batches_and_exits_130(kaudit, broker, tmp_path, monkeypatch):
    in_pieces(broker, SIZE)
    main, whole, sent, run = threading.get_ident(), broker.scripts[FETCH], [], Capture.run
    stops: list[threading.Event] = []

    def noting(work, stop):
        stops.append(stop)
        run(work, stop)

    def fetched(request):
        sent.append(request)
        if len(sent) == 3:
            signal.pthread_kill(main, signal.SIGINT)
            stops[0].wait(60)  # a thread of its own sets it: the other pieces would be fetched meanwhile
        return whole(request)

    monkeypatch.setattr(Capture, "run", noting)
    broker.scripts[FETCH] = fetched
    url = f"kafka://{broker.address}/orders/0"
    done = kaudit("capture", "-o", tmp_path / "copy", url)
    assert done.code == 130
    assert segments(tmp_path / "copy") == {f"{0:020}.log": b"".join(broker.logs[ORDERS][:3])}
    assert kaudit("capture", "-q", "-o", tmp_path / "copy", url).code == 0
    assert segments(tmp_path / "copy") == {f"{0:020}.log": b"".join(broker.logs[ORDERS])}


def test_no_configuration_to_read_means_segments_of_a_gigabyte_and_a_word_about_it(kaudit, broker, tmp_path):
    from kafka.protocol.admin import DescribeConfigsResponse

    result = DescribeConfigsResponse.DescribeConfigsResult
    broker.scripts[32] = lambda request: DescribeConfigsResponse(
        results=[
            result(error_code=29, error_message="no", resource_type=2, resource_name=each.resource_name, configs=[])
            for each in request.resources
        ]
    )
    done = kaudit("capture", "-o", tmp_path / "copy", f"kafka://{broker.address}/orders")
    assert done.code == 0
    assert "orders: not authorised" in done.err
    assert len(segments(tmp_path / "copy")) == 1


@pytest.mark.parametrize("command", ["scan", "watch", "producers --live", "inspect", "capture -o copy"])
def test_without_the_extra_one_line_says_what_to_install(kaudit, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "kafka", None)
    done = kaudit(*command.split(), "kafka://127.0.0.1:1/orders")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"kaudit: kafka://127.0.0.1:1/orders needs an extra: {install_command('live')}\n"
    assert not list(tmp_path.iterdir())
