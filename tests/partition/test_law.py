"""The law of a saved state: an audit with it gives what a full one gives, however the log came to be what it is."""

import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaudit.partition import range_saver
from tests.logs import Batch
from tests.partition.audits import Audited
from tests.properties.histories import build, starts, steps
from tests.watch.growing import GrowingLog

LAW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVENTS = ("audit", "torn", "roll", "delete", "truncate", "compact", "remove", "none", "none", "none", "none")
events = st.lists(st.sampled_from(EVENTS), min_size=60, max_size=60)


def live(log: GrowingLog, audited: Audited, batches: list[Batch], happenings: list[str], amount: int) -> None:
    """Append the batches; before each something happens to the log."""
    for number, batch in enumerate(batches):
        event = happenings[number % len(happenings)]
        if not log.written or (event == "roll" and log.written[max(log.written)]):
            log.roll(batch.base_offset)
        elif event == "delete":
            log.delete_head()
        elif event == "truncate":
            log.truncate(amount)
        elif event == "compact":
            log.compact(amount + 1)
        elif event == "remove":
            log.flush()
            log.remove()
            log.written.clear()
            log.roll(batch.base_offset)
        log.append(batch, first_bytes=len(batch.encode()) // 2 if event == "torn" else None)
        if event in ("audit", "torn", "compact", "truncate"):
            audited.audit()
    log.flush()
    audited.audit()
    audited.audit()


@LAW
@given(steps, starts, events, st.integers(1, 3), st.sampled_from([None, 150, 700]), st.booleans())
def test_a_log_that_changes(actions, first, happenings, amount, chunk_bytes, has_checkpoints):
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as state,
        mock.patch.object(range_saver, "is_less_to_load", return_value=has_checkpoints),
    ):
        log = GrowingLog(Path(folder, "orders-0"))
        audited = Audited(Path(folder), Path(state), chunk_bytes=chunk_bytes)
        live(log, audited, build(actions, first).batches, happenings, amount)
