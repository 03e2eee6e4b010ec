"""What applications do: healthy loops, and the mistakes that double or skip inputs."""

import signal
import time

from tests.live_brokers.exactly_once.stage import INPUTS, OUTPUTS, Loop, Stage

_SESSION_SECONDS = 6
_CYCLE = ("poll 10", "begin", f"write {OUTPUTS}", "offsets", "commit")


def _polled(loop: Loop) -> str:
    """Polls until it is given records, which takes a rebalance."""
    deadline = time.monotonic() + 40
    while not (read := loop("poll 10")[0]):
        assert time.monotonic() < deadline
    return read


def _cycle(loop: Loop) -> None:
    _polled(loop)
    assert loop(*_CYCLE[1:]) == ["done"] * 4


def healthy_loop(stage: Stage) -> None:
    """Two members of a group read two partitions and write in transactions. One aborts and goes back to what is committed; one
    is killed in the middle of a transaction, and started again; one is paused until it is replaced, and is refused."""
    stage.feed(30, 0)
    stage.feed(30, 1)
    first = stage.loop("loop-a", "loop")
    first(f"subscribe {INPUTS}")
    _cycle(first)
    _cycle(first)
    _polled(first)
    first("begin", f"write {OUTPUTS}", "offsets", "abort", "rewind")
    _cycle(first)
    second = stage.loop("loop-b", "loop")
    second(f"subscribe {INPUTS}")
    while not second("poll 10")[0]:
        if first("poll 10")[0]:
            first(*_CYCLE[1:])
        stage.feed(10, 0)
        stage.feed(10, 1)
    second(*_CYCLE[1:])
    stage.feed(40, 0)
    stage.feed(40, 1)
    _polled(second)
    second("begin", f"write {OUTPUTS}")
    second.kill()
    again = stage.loop("loop-b", "loop")
    again(f"subscribe {INPUTS}")
    time.sleep(_SESSION_SECONDS)
    _drain(first, again)
    stage.feed(40, 0)
    stage.feed(40, 1)
    _polled(first)
    first("begin", f"write {OUTPUTS}")
    first.pause()
    time.sleep(_SESSION_SECONDS)
    _drain(again)
    first.resume()
    assert "Exception" in first("offsets")[0]
    first("abort")


def _drain(*loops: Loop) -> None:
    """Let members process until each is given nothing twice."""
    quiet = 0
    while quiet < 2:
        read = [loop("poll 10")[0] for loop in loops]
        for loop, own in zip(loops, read, strict=True):
            if own:
                loop(*_CYCLE[1:])
        quiet = 0 if any(read) else quiet + 1


_BY_GROUP = ("begin", f"write {OUTPUTS}", "offsets-of-the-group", "commit")


def _replaced(stage: Stage, cycles: int) -> None:
    stage.feed(60)
    first = stage.loop("zombie-a", "zombies", isolation_level="read_uncommitted")
    first(f"subscribe {INPUTS}")
    _polled(first)
    assert first(*_BY_GROUP) == ["done"] * 4
    _polled(first)
    first("begin", f"write {OUTPUTS}")
    first.pause()
    second = stage.loop("zombie-b", "zombies", isolation_level="read_uncommitted")
    second(f"subscribe {INPUTS}")
    for _ in range(cycles):
        _polled(second)
        assert second(*_BY_GROUP) == ["done"] * 4
    first.resume()
    assert first("offsets-of-the-group", "commit") == ["done"] * 2
    for _ in range(2):
        _polled(second)
        assert second(*_BY_GROUP) == ["done"] * 4


def zombie_goes_back(stage: Stage) -> None:
    """A member names the group alone where it sends its offsets, so that no generation fences it. It is paused in a transaction of
    inputs 10 to 19; another processes 10 to 29; the first goes on and commits: its inputs are doubled, and the offset goes back."""
    _replaced(stage, 2)


def zombie_at_the_same_offset(stage: Stage) -> None:
    """As zombie_goes_back, but the other has processed the same inputs alone, so that both commit the same offset."""
    _replaced(stage, 1)


def _outside(stage: Stage, name: str, *steps: str) -> None:
    """Ten inputs a time, by these steps; the application ends before the last of them the tenth time, and is started again."""
    stage.feed(140)
    for cycles in (9, 4):
        loop = stage.loop(name, name)
        loop(f"subscribe {INPUTS}")
        for _ in range(cycles):
            _polled(loop)
            loop("begin", f"write {OUTPUTS}", *steps)
        if cycles == 9:
            _polled(loop)
            loop("begin", f"write {OUTPUTS}", *steps[:-1])
            loop.kill()


def offsets_after_the_transaction(stage: Stage) -> None:
    """The offsets are committed by the consumer, after the transaction. The application ends between the two, and is started again:
    inputs 90 to 99 are doubled."""
    _outside(stage, "outside", "commit", "commit-offsets")


def offsets_before_the_transaction(stage: Stage) -> None:
    """The offsets are committed by the consumer, before the transaction. The application ends in it, and is started again: inputs 90
    to 99 are skipped."""
    _outside(stage, "before", "commit-offsets", "commit")


def offsets_automatic(stage: Stage) -> None:
    """An application that writes in transactions has enable.auto.commit: some transactions are between two commits. It ends, and is
    started again: what was processed since the last commit is doubled."""
    stage.feed(160)
    for cycles in (10, 5):
        loop = stage.loop("automatic", "automatic", enable_auto_commit="true", auto_commit_interval_ms=1500)
        loop(f"subscribe {INPUTS}")
        for _ in range(cycles):
            _polled(loop)
            assert loop("begin", f"write {OUTPUTS}", "commit") == ["done"] * 3
            time.sleep(0.4)
        loop.kill()


def outputs_without_inputs(stage: Stage) -> None:
    """One transaction of an application has outputs and no offsets; it ends after it, and is started again: inputs 20 to 29 are doubled."""
    stage.feed(60)
    loop = stage.loop("alone", "alone")
    loop(f"subscribe {INPUTS}")
    for _ in range(2):
        _cycle(loop)
    _polled(loop)
    assert loop("begin", f"write {OUTPUTS}", "commit") == ["done"] * 3
    loop.kill()
    again = stage.loop("alone", "alone")
    again(f"subscribe {INPUTS}")
    for _ in range(3):
        _cycle(again)


def abort_without_going_back(stage: Stage) -> None:
    """An application aborts a transaction, and goes on where its consumer is: inputs 10 to 19 are skipped."""
    stage.feed(40)
    loop = stage.loop("forward", "forward")
    loop(f"subscribe {INPUTS}")
    _cycle(loop)
    _polled(loop)
    loop("begin", f"write {OUTPUTS}", "offsets", "abort")
    _cycle(loop)
    _cycle(loop)


def jump_outside(stage: Stage) -> None:
    """An application that commits in transactions passes over inputs 10 to 19: it commits them by its consumer, unprocessed."""
    stage.feed(40)
    loop = stage.loop("jump", "jump")
    loop(f"subscribe {INPUTS}")
    _cycle(loop)
    _polled(loop)
    loop("commit-offsets")
    _cycle(loop)
    _cycle(loop)


def processed_again(stage: Stage) -> None:
    """An application goes back to input 5 by itself, without a reset, and processes 5 to 14 once more in a transaction."""
    stage.feed(40)
    loop = stage.loop("again", "again")
    loop(f"subscribe {INPUTS}")
    _cycle(loop)
    _cycle(loop)
    loop(f"seek {INPUTS} 0 5")
    _cycle(loop)
    _cycle(loop)
    _cycle(loop)


def together(stage: Stage) -> None:
    """A replaced member that goes back, an abort without going back, and inputs passed over, of three groups with the same inputs."""
    zombie_goes_back(stage)
    abort_without_going_back(stage)
    jump_outside(stage)


def _streams(stage: Stage, version: str, guarantee: str) -> None:
    stage.feed(30, 0)
    stage.feed(30, 1)
    first = stage.streams("first", version, guarantee, "state-1")
    _read(stage, "first", 20)
    second = stage.streams("second", version, guarantee, "state-2")
    for _ in range(8):
        stage.feed(15, 0)
        stage.feed(15, 1)
        time.sleep(0.7)
    first.kill()
    for _ in range(8):
        stage.feed(15, 0)
        stage.feed(15, 1)
        time.sleep(0.7)
    again = stage.streams("again", version, guarantee, "state-1")
    _read(stage, "again", 0)
    for _ in range(6):
        stage.feed(15, 0)
        stage.feed(15, 1)
        time.sleep(0.7)
    second.send_signal(signal.SIGSTOP)
    time.sleep(8)
    second.send_signal(signal.SIGCONT)
    time.sleep(8)
    for running in (again, second):
        running.terminate()
        running.wait(40)


def _read(stage: Stage, name: str, count: int) -> None:
    """Wait until an application runs and has read so many inputs."""
    out = stage.home / f"client-{name}" / "stdout"
    deadline = time.monotonic() + 60
    while "state RUNNING" not in (said := out.read_text()) or said.count("read ") < count:
        assert time.monotonic() < deadline, said
        time.sleep(0.3)


def streams_exactly_once(stage: Stage) -> None:
    """Two instances of a Streams application with exactly_once_v2: one is killed and started again, one is paused until it is
    replaced."""
    _streams(stage, _client(stage), "exactly_once_v2")


def streams_at_least_once(stage: Stage) -> None:
    """As streams_exactly_once with at_least_once: what was processed since the last commit is doubled, and no transaction shows it."""
    _streams(stage, _client(stage), "at_least_once")


def _client(stage: Stage) -> str:
    return stage.broker.version
