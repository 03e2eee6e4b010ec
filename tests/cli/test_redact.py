"""--redact: no name of the input is in any output, and all else stays."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from kaudit.cli.commands import COMMANDS
from kaudit.cli.exits import ExitCode
from kaudit.formats.internal_topics.rewriting import rewritten_record
from kaudit.formats.log.records import rewritten
from kaudit.report.formats import FORMATS
from kaudit.results.log_words import redacted_line
from kaudit.results.redaction import Redactor
from tests.formats.log.raw_batches import batches
from tests.logs import Log, data
from tests.report.test_json_schemas import DOCUMENT
from tests.source.kafka.fake_broker import FakeBroker

MARK = "zq"
SAMPLES = ("zombie", "coordinator", "duplicates", "replicas", "producer-ids", "side-files")
TEXTS = sorted(name for name, form in FORMATS.items() if not form.directory)
_ROW = re.compile(rb"^([A-Za-z][\w.-]*) (\d+ \d+)$", re.MULTILINE)


def marked(sample: str, root: Path) -> Path:
    """A copy of a sample in which every name that a user gives has a mark."""
    target = root / f"{MARK}{sample}"
    shutil.copytree(Path("samples") / sample, target)
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir() and not path.name.startswith("__"):
            path.rename(path.with_name(f"{MARK}{path.name}"))
        elif path.name.endswith("-checkpoint"):
            path.write_bytes(_ROW.sub(rb"zq\1 \2", path.read_bytes()))
    return target


def findings(document):
    return sorted((each["code"], each["partition"], each["offset"] or 0) for each in document["findings"])


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_name_is_in_any_output_of_a_scan(kaudit, tmp_path, sample):
    root = marked(sample, tmp_path)
    files = {form: tmp_path / f"out.{form}" for form in TEXTS}
    outcome = kaudit(
        "scan", "-v", "--redact", *(f"--output-format={form}:{file}" for form, file in files.items()), str(root)
    )
    texts = {form: file.read_text() for form, file in files.items()}
    assert all(texts.values())
    assert [form for form, text in texts.items() if MARK in text or str(tmp_path) in text] == []
    assert (outcome.code, MARK in outcome.err) == (kaudit("scan", "-v", str(root)).code, False)


@pytest.mark.parametrize("command", ["timeline", "producers", "diff"])
@pytest.mark.parametrize("form", ["table", "json", "jsonl", "html"])
def test_no_name_is_in_the_output_of_other_commands(kaudit, tmp_path, command, form):
    root = marked("coordinator", tmp_path)
    names = {
        found["transactional_id"]
        for found in json.loads(kaudit("producers", "-o", "-", "--output-format", "json", str(root)).out)["producers"]
    }
    inputs = [str(root)]
    if command == "diff":
        shutil.copytree(root, tmp_path / f"{MARK}other")
        inputs.append(str(tmp_path / f"{MARK}other"))
    outcome = kaudit(command, "-v", "--redact", "--output-format", form, *inputs)
    assert outcome.code in (ExitCode.OK, ExitCode.FINDINGS), outcome.err
    assert MARK not in outcome.out
    assert not [name for name in names if name and name in outcome.out]


def test_findings_are_the_same_and_one_secret_gives_one_result(kaudit, tmp_path):
    root = marked("zombie", tmp_path)
    scan = ("scan", "-v", "--reproducible", "--output-format", "json", str(root))
    plain = json.loads(kaudit(*scan).out)
    one, again, other = (kaudit(*scan, "--redact", "--redact-secret", secret).out for secret in ("a", "a", "b"))
    assert (one == again, one == other) == (True, False)
    assert findings(json.loads(one)) == findings(plain)
    assert kaudit(*scan, "--redact").out != kaudit(*scan, "--redact").out


def test_fingerprints_are_of_the_replaced_names_and_what_a_team_wrote_is_gone(kaudit, tmp_path):
    root = marked("zombie", tmp_path)
    plain = json.loads(kaudit("scan", "-v", "--output-format", "json", str(root)).out)
    prints = {each["fingerprint"] for each in plain["findings"]}
    baseline = tmp_path / "baseline.json"
    made = kaudit("baseline", "create", "-v", "--baseline", str(baseline), "--reason", "zq is on holiday", str(root))
    assert made.code == ExitCode.OK, made.err
    gone = baseline.read_text().replace(plain["findings"][0]["fingerprint"], "0123456789abcdef")
    baseline.write_text(gone)
    outcome = kaudit("scan", "-v", "--redact", "--output-format", "json", "--baseline", str(baseline), str(root))
    document = json.loads(outcome.out)
    assert MARK not in outcome.out
    assert "0123456789abcdef" not in outcome.out
    assert not [each for each in prints if each in outcome.out]
    shown = {each["fingerprint"] for each in document["findings"]}
    assert {each["incident"] for each in document["findings"] if each["incident"]} <= shown


def test_what_is_in_clear_is_one_line_on_stderr(kaudit, tmp_path):
    outcome = kaudit("scan", "--redact", "--quiet", str(marked("clean", tmp_path)))
    (line,) = outcome.err.splitlines()
    assert line.startswith("kaudit: redacted; in clear are offsets, sequences, producer ids")


def test_tables_are_redacted(kaudit, tmp_path):
    root = marked("coordinator", tmp_path)
    wanted = ("scan", "--redact", "--batches", "--output-format", "parquet", "-o", str(tmp_path / "t"))
    assert kaudit(*wanted, str(root)).code == 0
    tables = {path.name: pq.read_table(path).to_pylist() for path in (tmp_path / "t").iterdir() if path.is_dir()}
    assert {"findings", "partitions", "segments", "batches", "timelines", "producers"} <= set(tables)
    assert MARK not in json.dumps(tables, default=str)
    assert MARK not in (tmp_path / "t/manifest.json").read_text()


def test_a_report_of_a_saved_scan_is_redacted(kaudit, tmp_path):
    root = marked("zombie", tmp_path)
    saved = tmp_path / "saved.json"
    kaudit("scan", "--output-format", f"json:{saved}", str(root))
    outcome = kaudit("report", "--redact", str(saved))
    assert outcome.code == ExitCode.FINDINGS
    assert MARK not in outcome.out


def test_an_input_without_a_log_is_not_named_either(kaudit, tmp_path):
    (tmp_path / f"{MARK}empty").mkdir()
    outcome = kaudit("scan", "--redact", "--output-format", "json", str(tmp_path / f"{MARK}empty"))
    assert (outcome.code, MARK in outcome.out, MARK in outcome.err) == (ExitCode.NOTHING_TO_AUDIT, False, False)


SERVER_LOG = """\
[2023-11-14 22:13:21,000] ERROR [ReplicaManager broker=1] Error processing append operation on partition zqorders-0 (kafka.server.ReplicaManager)
org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 7 at offset 3 in partition zqorders-0: 9 (incoming seq. number), 2 (current end sequence number)
[2023-11-14 22:13:22,000] INFO [TransactionCoordinator id=1] Initialized transactionalId zqpayments-app with producerId 7 and producer epoch 0 on partition __transaction_state-3 (kafka.coordinator.transaction.TransactionCoordinator)
[2023-11-14 22:13:23,000] INFO [Partition zqorders-0 broker=1] Shrinking ISR from 1,2 to 1 on zqhost.zqcorp.example:9092 (kafka.cluster.Partition)
"""


@pytest.mark.parametrize("form", ["table", "json", "html"])
@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_lines_of_logs_keep_the_words_of_kafka_alone(kaudit, tmp_path, command, form):
    log = Log()
    for sequence in (0, 1, 2, 9):
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "zqlogs/zqorders-0")
    (tmp_path / "zqserver.log").write_text(SERVER_LOG)
    outcome = kaudit(
        command,
        "-v",
        "--redact",
        "--output-format",
        form,
        "--server-log",
        str(tmp_path / "zqserver.log"),
        str(tmp_path / "zqlogs"),
    )
    assert outcome.code in (ExitCode.OK, ExitCode.FINDINGS)
    assert MARK not in outcome.out
    assert (
        command == "timeline"
        or "ut of order sequence number" in outcome.out
        or "Error processing append operation" in outcome.out
    )


def test_a_line_keeps_kafkas_words_numbers_and_times():
    line = "Error processing append operation on partition acme-orders-0 from 10.1.2.3:9092 by User:alice, 17 records"
    shown = redacted_line(line, lambda word: "X")
    assert shown.startswith("Error processing append operation on partition X from X:9092")
    assert "alice" not in shown
    assert shown.endswith("17 records")


def test_paths_keep_names_that_brokers_give():
    redactor = Redactor(b"s")
    path = redactor.path("/data/acme/orders-3/00000000000000000042.log")
    assert re.fullmatch(r"/path-\w{10}/path-\w{10}/topic-\w{10}-3/00000000000000000042\.log", path)
    assert redactor.path("kafka://b1:9092/orders") == redactor.path("kafka://b1:9092/orders")
    assert redactor.path("/data/__transaction_state-7/x.log").split("/")[2] == "__transaction_state-7"


def test_options_that_belong_together(kaudit, tmp_path):
    outcome = kaudit("scan", "--redact-secret", "a", str(tmp_path))
    assert (outcome.code, outcome.err) == (ExitCode.USAGE, "kaudit: --redact-secret needs --redact\n")


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
@pytest.mark.parametrize("sample", ["coordinator", "zombie", "clean", "side-files"])
def test_rows_of_inspect_have_hashes_for_names_keys_and_values(kaudit, tmp_path, sample, form):
    root = marked(sample, tmp_path)
    names, texts = set(), set()
    for line in kaudit("inspect", "--records", "--output-format", "jsonl", str(root)).out.splitlines():
        row = json.loads(line)
        names |= {row[name] for name in ("transactional_id", "group_id", "client_id") if row.get(name)}
        texts |= {
            row[name]["text"]
            for name in ("key", "value")
            if isinstance(row.get(name), dict) and len(row[name]["text"]) > 5
        }
    outcome = kaudit("inspect", "--records", "--redact", "--output-format", form, str(root))
    plain = kaudit("inspect", "--records", "--output-format", form, str(root))
    assert (outcome.code, outcome.out.count("\n")) == (plain.code, plain.out.count("\n"))
    assert MARK not in outcome.out
    assert not [name for name in names | texts if name in outcome.out]


def test_a_redacted_capture_says_what_is_in_clear_and_what_was_left_out(kaudit, tmp_path):
    root = marked("zombie", tmp_path)
    done = kaudit("capture", "--redact", "-o", tmp_path / "copy", root)
    first, clear, left = done.out.splitlines()
    assert (done.code, done.err, MARK in done.out) == (0, "", False)
    assert " 3 segments of 13 batches, 1.1 kB (the originals: 1.1 kB), 17 side files, 0 logs" in first
    assert clear.startswith("in clear are offsets, sequences, producer ids")
    assert re.fullmatch(r"not copied: (/[\w-]+)+: text", left)
    found = json.loads(kaudit("scan", "-v", "--output-format", "json", tmp_path / "copy").out)
    assert findings(found) == findings(json.loads(kaudit("scan", "-v", "--output-format", "json", root).out))
    as_json = kaudit("capture", "-q", "--redact", "--output-format", "json", "-o", tmp_path / "again", root)
    document = json.loads(as_json.out)
    assert (document["schema"], document["counts"]["batches"], MARK in as_json.out) == (
        "kaudit.redacted-copy/1",
        13,
        False,
    )
    jsonschema.validate(document, DOCUMENT)


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--redact-secret", "a", "PATH"], ExitCode.USAGE, "kaudit: --redact-secret needs --redact"),
        (["--redact", "PATH/nothing"], ExitCode.USAGE, "kaudit: PATH/nothing: there is no such file or directory"),
        (["--redact", "--follow", "kafka://h:1/t"], ExitCode.USAGE, "kaudit: --redact copies what is there: leave --follow out"),
        (["--redact", "PATH", "kafka://h:1/t"], ExitCode.USAGE, "kaudit: topics of a cluster and directories are redacted into directories of their own"),
        (["--redact", "gopher://h"], ExitCode.USAGE, None),
        (["--redact", "PATH"], ExitCode.UNREADABLE, "kaudit: nothing was copied: no segment and no log was found"),
        (["PATH"], ExitCode.USAGE, "kaudit: PATH: kaudit capture reads kafka://HOST:PORT/TOPIC[/PARTITION], with --redact log directories too"),
    ],
    ids=["secret", "nothing", "follow", "both", "scheme", "empty", "plain"],
)  # fmt: skip
def test_what_cannot_be_copied_is_one_line(kaudit, tmp_path, arguments, code, line):
    (tmp_path / "in").mkdir()
    given = [argument.replace("PATH", str(tmp_path / "in")) for argument in arguments]
    done = kaudit("capture", "-q", "-o", tmp_path / "copy", *given)
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert line is None or done.err == line.replace("PATH", str(tmp_path / "in")) + "\n"


def test_a_topic_of_a_cluster_is_captured_and_redacted(kaudit, tmp_path):
    log = Log()
    log.append(data(7, 0, 0, 3))
    with FakeBroker({("zqorders", 0): [log.encode()]}) as broker:
        done = kaudit("capture", "--redact", "-o", tmp_path / "copy", f"kafka://{broker.address}/zqorders")
    assert (done.code, done.err, "zq" in done.out) == (0, "", False)
    assert json.loads((tmp_path / "copy/capture.json").read_bytes())["partitions"][0]["next_offset"] == 3
    assert kaudit("scan", tmp_path / "copy").code == 0


LOGGED = SERVER_LOG + (
    "[2023-11-14 22:13:24,000] WARN [Producer clientId=zqclient] Got error produce response with correlation id 5 on topic-partition zqorders-0, retrying (2 attempts left). Error: NOT_ENOUGH_REPLICAS (org.apache.kafka.clients.producer.internals.Sender)\n"
)  # fmt: skip
EVERYWHERE = {
    "scan": ("LOGS", TEXTS),
    "timeline": ("LOGS", TEXTS),
    "producers": ("LOGS", ("table", "json", "jsonl", "html", "markdown")),
    "diff": ("--name zqone=LOGS --name zqtwo=OTHER LOGS OTHER", TEXTS),
    "report": ("SAVED", TEXTS),
    "inspect": ("--records LOGS", ("table", "json", "jsonl")),
    "dedup": ("--depth records LOGS", ("table", "json", "jsonl")),
    "groups": ("LOGS", ("table", "json", "jsonl", "html")),
    "transactions": ("LOGS", ("table", "json", "jsonl")),
    "watch": (
        "--until-idle 1s --metrics-file METRICS --output-format concise:COPY --output-format table:FILE LOGS",
        ("jsonl",),
    ),
    "attempts": ("--broker-version 3.9.1 LOGS", (None,)),
    "replay": ("ATTEMPTS", ("table", "json", "jsonl", "html")),
    "explain": ("LINES", ("text", "json")),
    "capture": ("-o COPY LOGS", ("text", "json")),
}
"""The commands whose outputs can hold names of their inputs, and their formats."""
WITHOUT_NAMES = {
    "baseline": "a file for the next scan, which compares names",
    "config": "settings of this machine",
    "simulate": "simulated clusters",
    "checks": "no input",
    "bugs": "no input",
    "spark-bundle": "no input",
}


def test_every_command_says_whether_it_redacts():
    assert {*EVERYWHERE, *WITHOUT_NAMES} == set(COMMANDS)


class _Marked:
    """A mark before each name of an internal topic."""

    def text(self, record, field, value):
        return f"{MARK}{value}"

    def content(self, value):
        return value


def _marked_names(topic):
    return lambda key, value, headers: (*rewritten_record(topic, key, value, _Marked()), headers)


def _with_marked_names(topic, log):
    """The bytes of a log of an internal topic, with a mark in each name of its records; end markers name nothing."""
    found = [batch for _, batch in batches(Path(log).read_bytes())]
    return b"".join(batch if batch[22] & 0x20 else rewritten(batch, _marked_names(topic)) for batch in found)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Inputs of every kind, with a mark in each name."""
    root = tmp_path_factory.mktemp(f"{MARK}all")
    logs = {"__transaction_state": "samples/coordinator", "__consumer_offsets": "samples/exactly-once"}
    internal = {
        f"{topic}-0": _with_marked_names(topic, f"{place}/{topic}-0/00000000000000000000.log")
        for topic, place in logs.items()
    }
    for name, last in (("zqlogs", 9), ("zqother", 30)):
        log = Log()
        for sequence in (0, 1, 2, 2, last):
            log.append(data(11, 0, sequence, payload=b"zqvalue", key=b"zqkey"))
        log.write(root / name / "zqorders-0")
        for partition, content in internal.items():
            (root / name / partition).mkdir()
            (root / name / partition / "00000000000000000000.log").write_bytes(content)
        (root / name / "zqserver.log").write_text(LOGGED)
    attempts = [
        {"op": "broker", "broker_version": "3.9.1"},
        *({"op": "produce", "topic": "zqorders", "partition": 0, "producer_id": 7, "producer_epoch": 0, "base_sequence": at, "record_count": 1, "transactional_id": "zqpayments", "is_transactional": True, "source": "zqlogs/zqorders-0/00000000000000000000.log@7"} for at in (0, 0, 5)),
        {"op": "end_txn", "topic": "zqorders", "partition": 0, "transactional_id": "zqpayments", "producer_id": 7, "producer_epoch": 0, "commit": True},
    ]  # fmt: skip
    (root / "zqattempts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in attempts))
    return root


@pytest.mark.parametrize(
    ("command", "arguments", "form"),
    [
        pytest.param(name, given, form, id=f"{name}-{form}")
        for name, (given, forms) in EVERYWHERE.items()
        for form in forms
    ],
)
def test_no_name_is_in_any_output_of_any_command(kaudit, everything, tmp_path, command, arguments, form):
    inputs = {"LOGS": "zqlogs", "OTHER": "zqother", "ATTEMPTS": "zqattempts.jsonl", "SAVED": "zqsaved.json"}
    places = {word: everything / name for word, name in inputs.items()}
    places |= {"METRICS": tmp_path / "metrics", "COPY": tmp_path / "copy", "FILE": tmp_path / "file"}
    given = []
    for argument in arguments.split():
        *option, word = re.split("([=:])", argument)
        place = places.get(word)
        given.append("".join([*option, word if place is None else str(place)]))
    if command == "report" and not (everything / "zqsaved.json").exists():
        kaudit("scan", "--output-format", f"json:{everything}/zqsaved.json", everything / "zqlogs")
    if command == "explain":
        given = [line for line in LOGGED.splitlines() if "Out of order" in line]
    verbose = ["-v"] if command in {"scan", "timeline", "producers", "diff", "report", "replay", "watch"} else []
    outcome = kaudit(command, *verbose, "--redact", *([] if form is None else ["--output-format", form]), *given)
    assert outcome.code in (ExitCode.OK, ExitCode.FINDINGS, ExitCode.UNREADABLE), outcome.err
    assert outcome.out
    written = [path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in (outcome.out, outcome.err, *written) if MARK in text]


def test_rows_and_answers_of_redacted_inputs_are_the_same(kaudit, everything):
    attempts = str(everything / "zqattempts.jsonl")
    for form in ("jsonl", "json"):
        plain, redacted = (
            kaudit("replay", *more, "--output-format", form, attempts).out for more in ((), ("--redact",))
        )
        assert re.sub(r"topic-\w{10}", "zqorders", re.sub(r"txn-\w{10}", "zqpayments", redacted)) == plain
    explained = kaudit("replay", "--redact", "--explain", "3", attempts)
    assert (explained.code, MARK in explained.out) == (0, False)
    made = kaudit("attempts", "--redact", "--broker-version", "3.9.1", "-o", "-", everything / "zqlogs")
    lines = [json.loads(line) for line in made.out.splitlines()]
    assert {line["op"] for line in lines} >= {"broker", "produce"}
    assert all(re.fullmatch(r"(/[\w.-]+)+(@(offset )?|:)\d+", line["source"]) for line in lines if "source" in line)
    rows, hashed = (
        [
            json.loads(line)
            for line in kaudit(
                "dedup", "--depth", "records", *more, "--output-format", "jsonl", everything / "zqlogs"
            ).out.splitlines()
        ]
        for more in ((), ("--redact",))
    )
    assert [(row.get("offset"), row.get("relation"), row.get("original_offset")) for row in rows] == [
        (row.get("offset"), row.get("relation"), row.get("original_offset")) for row in hashed
    ]
    assert rows[0]["key_hash"] != hashed[0]["key_hash"]
