"""--server-log and --client-log of scan and timeline."""

import gzip
import json
from pathlib import Path

import pytest

from kaudit.results.saved_scan import read_saved
from tests.conformance.server_logs import unpacked
from tests.report.test_json_schemas import DOCUMENT, validator


@pytest.fixture(scope="module")
def recorded():
    with unpacked("2.4.1", "histories") as found:
        yield found


def server_log(recorded):
    return next(path for path in recorded.server_logs if path.endswith("server.log"))


def test_json_has_what_the_logs_came_to(kaudit, recorded):
    data = recorded.log_directories[0]
    plain = json.loads(kaudit("scan", data, "--output-format", "json", "--reproducible").out)
    outcome = kaudit("scan", data, "--server-log", server_log(recorded), "--output-format", "json", "--reproducible")
    document = json.loads(outcome.out)
    validator(DOCUMENT).validate(document)
    assert document["log_events"]["files"][0]["events"] == sum(document["log_events"]["events"].values()) > 100
    from_bytes = [one for one in document["findings"] if not "KA810" <= one["code"] <= "KA819"]
    assert [one["fingerprint"] for one in from_bytes] == [one["fingerprint"] for one in plain["findings"]]
    assert all(one["evidence"]["log_events"] for one in document["findings"] if one not in from_bytes)
    supported = [one for one in document["findings"] if "log_events" in one["evidence"]]
    assert {one["code"] for one in supported} >= {"KA301"}
    for one in supported:
        assert all(
            set(event) == {"path", "line", "timestamp", "event", "text"} for event in one["evidence"]["log_events"]
        )
    assert "log_events" not in plain
    assert read_saved(outcome.out).result.log_events is not None


def test_people_read_lines_clock_and_what_never_landed(kaudit, recorded):
    text = kaudit("scan", recorded.log_directories[0], "--server-log", server_log(recorded)).out
    assert "= log: server.log:" in text
    assert "a time zone, UTC" in text
    assert "refused, never in the log: " in text


def test_a_directory_and_a_compressed_log_say_the_same(kaudit, recorded, tmp_path):
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress(Path(server_log(recorded)).read_bytes()))
    arguments = ("scan", recorded.log_directories[0], "--output-format", "json", "--reproducible", "--server-log")
    expected = json.loads(kaudit(*arguments, server_log(recorded)).out)["log_events"]
    found = json.loads(kaudit(*arguments, tmp_path).out)["log_events"]
    assert found["events"] == expected["events"]
    assert len(found["refused"]) == len(expected["refused"])


def test_timelines_show_refusals_between_batches(kaudit, recorded):
    arguments = ("timeline", recorded.log_directories[0], "--topic", "h32-3", "--partition", "0", "--server-log")
    document = json.loads(kaudit(*arguments, server_log(recorded), "--output-format", "json").out)
    validator(DOCUMENT).validate(document)
    entries = [entry for timeline in document["timelines"] for entry in timeline["entries"]]
    refusals = [entry for entry in entries if entry["kind"] == "event" and entry["event"] == "out_of_order_sequence"]
    assert refusals
    assert all(entry["placed_by"] == "offset" for entry in refusals)
    assert "refused: out_of_order_sequence" in kaudit(*arguments, server_log(recorded)).out


def test_events_only_add_to_a_timeline(kaudit, recorded):
    arguments = ("timeline", recorded.log_directories[0], "--output-format", "json", "--reproducible")
    plain, given = (
        json.loads(kaudit(*arguments, *more).out)["timelines"] for more in ((), ("--server-log", server_log(recorded)))
    )
    for before, after in zip(plain, given, strict=True):
        assert [entry for entry in after["entries"] if entry["kind"] != "event"] == before["entries"]
        assert after | {"entries": None} == before | {"entries": None}
    assert sum(len(timeline["entries"]) for timeline in given) > sum(len(timeline["entries"]) for timeline in plain)


@pytest.mark.parametrize("option", ["--server-log", "--client-log"])
def test_what_was_said_to_be_a_log_and_is_none_is_missed_and_the_rest_is_audited(kaudit, tmp_path, option):
    (tmp_path / "novel.txt").write_text("It was a dark and stormy night.\n" * 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "random.bin").write_bytes(bytes(range(256)) * 9)
    reasons = {
        "novel.txt": "a text of which none of 50 lines is of a log that kaudit knows",
        "empty": f"{option}: no segment",
        "random.bin": "no segment file but binary data",
    }
    for name, reason in reasons.items():
        outcome = kaudit("scan", "samples/clean", option, tmp_path / name)
        assert outcome.code == 4
        assert "Could not be read:" in outcome.out
        (line, _) = outcome.err.splitlines()
        assert line.startswith(f"kaudit: {tmp_path / name}: ")
        assert reason in line


@pytest.mark.parametrize("option", ["--server-log", "--client-log"])
def test_a_log_that_is_not_there_is_refused_in_one_line(kaudit, tmp_path, option):
    outcome = kaudit("scan", "samples/clean", option, tmp_path / "none.log")
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    assert option in line


def test_a_log_without_events_changes_nothing(kaudit, tmp_path):
    quiet = tmp_path / "server.log"
    quiet.write_text("[2026-11-22 14:24:55,811] INFO Something else happened (kafka.server.Other)\n")
    outcome = kaudit("scan", "samples/clean", "--server-log", quiet)
    assert outcome.code == 0
    assert "1 line, 0 events" in outcome.out


def test_a_report_is_not_written_over_a_log(kaudit, recorded):
    log = server_log(recorded)
    outcome = kaudit("scan", "samples/clean", "--server-log", log, "--output-format", f"json:{log}")
    assert outcome.code == 2
