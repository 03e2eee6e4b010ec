"""Signals that end a long run."""

import signal
import threading

import pytest

from kaudit.cli.progress import ends_on_signals


class Held(threading.Event):
    """An event whose lock somebody holds, as the thread does that a signal interrupts in `wait`."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def set(self):
        if self.lock.acquire(timeout=5):
            super().set()
            self.lock.release()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_wait_is_heeded(number):
    stop = Held()
    with ends_on_signals(stop):
        with stop.lock:
            signal.raise_signal(number)
        assert stop.wait(10)


def test_nothing_of_it_keeps_the_interpreter_waiting():
    before = {*threading.enumerate()}
    with ends_on_signals(threading.Event()):
        (relay,) = {*threading.enumerate()} - before
        assert relay.daemon
    relay.join(10)
    assert not relay.is_alive()


@pytest.fixture
def python_s_own_handler():
    # a shell starts what runs in the background with SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_the_second_signal_ends_at_once_and_afterwards_handlers_are_as_before(python_s_own_handler):
    stop = threading.Event()
    with ends_on_signals(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is python_s_own_handler


def test_a_run_that_ends_by_itself_was_not_stopped():
    stop = threading.Event()
    with ends_on_signals(stop):
        pass
    assert not stop.wait(0.05)
