"""Feeding a target, one input or as many as fit in a time, in processes that may die of it; and keeping what breaks one."""

import hashlib
import mmap
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct, field

from tests.fuzz import outcomes
from tests.fuzz.corpus import Corpus
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import TARGETS, seeds_of

FINDINGS = Path(__file__).parent / "findings"
SLOW_SECONDS = 5.0
"""An input of a few kilobytes that takes more of the processor's time is a finding too."""
_HANG_SECONDS = 10
"""Where no Python runs that could be interrupted, the process is killed after so many seconds of the processor's time."""
LARGE_MIB = 400
"""A process that has more memory than this after an input is a finding."""
_LONGEST_INPUT = 1 << 20
_STATE = struct.Struct(">QddI")
"""Shared with the process that feeds: inputs fed, most CPU seconds of one, greatest resident MiB, length of the input at hand."""
_INPUTS_A_PROCESS = 20_000


class TooSlowError(Exception):
    """An input took longer than SLOW_SECONDS."""


class TooLargeError(Exception):
    """The process has more than LARGE_MIB of memory."""


class Fed(Struct):
    """What came of feeding one target. `slowest` in seconds of the processor's time."""

    inputs: int = 0
    findings: list[Path] = field(default_factory=list)
    slowest: float = 0.0
    mebibytes: float = 0.0


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


def inputs(name: str, seed: int, more: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Every seed as it is, then for ever changed ones, and ones made field by field: the same from the same number.

    `more` are seeds too, and may grow meanwhile.
    """
    seeds, made = seeds_of(name), TARGETS[name].made
    yield from seeds
    yield b""
    random = Random(seed)
    while True:
        if made is not None and random.randrange(4):
            yield made(random)
        else:
            yield mutated(random, more if more and random.randrange(2) else seeds)


def keep(name: str, data: bytes) -> Path:
    """Write a finding where the tests look for it."""
    path = FINDINGS / name / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def fuzz(name: str, seconds: float, seed: int, corpus: Corpus, *, go_on: bool) -> Fed:
    """Feed a target for `seconds`, until the first finding unless `go_on`. What kills the process is a finding too."""
    seeds_of(name)  # made once, not once a process
    fed, stop = Fed(), time.monotonic() + seconds
    while True:
        with mmap.mmap(-1, _STATE.size + _LONGEST_INPUT) as shared:
            code = _in_process(lambda shared=shared, seed=seed: _feed_many(name, stop, seed, corpus, shared))  # type: ignore[misc]
            count, slowest, mebibytes, size = _STATE.unpack_from(shared)
            data = shared[_STATE.size : _STATE.size + size]
        fed.inputs, seed = fed.inputs + count, seed + 1
        fed.slowest, fed.mebibytes = max(fed.slowest, slowest), max(fed.mebibytes, mebibytes)
        if code:
            fed.findings.append(keep(name, data))
        if time.monotonic() > stop or (code and not go_on):
            return fed


def _in_process(work: Callable[[], int]) -> int:
    """Return what `work` returns in a process of its own, or the number of the signal that ended that, below 0."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def _feed_many(name: str, stop: float, seed: int, corpus: Corpus, shared: mmap.mmap) -> int:
    import faulthandler

    faulthandler.enable()
    slowest = mebibytes = 0.0
    for count, data in enumerate(inputs(name, seed, corpus.inputs(name))):
        _STATE.pack_into(shared, 0, count, slowest, mebibytes, len(data))
        if count == _INPUTS_A_PROCESS or time.monotonic() > stop:
            break
        shared[_STATE.size : _STATE.size + len(data)] = data
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + _HANG_SECONDS + 1, resource.RLIM_INFINITY))
        outcomes.forget()
        feed(name, data)
        slowest = max(slowest, time.process_time() - began)
        mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if mebibytes > LARGE_MIB:
            raise TooLargeError(f"{len(data)} bytes: {mebibytes:.0f} MiB")
        corpus.take(name, data, outcomes.seen())
    return 0
