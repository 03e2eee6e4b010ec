"""Every command a finding suggests is run, and confirms what the finding said."""

import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kaudit.cli.app import run
from kaudit.engines import replicas
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.scanning.options import Depth, ScanOptions
from tests.conftest import ORACLE_VERSIONS
from tests.engines.webhdfs_server import WebHdfs

SAMPLES = Path(__file__).parents[1] / "samples"
CAPTURES = Path(__file__).parent / "data/captures"
KAFKA_COMMAND = re.compile(
    r"kafka-transactions\.sh --bootstrap-server HOST:9092 (abort|find-hanging) --topic \S+ --partition \d+"
    r"( --start-offset \d+| --producer-id \d+ --producer-epoch \d+ --coordinator-epoch \d+)?"
    r"|kafka-transactions\.sh --bootstrap-server HOST:9092"
    r" (describe --transactional-id|forceTerminateTransaction --transactionalId) \S+"
)


@dataclass
class Answer:
    """What a command printed for people, and the same as a document."""

    command: str
    code: int
    text: str
    document: dict[str, Any]


@pytest.fixture
def kaudit_json(capsys):
    """Run a command; it answers with a document."""

    def answer(command):
        assert run([*shlex.split(command)[1:], "--output-format", "json"]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    return answer


@pytest.fixture
def confirm(capsys, tmp_path):
    """Run the commands of findings; none may be taken back by its answer. Returns how many commands of kaudit it ran."""
    answers: dict[str, Answer] = {}

    def answer(command):
        if command not in answers:
            words, file = shlex.split(command)[1:], tmp_path / "answer.json"
            if words[0] == "explain":
                code = run([*words, "--output-format", "json"])
                text = capsys.readouterr().out
                return Answer(command, code, text, json.loads(text))
            code = run([*words, "--output-format", "table", "--output-format", f"json:{file}"])
            answers[command] = Answer(command, code, capsys.readouterr().out, json.loads(file.read_text()))
        return answers[command]

    def check(findings):
        for finding in findings:
            for command in finding.next:
                tool = command.partition(" ")[0]
                if tool == "kafka-dump-log":
                    *_, file = shlex.split(command)
                    assert Path(file).is_file(), command
                elif tool.startswith("kafka"):
                    assert KAFKA_COMMAND.fullmatch(command), command
                elif tool == "kaudit":
                    answered = answer(command)
                    assert answered.code in (0, 1), command
                    CONFIRMS[command.split(" ")[1]](finding, answered)
        return len(answers)

    return check


def _same_finding(finding, answer):
    found = [(one["fingerprint"], one["severity"], one["message"]) for one in answer.document["findings"]]
    assert (finding.fingerprint, finding.severity.value, finding.message) in found, answer.command
    assert f"{finding.severity.value}[{finding.code}]" in answer.text, answer.command


def _rows(finding, answer):
    rows = answer.document["rows"]
    assert rows, answer.command
    around = re.search(r"--around (\d+)", answer.command)
    if around is not None:
        batches = [(row["base_offset"], row["last_offset"]) for row in rows if row["row"] == "batch"]
        offset = int(around[1])
        holds = any(first <= offset <= last for first, last in batches)
        if finding.code == "KA601" and "missing_on" in finding.evidence and _is_of_copy_that_lacks(finding, answer):
            assert not holds, answer.command
            assert min(batches)[1] < offset, answer.command
            assert max(batches)[0] > finding.last_offset, answer.command
            assert not any(first <= finding.last_offset and last >= offset for first, last in batches), answer.command
        else:
            assert holds, answer.command


def _is_of_copy_that_lacks(finding, answer):
    copy = Path(shlex.split(answer.command)[-1]).parent.name
    assert copy in {*finding.evidence["missing_on"], *finding.evidence["held_by"]}, answer.command
    return copy in finding.evidence["missing_on"]


def _page(finding, answer):
    assert answer.document["code"] in finding.message, answer.command


def _divergence(finding, answer):
    (partition,) = answer.document["partitions"]
    assert (partition["topic"], partition["partition"]) == (finding.topic, finding.partition), answer.command
    assert partition["common_end_offset"] == finding.evidence["leader_epoch_start_offset"], answer.command


def _decided(finding, answer):
    """Reading the records confirms the finding, or shows that its producer wrote them again."""
    found = {one["fingerprint"]: one for one in answer.document["findings"]}
    again = {one["producer_id"] for one in found.values() if one["code"] == "KA704"}
    assert finding.fingerprint in found or finding.producer_id in again, answer.command


def _repeats(finding, answer):
    """The records of the finding are listed as repeats of earlier ones; at least as many as it says are in the log again."""
    again: set[int] = set()
    for row in answer.document["rows"]:
        if row["repeats"] and (row["topic"], row["partition"]) == (finding.topic, finding.partition):
            assert row["original_last_offset"] < row["offset"], answer.command
            again.update(range(row["offset"], row["last_offset"] + 1))
    there = again & set(range(finding.offset, finding.last_offset + 1))
    if finding.code == "KA207":  # says that sends failed, not which of them were repeated
        assert there, answer.command
        return
    claimed = finding.evidence["records"] if finding.code == "KA208" else finding.impact.records_duplicated
    assert finding.offset in there, answer.command
    assert len(there) >= claimed > 0, answer.command


def _processed(finding, answer):
    """Transactions of the finding's group are listed, with the inputs that it names."""
    evidence = finding.evidence
    inputs = [part for row in answer.document["rows"] for part in row.get("inputs") or ()]
    there = [part for part in inputs if part["group_id"] == evidence["group_id"]]
    assert there, answer.command


CONFIRMS = {
    "transactions": _processed,
    "scan": _decided,
    "timeline": _same_finding,
    "producers": _same_finding,
    "inspect": _rows,
    "explain": _page,
    "dedup": _repeats,
    "diff": _divergence,
}


def _findings(*paths, **options):
    try:
        return scan(ScanOptions([str(path) for path in paths], jobs=1, **options), SilentProgress()).findings
    except NothingToAuditError:
        return ()


def _log_directories(root):
    """Return the directories with partitions in them; a broker's server.log is no segment."""
    return sorted({log.parent.parent for log in root.rglob("*.log") if log.stem.isdecimal()})


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_commands_of_every_sample(confirm, sample):
    for directory in {SAMPLES / sample, *_log_directories(SAMPLES / sample)}:
        confirm(_findings(directory))


@pytest.mark.parametrize("capture", sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz")))
def test_commands_of_every_capture(confirm, evidence, capture):
    for directory in _log_directories(evidence.capture(capture)):
        confirm(_findings(directory))


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_commands_of_every_broker_asked(confirm, evidence, version):
    assert confirm(_findings(evidence.oracle(version, "logdir") / "main"))
    of_version = _findings(evidence.oracle(version, "logdir") / "main", broker_version=version)
    assert confirm({finding.code: finding for finding in of_version}.values())  # the same commands, with the version


def test_commands_where_records_were_read(confirm, evidence):
    assert confirm(_findings(evidence.capture("cross-session") / "logdirs/b1", depth=Depth.RECORDS))


def test_commands_where_the_user_knows_more_than_the_copy(confirm):
    sample = SAMPLES / "crafted"
    for partition in sorted(path for path in sample.iterdir() if path.is_dir()):
        confirm(_findings(partition, log_start_offset=0, broker_version="2.0.1", now_ms=2_000_000_000_000))


def test_commands_of_a_comparison(confirm):
    paths = [str(SAMPLES / "replicas" / name) for name in ("b1", "b2", "b3")]
    result = replicas.diff(ScanOptions(paths, jobs=1), replicas.name_replicas(paths, {}), SilentProgress())
    assert confirm(result.scan.findings)


def test_commands_where_the_old_leaders_copy_was_given_too(confirm, evidence):
    copies = evidence.capture("failover-acks1") / "B2-unclean-leader-old-one-down"
    findings = _findings(copies / "b1", copies / "b2")
    assert any(command.startswith("kaudit diff ") for finding in findings for command in finding.next)
    assert confirm(findings)


def test_commands_over_names_that_a_shell_would_take_apart(confirm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("two words", "it's", "-dash", "$HOME;ls"):
        for sample in ("hanging-transaction", "malformed", "side-files", "retries"):
            shutil.copytree(SAMPLES / sample, tmp_path / name / sample)
            assert confirm(_findings(f"./{name}/{sample}"))
    os.chdir("two words/retries")
    assert confirm(_findings("."))
    assert confirm(_findings("events-0"))


def test_commands_over_files_given_one_by_one(confirm, tmp_path):
    sample = SAMPLES / "hanging-transaction/s29d-late-write-after-abort-0/00000000000000000000.log"
    assert confirm(_findings(sample))
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        shutil.copy(sample, tmp_path / name / "copied.bin")
    findings = _findings(tmp_path / "first/copied.bin", tmp_path / "second/copied.bin")
    assert {finding.topic for finding in findings} == {"first", "second"}
    assert confirm(findings)
    retries = SAMPLES / "retries/events-0/00000000000000000000.log"
    assert confirm(_findings(shutil.copy(retries, tmp_path / "retries.bin")))


def test_commands_over_texts(confirm, evidence):
    dumps = sorted(evidence.oracle("2.8.2", "dumps").rglob("*.txt"))
    assert confirm(_findings(*dumps))
    assert confirm(_findings(*dumps[:5]))


def test_commands_over_many_inputs(confirm):
    partitions = sorted(path.parent for path in (SAMPLES / "crafted").rglob("*.log"))
    assert len(partitions) > 5
    findings = _findings(*partitions)
    assert confirm(findings)
    assert max(command.count("/crafted") for finding in findings for command in finding.next) <= 5


def test_commands_over_a_remote_store(confirm, tmp_path):
    with WebHdfs(tmp_path / "store") as store:
        for sample in ("damaged/flip-body", "malformed", "side-files", "duplicates"):
            shutil.copytree(SAMPLES / sample, store.root / sample)
        findings = _findings(f"{store.url}/damaged", f"{store.url}/malformed", f"{store.url}/side-files")
        assert not any("kafka-dump-log" in command for finding in findings for command in finding.next)
        assert confirm(findings)
        assert confirm(_findings(f"{store.url}/duplicates"))


def test_commands_that_show_more_of_the_inputs(kaudit_json):
    paths = [str(SAMPLES / "replicas" / name) for name in ("b1", "b2", "b3")]
    suggested = scan(ScanOptions(paths, jobs=1), SilentProgress()).suggestions
    assert suggested
    for suggestion in suggested:
        assert suggestion.command.startswith("kaudit diff ")
        assert kaudit_json(suggestion.command)["partitions"]
