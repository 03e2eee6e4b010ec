"""Feeding targets, and keeping what breaks one."""

import faulthandler
import hashlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import TARGETS, seeds_of

FINDINGS = Path(__file__).parent / "findings"
SLOW_SECONDS = 5.0
"""An input of a few kilobytes that takes more of the processor's time is a finding too."""


class TooSlowError(Exception):
    """An input took longer than SLOW_SECONDS."""


def feed(name: str, data: bytes) -> None:
    """Feed one input. Raises whatever the target raises, and TooSlowError, also out of what would never end."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"{len(data)} bytes took {SLOW_SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SLOW_SECONDS)
    try:
        TARGETS[name].feed(data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def inputs(name: str, seed: int) -> Iterator[bytes]:
    """Every seed as it is, then for ever changed ones, and ones made field by field: the same from the same number."""
    seeds, made = seeds_of(name), TARGETS[name].made
    yield from seeds
    yield b""
    random = Random(seed)
    while True:
        yield mutated(random, seeds) if made is None or random.randrange(4) == 0 else made(random)


def keep(name: str, data: bytes) -> Path:
    """Write a finding where the tests look for it."""
    path = FINDINGS / name / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def fuzz(name: str, seconds: float, seed: int) -> tuple[int, Path | None]:
    """Feed for `seconds`; return how many inputs that were, and the finding that ended it, if any."""
    stop = time.monotonic() + seconds
    count = 0
    for data in inputs(name, seed):
        try:
            feed(name, data)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            faulthandler.enable()
            sys.excepthook(*sys.exc_info())
            return count, keep(name, data)
        count += 1
        if time.monotonic() > stop:
            break
    return count, None
