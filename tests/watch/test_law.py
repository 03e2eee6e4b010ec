"""The law of a watch: at every end it has found what a scan finds, however the log came to be what it is."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.properties.histories import build, starts, steps
from tests.watch.growing import GrowingLog, Watching

LAW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVENTS = ("look", "look", "torn", "roll", "roll", "restart")
events = st.lists(st.sampled_from(EVENTS), min_size=60, max_size=60)


def was_overdue(finding):
    """Whether it is about a transaction that was idle for 15 minutes, brokers' transaction.max.timeout.ms, by their own times."""
    return finding["name"] == "open-transaction" and finding["evidence"]["idle_ms"] >= 15 * 60_000


def grow(log, watching, batches, happenings, changes=None):
    """Append the batches; before each something happens."""
    for number, batch in enumerate(batches):
        event = happenings[number % len(happenings)]
        if not log.written or (event == "roll" and log.written[max(log.written)]):
            log.roll(batch.base_offset)
        if event == "restart":
            watching.restart()
        if changes is not None:
            changes(event)
        log.append(batch, first_bytes=len(batch.encode()) // 2 if event == "torn" else None)
        if event != "restart":
            watching.look()
    log.flush()


ENDED_TOO_LATE = [
    *((name, 0, 1, False) for name in ("toggle", "next")),
    *((name, 1, 1, False) for name in ("toggle", "next", "marker", "silence", "next", "marker")),
    ("marker", 0, 1, False),
]
ODD_EPOCH = [(name, 0, 1, False) for name in ("next", "new-leader", "next", "next", "marker", "next")]
"""Leader epochs 0, 1, 1, 0, 1: which of them is the odd one, the last batch shows."""


@LAW
@given(steps, starts, events)
@example(ENDED_TOO_LATE, [0, 0, 0], ["look"] * 60)
@example(ODD_EPOCH, [0, 0, 0], ["look"] * 60)
def test_a_log_that_grows_and_rolls(actions, first, happenings):
    with tempfile.TemporaryDirectory() as folder:
        log, watching = GrowingLog(Path(folder, "orders-0")), Watching(Path(folder))
        grow(log, watching, build(actions, first).batches, happenings)
        early = dict(watching.reported)
        found = watching.end()
        assert found == watching.scanned()
        ended = {key for key, finding in early.items() if key not in found and was_overdue(finding)}
        assert early.keys() <= found.keys() | ended  # nothing was reported too early
        assert watching.reported.keys() == found.keys() | ended
        assert watching.repeated == []


@LAW
@given(steps, starts, events, st.integers(2, 4))
def test_a_log_that_is_compacted_and_truncated(actions, first, happenings, amount):
    with tempfile.TemporaryDirectory() as folder:
        log, watching = GrowingLog(Path(folder, "orders-0")), Watching(Path(folder))
        batches = build(actions, first).batches
        half = len(batches) // 2
        grow(log, watching, batches[:half], happenings)
        if log.written:
            log.compact(amount)
            watching.look()
            log.truncate(amount)
            if happenings[0] != "restart":
                watching.look()
        kept = sum(len(own) for own in log.written.values())
        grow(log, watching, batches[max(half, kept) :], happenings)
        found = watching.end()
        assert found == watching.scanned()
        assert found.keys() <= watching.reported.keys()
        assert watching.repeated == []


@LAW
@given(steps, starts, events)
def test_a_log_whose_head_retention_deletes(actions, first, happenings):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as undeleted:
        log, watching = GrowingLog(Path(folder, "orders-0")), Watching(Path(folder))
        whole = GrowingLog(Path(undeleted, "orders-0"))
        batches = build(actions, first).batches

        def delete(event):
            if event == "roll" and len(log.written) > 2:
                watching.look()
                log.delete_head()

        calm = ["look" if event == "restart" else event for event in happenings]
        grow(log, watching, batches, calm, delete)
        grow(whole, Watching(Path(undeleted)), batches, calm)
        found = watching.end().keys()
        # a watch that saw the head knows more than a scan of what is left, and no more than one of the whole log
        fingerprints = {key.split()[0] for key in found}
        all_fingerprints = {key.split()[0] for key in Watching(Path(undeleted)).scanned()}
        assert {key.split()[0] for key in watching.scanned()} & all_fingerprints <= fingerprints <= all_fingerprints
