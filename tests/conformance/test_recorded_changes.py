"""What switches say of recordings: the release named has the change, and its recorded answers would be wrong without it."""

import pytest

from kaudit.broker.releases.switches import switches
from kaudit.broker.releases.version import Version
from tests.conformance.agreement import recordings
from tests.conformance.recorded_changes import is_shown

CHANGES = [(switch, change) for switch in switches().values() for change in switch.changes if change.recorded]
SAMPLE = CHANGES[::6]
"""The whole table takes minutes: `python -m tests.conformance.recorded_changes`."""


def test_the_release_named_has_the_change_and_was_recorded():
    versions = {recorded.version for recorded in recordings()}
    for switch, change in CHANGES:
        assert change.recorded in versions, (switch.name, change)
        assert switch.last_change(Version.parse(change.recorded)) is change, (switch.name, change)


@pytest.mark.parametrize(("switch", "change"), SAMPLE, ids=lambda value: getattr(value, "name", None))
def test_without_the_change_a_recorded_answer_would_be_wrong(switch, change):
    assert is_shown(switch, change, change.recorded)


def test_what_no_recording_shows_says_so():
    unmarked = [change for switch in switches().values() for change in switch.changes if not change.recorded]
    assert unmarked
    assert all(
        change.evidence.endswith(("from a ticket, not recorded", "from the source, not recorded"))
        for change in unmarked
    )
