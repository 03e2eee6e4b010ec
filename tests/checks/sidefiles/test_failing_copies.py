"""KA517: copies to remote storage that keep failing, or do not end, by lines of brokers."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kaudit.checks.sidefiles.remote_segments import failing_copies
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.impact import NO_IMPACT
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.checks.broker_state.lines import line, reported
from tests.checks.sidefiles.tiered import recorded
from tests.remote_log import TieredLog

PARTITION = "z863lZF9QMuFzAaR7wutNQ:orders-0"
HOUR = 3600
TEN = int(datetime(2026, 8, 18, 10, tzinfo=UTC).timestamp() * 1000)


def at(text, second):
    """An entry at most some hours after 10 o'clock."""
    return text.replace(" 10:", f" {10 + second // HOUR}:", 1)


def said(text, second, level="INFO"):
    logger = "org.apache.kafka.server.log.remote.storage.RemoteLogManager$RLMCopyTask"
    return at(line(f"[RemoteLogManager=1 partition={PARTITION}] {text}", second % HOUR, level, logger), second)


def begun(offset, second):
    return said(f"Copying {offset:020d}.log to remote storage.", second)


def copied(offset, second):
    own = f"RemoteLogSegmentId{{topicIdPartition={PARTITION}, id=L5wUs4G1TzylmzGVuCg0yQ}}"
    return said(f"Copied {offset:020d}.log to remote storage with segment-id: {own}", second)


def failed(second):
    head = said(f"Error occurred while copying log segments of partition: {PARTITION}", second, "ERROR")
    return f"{head}\norg.apache.kafka.server.log.remote.storage.RemoteStorageException: refused"


def alive(second):
    """A line of the broker about another partition."""
    text = "[UnifiedLog partition=t-0, dir=/data] Incremented log start offset to 7 due to segment deletion"
    return at(line(text, second % HOUR), second)


def followed(second):
    text = "[Broker id=1] Follower orders-0 starts at leader epoch 3 from offset 50 with partition epoch 3 and high watermark 50. Current leader is 2."
    return line(text, second)


FAILS = [begun(0, 0), copied(0, 1), begun(20, 2), failed(3), begun(20, 33), failed(34), begun(20, 64), failed(65)]


def test_copies_that_fail_by_lines_alone(tmp_path):
    (found,) = reported(failing_copies, tmp_path, server=FAILS)
    assert (found.severity, found.topic, found.partition, found.offset) == (Severity.WARNING, "orders", 0, 20)
    evidence = found.evidence.to_dict()
    assert (evidence["failures"], evidence["copied_to"], evidence["log_events_count"]) == (3, 0, 3)
    times = [evidence[name] for name in ("copied_timestamp", "first_timestamp", "last_timestamp")]
    assert times == [TEN + 1_000, TEN + 3_000, TEN + 65_000]
    assert "3 copies in a row failed, from 2026-08-18T10:00:03.000 to 2026-08-18T10:01:05.000" in found.message
    assert found.impact == NO_IMPACT


SILENT = {
    "one failure": FAILS[:4],
    "a later copy": [*FAILS, begun(20, 90), copied(20, 91)],
    "a later copy, and one failure since": [*FAILS, copied(20, 91), failed(99)],
    "another broker leads": [*FAILS, followed(90)],
    "a copy that takes an hour": [begun(20, 0), alive(HOUR)],
    "a copy that was the log's last line": [begun(20, 0)],
    "a copy that ended after long": [begun(20, 0), copied(20, 2 * HOUR), alive(4 * HOUR)],
}


@pytest.mark.parametrize("lines", SILENT.values(), ids=SILENT)
def test_what_went_on_is_silent(tmp_path, lines):
    assert not reported(failing_copies, tmp_path, server=lines)


def test_how_far_copies_had_come_is_no_copy(tmp_path):
    """A leader that is started anew says what is in remote storage; that is the state before."""
    offset = said(
        f"Found the highest copiedRemoteOffset: Optional[OffsetAndEpoch[offset=19, epoch=0]] for partition: {PARTITION}",
        70,
    )
    (found,) = reported(failing_copies, tmp_path, server=[*FAILS, offset])
    evidence = found.evidence.to_dict()
    assert (evidence["failures"], evidence["copied_to"]) == (3, 19)


def test_a_copy_that_does_not_end(tmp_path):
    (found,) = reported(failing_copies, tmp_path, server=[begun(20, 0), alive(HOUR + 1)])
    assert (found.offset, found.evidence.to_dict()["failures"]) == (20, 0)
    assert "was begun at 2026-08-18T10:00:00.000 and had not ended at 2026-08-18T11:00:01.000" in found.message


@pytest.mark.parametrize("lines", [FAILS, [begun(20, 0), alive(3 * HOUR)]], ids=["fails", "hangs"])
@pytest.mark.parametrize("is_copied", [False, True])
def test_a_record_of_a_finished_copy(tmp_path, lines, is_copied):
    """The log is among the inputs, and another broker, whose lines are not, copied the segment."""
    tiered = TieredLog(20, 50).copied(1, 0, 19)
    if is_copied:
        tiered.copied(2, 20, 39)
    place = tiered.write(tmp_path / "data")
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    options = ScanOptions([str(place)], server_logs=[str(tmp_path / "server.log")], jobs=1)
    found = [each for each in scan(options, SilentProgress()).findings if each.code == "KA517"]
    assert len(found) == (not is_copied)


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines(keepends=True)


@pytest.mark.parametrize("name", ["tiered-holes", "tiered-holes-4.3"])
def test_recorded_failures_until_copying_went_on(name, tmp_path):
    """Brokers of 3.9.1 and 4.3.1 whose remote storage refused for a while: as of each failure, and of the copy after it."""
    lines = lines_of(recorded(name, "copied-on") / "server-b1.log")
    place = tmp_path / "server-b1.log"
    in_a_row = 0
    counts: list[int] = []
    for number, text in enumerate(lines):
        is_failure = "Error occurred while copying log segments" in text and ":orders-0 " in text
        if not is_failure and not re.search(r":orders-0\] Copied \d{20}\.log", text):
            continue
        in_a_row = in_a_row + 1 if is_failure else 0
        if in_a_row == 0 and not counts[-1:] > [0]:
            continue
        place.write_text("".join(lines[: number + 1]), encoding="utf-8")
        found = scan(ScanOptions([], server_logs=[str(place)], jobs=1), SilentProgress()).findings
        own = [each.evidence.to_dict()["failures"] for each in found if each.code == "KA517"]
        assert own == ([in_a_row] if in_a_row >= 2 else [])
        counts.append(in_a_row)
    assert max(counts) >= 3
    assert 0 in counts
