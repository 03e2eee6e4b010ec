"""Records without keys that log cleaners removed, by the lines of each release."""

import pytest

from kaudit.checks.replicas.record_times import keyless_records_removed
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import line, reported


def begins(topic="t", thread=0):
    return line(f"Cleaner {thread}: Beginning cleaning of log {topic}-0")


def removed(count, thread=0):
    return line(f"[kafka-log-cleaner-thread-{thread}]: \tFound {count} invalid messages during compaction.")


def test_of_each_partition_what_its_cleaner_removed_in_all(tmp_path):
    lines = [begins(), removed(220), begins("u"), begins(), removed(10)]
    (found,) = reported(keyless_records_removed, tmp_path, server=lines)
    assert (found.severity, found.topic, found.partition) == (Severity.ERROR, "t", 0)
    assert (found.impact.records_lost_at_least, found.impact.records_lost_at_most) == (230, 230)
    assert "removed 230 records of t-0 that had no keys" in found.message
    # the cleaner goes on with what is in the active segment yet
    assert found.next[0].endswith("--alter --entity-type topics --entity-name t --add-config cleanup.policy=delete")


def test_threads_clean_side_by_side(tmp_path):
    lines = [begins("t", 0), begins("u", 1), removed(7, 0), removed(5, 1)]
    found = reported(keyless_records_removed, tmp_path, server=lines)
    assert {each.topic: each.impact.records_lost_at_most for each in found} == {"t": 7, "u": 5}


@pytest.mark.parametrize(
    "lines",
    [
        [begins()],
        [removed(3)],
        [begins("t", 1), removed(3)],
        [begins(), line("Found x invalid messages during compaction.")],
    ],
    ids=["nothing-removed", "no-partition", "another-thread", "no-number"],
)
def test_what_names_no_partition_or_no_records_is_silent(tmp_path, lines):
    assert not reported(keyless_records_removed, tmp_path, server=lines)
