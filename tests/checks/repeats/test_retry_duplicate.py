"""KA702: a batch without a producer id that was sent again, in a recorded log."""

import pytest

from kaudit.checks.repeats.retries import retry_duplicate
from tests.checks.findings import recorded_findings
from tests.conftest import DATA
from tests.formats import encoders
from tests.logs import BASE_TIMESTAMP as T
from tests.unpacked import unpacked


def test_retry_duplicate_is_found_where_it_was_recorded():
    assert recorded_findings(retry_duplicate, "samples/retries/events-0") == [("warning", "events", None, 5)]


def test_retry_duplicate_is_not_found_in_a_healthy_log():
    assert recorded_findings(retry_duplicate, "samples/clean") == []


def test_states_that_connect_wrote_again_are_a_note():
    """tests/data/mirrors/killed: MirrorMaker 2 wrote the offsets of three partitions again when it was started again."""
    found = recorded_findings(retry_duplicate, str(unpacked(DATA / "mirrors" / "killed.tar.xz") / "backup"))
    assert {(severity, topic) for severity, topic, _, _ in found} == {("note", "mm2-offsets.primary.internal")}


@pytest.mark.parametrize(
    ("topic", "compacted", "severity"),
    [
        ("connect-offsets", False, "note"),
        ("mm2-status.primary.internal", False, "note"),
        ("states", True, "note"),
        ("states", False, "warning"),
        ("my-connect-offsets", False, "warning"),
    ],
)
def test_states_in_a_compacted_topic_are_a_note(tmp_path, topic, compacted, severity):
    directory = tmp_path / f"{topic}-0"
    directory.mkdir()
    rows = [[encoders.record(at, 0, b"%d" % at, value) for at in range(2)] for value in (b"a", b"b", b"c", b"a")]
    batches = [encoders.batch(own, 2 * at, base_timestamp=T + 1000 * at) for at, own in enumerate(rows)]
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    assert recorded_findings(retry_duplicate, str(directory), compacted=compacted) == [(severity, topic, None, 6)]
