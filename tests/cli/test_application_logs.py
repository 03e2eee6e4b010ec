"""--server-log and --client-log of scan and timeline."""

import gzip
import json
import os
from pathlib import Path

import pytest

from kaudit.results.saved_scan import read_saved
from tests.conformance.server_logs import recording
from tests.report.test_json_schemas import DOCUMENT, validator


@pytest.fixture(scope="module")
def recorded():
    return recording("2.4.1", "histories")


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


def listed(kaudit, *arguments):
    """Exit code, and the document of a scan."""
    outcome = kaudit("scan", "--output-format", "json", "--reproducible", *arguments)
    return outcome.code, json.loads(outcome.out), outcome.err


def test_a_log_among_the_paths_is_the_log_of_the_option_that_says_whose_it_is(kaudit, recorded):
    data, log = recorded.log_directories[0], server_log(recorded)
    code, expected, _ = listed(kaudit, data, "--server-log", log)
    for arguments in ((data, log), (log, data), (data, log, "--server-log", log)):
        found = listed(kaudit, *arguments)
        assert found[0] == code
        assert found[1]["log_events"] == expected["log_events"]
        assert [one | {"next": []} for one in found[1]["findings"]] == [
            one | {"next": []} for one in expected["findings"]
        ]


def test_logs_by_themselves(kaudit, recorded, tmp_path):
    log = server_log(recorded)
    _, beside, _ = listed(kaudit, recorded.log_directories[0], log)
    for arguments in ((log,), ("--server-log", log)):
        _, alone, said = listed(kaudit, *arguments)
        validator(DOCUMENT).validate(alone)
        assert alone["partitions"] == []
        assert (alone["log_events"]["files"], alone["log_events"]["events"]) == (
            beside["log_events"]["files"], beside["log_events"]["events"],
        )  # fmt: skip
        assert "in 1 log of brokers and clients" in said
    quiet = tmp_path / "quiet.log"
    quiet.write_text("[2026-11-22 14:24:55,811] INFO Something else happened (kafka.server.Other)\n")
    outcome = kaudit("scan", quiet)
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "no findings in 1 log of brokers and clients")
    assert kaudit("timeline", quiet).code == 0


def test_other_commands_say_that_logs_show_no_batches(kaudit, tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[2026-11-22 14:24:55,811] INFO started (kafka.server.KafkaServer)\n")
    for command in ("producers", "dedup"):
        outcome = kaudit(command, log)
        assert (outcome.code, outcome.out) == (3, "")
        assert "which shows no batches: kaudit scan, timeline and attempts read it by itself" in outcome.err


GC = "[2023-12-05T12:06:32.654+0700][gc,heap] Heap region size: 1M\n[2023-12-05T12:06:32.660+0700][gc     ] Using G1\n"


def test_a_directory_of_logs_with_those_of_other_programs(kaudit, recorded, tmp_path):
    (tmp_path / "server.log").write_bytes(Path(server_log(recorded)).read_bytes())
    for number in range(3):
        (tmp_path / f"kafkaServer-gc.log.{number}").write_text(GC)
    _, expected, _ = listed(kaudit, "samples/clean", server_log(recorded))
    for arguments in (("--server-log", tmp_path), (tmp_path,)):
        code, document, said = listed(kaudit, "samples/clean", *arguments)
        assert code == int(any(one["severity"] == "error" for one in document["findings"]))
        assert document["log_events"]["events"] == expected["log_events"]["events"]
        skipped = {one["path"]: one["reason"] for one in document["not_audited"] if "gc.log" in one["path"]}
        assert skipped == {
            str(tmp_path / f"kafkaServer-gc.log.{number}"): "the log of the JVM's garbage collector: skipped"
            for number in range(3)
        }
        assert all(path in said for path in skipped)
    for number in range(3, 9):
        (tmp_path / f"kafkaServer-gc.log.{number}").write_text(GC)
    (line,) = [line for line in kaudit("scan", "samples/clean", tmp_path).err.splitlines() if "gc.log" in line]
    assert line.endswith("gc.log.1 and 7 more: the log of the JVM's garbage collector: skipped")


def test_a_log_that_cannot_be_read_is_missed_and_ends_nothing(kaudit, tmp_path, monkeypatch):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "server.log").write_text("[2026-11-22 14:24:55,811] INFO started (kafka.server.KafkaServer)\n")
    whole = gzip.compress(b"[2026-11-22 14:24:55,811] INFO started (kafka.server.KafkaServer)\n" * 9)
    (logs / "server.log.1.gz").write_bytes(whole[:-12])
    os.mkfifo(logs / "server.log.2")
    for arguments in (("--server-log", logs), (logs,)):
        code, document, _ = listed(kaudit, "samples/clean", *arguments)
        assert code == 4
        assert len(document["partitions"]) == 3
        assert [file["path"] for file in document["log_events"]["files"]] == [
            str(logs / name) for name in ("server.log", "server.log.1.gz")
        ]
        missed = {Path(one["path"]).name for one in document["not_audited"] if one["unreadable"]}
        assert missed == {"server.log.1.gz", "server.log.2"}


def test_what_several_programs_wrote_into_one_file_is_read_for_each(kaudit, recorded, tmp_path):
    """As docker compose prints it: an event that both a broker's and a client's messages fit counts once."""
    refused = (
        b"[2024-06-24 08:11:02,411] ERROR [ReplicaManager broker=2] Error processing append operation on partition m-0"
        b" (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence"
        b" number for producer 29003 at offset 1641969 in partition m-0: 158 (incoming seq. number), 155 (current end sequence number)\n"
    )
    client = (
        b"2024-06-24 08:11:02,431 WARN [Producer clientId=p-1] Got error produce response with correlation id 5 on topic-partition"
        b" m-0, retrying (2147483646 attempts left). Error: OUT_OF_ORDER_SEQUENCE_NUMBER"
        b" (org.apache.kafka.clients.producer.internals.Sender)\n"
    )
    both = tmp_path / "compose.log"
    both.write_bytes(refused + client)
    _, document, _ = listed(kaudit, both)
    assert [(file["origin"], file["events"]) for file in document["log_events"]["files"]] == [
        ("server", 1),
        ("client", 1),
    ]
    assert sum(document["log_events"]["events"].values()) == 2


def test_lines_of_a_client_among_those_of_a_broker(kaudit, tmp_path):
    """apache/kafka#3343: a test of Kafka's own runs both in one process. The producer's lines were passed over."""
    (tmp_path / "output.log").write_text(
        "[2017-06-13 23:58:09,644] ERROR Aborting producer batches due to fatal error (org.apache.kafka.clients.producer.internals.Sender:381)\n"
        "org.apache.kafka.common.errors.ProducerFencedException: Producer attempted an operation with an old epoch.\n"
        "[2017-06-13 23:58:10,177] ERROR [ReplicaFetcherThread-0-0]: Error for partition [topic2,3] to broker "
        "0:org.apache.kafka.common.errors.NotLeaderForPartitionException: This server is not the leader for that topic-partition. "
        "(kafka.server.ReplicaFetcherThread:99)\n"
    )
    outcome = kaudit("scan", str(tmp_path / "output.log"))
    assert outcome.code == 1
    assert "error[KA812]" in outcome.out
