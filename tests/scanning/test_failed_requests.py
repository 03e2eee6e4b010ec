"""Every request of an audit of kafka:// that fails is tried again, or something was not audited: no verdict changes in silence."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka import client
from kaudit.source.kafka.partitions import client_of
from kaudit.watch.live_partitions import LivePartitions
from kaudit.watch.memory import Memory
from kaudit.watch.watcher import Watcher
from tests.logs import Log, data, marker
from tests.source.kafka.fake_broker import FakeBroker

NOT_AUTHORIZED, UNKNOWN_SERVER_ERROR = 29, -1
Fail = Callable[[Any], Any]


def lost(answer: Any) -> Any:
    """The connection ends before the answer comes."""
    raise OSError("the broker is gone")


def failing_with(code: int) -> Fail:
    """Every part of the answer that may have an error has this one."""

    def failed(part: Any) -> Any:
        for name in part.fields:
            value = getattr(part, name)
            if name == "error_code":
                part.error_code = code
            for each in value if isinstance(value, list) else ():
                if hasattr(each, "fields"):
                    failed(each)
        return part

    return failed


class FailingRequests:
    """Counts a broker's requests; the one of number `failing` fails, and all later ones where it `stays`."""

    def __init__(self, broker: FakeBroker, fail: Fail, *, stays: bool) -> None:
        self.count, self.failing = 0, 0
        self.failed = False
        self._fail, self._stays = fail, stays
        broker.scripts = {key: self._counted(answer) for key, answer in broker.scripts.items()}

    def _counted(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(request: Any) -> Any:
            self.count += 1
            fails = self.failing and (self.count >= self.failing if self._stays else self.count == self.failing)
            self.failed = self.failed or bool(fails)
            return self._fail(answer(request)) if fails else answer(request)

        return counted


def anomalies() -> dict[tuple[str, int], list[bytes]]:
    """A repeat, a bump of the epoch and a transaction that stays open; and a partition with two writers."""
    one, other = Log(), Log()
    for sequence in range(3):
        one.append(data(1, 0, sequence, payload=b"%d" % sequence))
    one.append(data(1, 1, 0, payload=b"2"))
    one.append(data(3, 0, 0, transactional=True))
    one.append(marker(3, 0, commit=False))
    one.append(data(3, 1, 0, transactional=True))
    for step in range(6):
        other.append(data(2, 0, step, payload=b"a"))
        other.append(data(2, 0, 500 + step, payload=b"b"))
    return {("orders", number): [batch.encode() for batch in log.batches] for number, log in enumerate((one, other))}


@pytest.fixture
def broker():
    with FakeBroker(anomalies()) as broker:
        broker.producers["orders", 0] = [
            {"producer_id": 3, "producer_epoch": 1, "last_sequence": 0, "last_timestamp": 0, "coordinator_epoch": 0,
             "current_txn_start_offset": 6},
        ]  # fmt: skip
        broker.transactions = [
            {"transactional_id": "t", "producer_id": 3, "producer_epoch": 1, "transaction_state": "Ongoing",
             "transaction_timeout_ms": 60_000, "transaction_start_time_ms": 0, "partitions": [("orders", 0)]}
        ]  # fmt: skip
        yield broker


class Clock:
    """Time that passes only where the client waits before it asks again."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def scanned(options: ScanOptions):
    return local.scan(options, SilentProgress())


def watched(options: ScanOptions):
    logs = LivePartitions(options)
    watcher = Watcher(options, logs, Memory(), lambda result: result)
    watcher.round()
    watcher.round()
    watcher.round(last=True)
    if watcher.result is None:
        assert logs.nothing is not None
        raise logs.nothing
    return watcher.result


@pytest.mark.parametrize("command", [scanned, watched])
@pytest.mark.parametrize(
    ("fail", "stays"),
    [
        (lost, True),
        (lost, False),
        (failing_with(NOT_AUTHORIZED), True),
        (failing_with(NOT_AUTHORIZED), False),
        (failing_with(UNKNOWN_SERVER_ERROR), False),
    ],
)
def test_whichever_request_fails_the_result_says_so_or_is_the_same(broker, monkeypatch, fail, stays, command):
    monkeypatch.setattr(client, "time", Clock())
    options = ScanOptions(paths=[f"kafka://{broker.address}/orders"], jobs=1)
    requests = FailingRequests(broker, fail, stays=stays)
    client_of(broker.address, None)._retry_seconds = 0.12
    expected = command(options)
    assert {found.code for found in expected.findings} >= {"KA302", "KA404"}
    assert not expected.incomplete
    total = requests.count
    assert total > 10
    for number in itertools.count(1):
        requests.count, requests.failing, requests.failed = 0, number, False
        try:
            result = command(options)
        except (UnreadableInputError, UsageError):
            assert requests.failed
            continue
        if not requests.failed:
            break
        if not result.incomplete:
            known = [note.reason for note in result.not_audited]
            same = [found.to_dict() for found in result.findings] == [found.to_dict() for found in expected.findings]
            refused = any("configuration is not known" in reason or "could not be asked" in reason for reason in known)
            assert same or refused, (number, known)
    assert number > total / 2
