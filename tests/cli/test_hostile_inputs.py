"""Numbers, types, names and texts that no broker writes: one clear answer of the whole command, never an internal error."""

import json
import os
import signal
import struct
import subprocess
import sys
from random import Random

import crc32c
import pytest

from kaudit.cli.exits import ExitCode
from kaudit.report.json_documents import pretty, scan_document
from kaudit.report.render_options import RenderOptions
from tests import scan_results
from tests.commands import forked
from tests.fuzz import commands, made
from tests.logs import Log, data

BEYOND = (2**63, -(2**63) - 1, -1, 10**400)
MACHINE = (("scan", "json"), ("timeline", "json"), ("producers", "json"), ("inspect", "jsonl"))
DUMP = (
    "Dumping /data/orders-0/00000000000000000000.log\nLog starting offset: 0\n"
    "baseOffset: {0} lastOffset: {1} count: {2} baseSequence: {3} lastSequence: {4} producerId: {5} producerEpoch: {6} "
    "partitionLeaderEpoch: {7} isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {8} "
    "CreateTime: {9} size: {10} magic: {11} compresscodec: none crc: {12} isvalid: true\n"
    "| offset: {0} CreateTime: {9} keySize: -1 valueSize: 1 sequence: {3} headerKeys: []\n"
)
USUAL = (0, 0, 1, 0, 0, 7, 0, 0, 0, 1_700_000_000_000, 68, 2, 1)
LONG_NAME = "n" * 300


def answered(kaudit, *arguments):
    outcome = kaudit(*arguments)
    assert outcome.code != ExitCode.INTERNAL, outcome.err
    assert "Traceback" not in outcome.err
    return outcome


@pytest.mark.parametrize("field", range(len(USUAL)))
def test_numbers_beyond_their_type_in_a_dump_text(kaudit, tmp_path, field):
    path = tmp_path / "dump.txt"
    for number in BEYOND:
        values = [*USUAL]
        values[field] = number
        path.write_text(DUMP.format(*values) + DUMP.format(*USUAL).partition("\nbase")[2].join(("base", "")))
        for command, shown in MACHINE[::3]:
            answered(kaudit, command, str(path), "--output-format", shown)


def partition(tmp_path, name="orders-0"):
    log = Log()
    for sequence in range(5):
        log.append(data(7, 0, sequence))
    return log.write(tmp_path / name)


@pytest.mark.parametrize("field", range(9))
@pytest.mark.parametrize("number", [-1, -2, 2**62, "lowest", "highest"])
def test_extreme_numbers_in_a_producer_snapshot(kaudit, tmp_path, field, number):
    layout = "iqhiqiqiq"  # the number of entries, then the fields of one
    values = [1, 7, 0, 4, 4, 0, 1_700_000_000_005, 0, -1]
    bits = struct.calcsize(f">{layout[field]}") * 8
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
    values[field] = {"lowest": lowest, "highest": highest}.get(number) or min(max(number, lowest), highest)
    body = struct.pack(f">{layout}", *values)
    directory = partition(tmp_path)
    (directory / f"{5:020d}.snapshot").write_bytes(struct.pack(">hI", 1, crc32c.crc32c(body)) + body)
    for command, shown in MACHINE[::3]:
        answered(kaudit, command, str(tmp_path), "--output-format", shown)


@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize(
    "name",
    ["log-start-offset", "recovery-point-offset", "replication-offset", "cleaner-offset", "leader-epoch"],
)
def test_numbers_beyond_their_type_in_a_checkpoint(kaudit, tmp_path, name, number):
    directory = partition(tmp_path)
    of_partition = name == "leader-epoch"
    path = (directory if of_partition else tmp_path) / f"{name}-checkpoint"
    row = "0 0" if of_partition else "orders 0 3"
    for version, count, line in ((number, 1, row), (0, number, row), (0, 1, row[:-1] + str(number))):
        path.write_text(f"{version}\n{count}\n{line}\n")
        answered(kaudit, "scan", str(tmp_path), "--output-format", "json")
        answered(kaudit, "inspect", str(path))


PRODUCE = {
    "op": "produce",
    "topic": "t",
    "partition": 0,
    "producer_id": 1,
    "producer_epoch": 0,
    "base_sequence": 0,
    "record_count": 1,
}


@pytest.mark.parametrize(
    "line",
    [
        {key: value for key, value in PRODUCE.items() if key != "partition"},
        {key: value for key, value in PRODUCE.items() if key != "topic"},
        {**PRODUCE, "topic": 7},
        {**PRODUCE, "transactional_id": 7},
        {**PRODUCE, "partition": "0"},
        {"op": "topic", "topic": "t", "partition": 0, "config": {"cleanup.policy": ["delete"]}},
        {"op": "topic", "topic": "t", "partition": 0, "config": {"segment.bytes": -0.0}},
        {"op": "topic", "topic": "t", "partition": 0, "config": []},
        {"op": "broker", "broker_version": 2.8},
        {"op": "broker", "config": {"producer.id.expiration.ms": {}}},
        {"op": "leader_change", "topic": "t", "partition": 0, "how": 1},
        {"op": "init_producer_id", "transactional_id": []},
        {"op": 5},
    ],
    ids=lambda line: json.dumps(line)[:60],
)
def test_an_attempt_with_a_field_missing_or_of_another_type(kaudit, tmp_path, line):
    path = tmp_path / "attempts.jsonl"
    path.write_text(json.dumps({"op": "broker", "broker_version": "2.8.2"}) + "\n" + json.dumps(line) + "\n")
    for shown in ("jsonl", "table"):
        outcome = answered(kaudit, "replay", str(path), "--output-format", shown)
        if outcome.code == ExitCode.USAGE:
            assert outcome.err.count("\n") == 1
            assert ": line 2: " in outcome.err or " line 2" in outcome.err


@pytest.mark.parametrize(
    "command", ["scan", "timeline", "producers", "inspect", "replay", "report", "dedup", "attempts", "watch"]
)
def test_a_path_too_long_for_the_file_system_does_not_exist(kaudit, command):
    outcome = answered(kaudit, command, LONG_NAME)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (ExitCode.USAGE, "", 1)
    assert outcome.err.count(LONG_NAME) == 1


@pytest.mark.parametrize(
    "shown", ["table", "concise", "json", "jsonl", "sarif", "junit", "github", "gitlab", "markdown", "html"]
)
def test_control_characters_of_a_saved_report_reach_no_output(kaudit, tmp_path, shown):
    result = scan_results.many()
    document = json.loads(pretty(scan_document(result, RenderOptions())))
    path = tmp_path / "saved.json"
    for field in (
        "topic",
        "replica",
        "log_dir",
        "file",
        "message",
        "name",
        "code",
        "fingerprint",
        "incident",
        "segment",
        "suppression",
    ):
        changed = json.loads(json.dumps(document))
        changed["findings"] = [
            {**json.loads(pretty(finding.to_dict())), field: "a\0b\x1b[31m\x9b2J"} for finding in result.findings[:3]
        ]
        path.write_text(json.dumps(changed))
        outcome = answered(kaudit, "report", str(path), "--output-format", shown)
        for text in (outcome.out, outcome.err):
            assert all(char == "\n" or char.isprintable() for char in text), (field, shown)


def test_control_characters_in_names_reach_no_output(kaudit, tmp_path):
    directory = partition(tmp_path, "t\x1b[31m\x07\u202e-0")
    path = directory / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + b"\xff" * 40)
    for command, machine in MACHINE:
        for shown in ("table", machine):
            outcome = answered(kaudit, command, str(tmp_path), "--output-format", shown)
            assert all(char == "\n" or char.isprintable() for char in outcome.out + outcome.err)


def test_diff_of_hostile_offsets_ends_under_faulthandler(tmp_path):
    """In a process of its own: what once ended was the process, by a signal."""
    code = (
        "import faulthandler, sys; faulthandler.enable(); from kaudit.cli.app import run; "
        "codes = [run(['diff', f'{sys.argv[1]}/{n}/b1', f'{sys.argv[1]}/{n}/b2', '--output-format', 'json']) for n in range(12)]; "
        "sys.exit(int(70 in codes))"
    )
    for number in range(12):
        for name, content in commands.unpack(made.directory(Random(4000 + number))):
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, "Fatal Python error" in done.stderr) == (0, False), done.stderr[-2000:]


@pytest.mark.parametrize(
    "name",
    [
        "orders-0/00000000000000000000.log",
        "orders-0/00000000000000000000.index",
        "orders-0/00000000000000000005.snapshot",
        "orders-0/leader-epoch-checkpoint",
        "orders-0/partition.metadata",
        "replication-offset-checkpoint",
        "meta.properties",
    ],
)
def test_nothing_waits_for_a_fifo_in_place_of_a_file(tmp_path, name):
    partition(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    done = forked(["scan", "--isolated", str(tmp_path)], tmp_path, {}, before=lambda: signal.alarm(60))
    assert done.code in (ExitCode.OK, ExitCode.NOTHING_TO_AUDIT, ExitCode.UNREADABLE), done.err
    assert "Traceback" not in done.err


PRINTED = [
    *((command, []) for command in ("inspect", "dedup", "timeline", "producers")),
    *(
        ("scan", ["--output-format", name])
        for name in ("table", "concise", "json", "jsonl", "markdown", "gitlab", "sarif", "junit")
    ),
]


@pytest.mark.parametrize(
    "prefix", ["::error file=a,line=1::", "  ::warning::", "##[error]", "a##[group]", "x ::stop::"]
)
@pytest.mark.parametrize(("command", "formats"), PRINTED)
def test_no_line_is_printed_that_a_ci_system_obeys(kaudit, tmp_path, monkeypatch, prefix, command, formats):
    """GitHub runs `::` at the start of a line, and, as Azure does, `##[` anywhere in it."""
    monkeypatch.setenv("COLUMNS", "60")  # so that any word may come to the start of a line
    log = Log()
    for sequence in (0, 5):
        log.append(data(7, 0, sequence))
    directory = log.write(tmp_path / f"{prefix}name" / "orders-0")
    (directory / f"{prefix}odd").touch()
    outcome = kaudit(command, str(tmp_path), *formats)
    assert len(outcome.out) > 40
    for line in f"{outcome.out}\n{outcome.err}".splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_jsonl_and_concise_spell_commands_alike_and_json_says_the_same(kaudit, tmp_path):
    log = Log()
    for sequence in (0, 5):
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "##[error]" / "orders-0")
    lines = {name: kaudit("scan", tmp_path, "--output-format", name).out for name in ("jsonl", "concise")}
    assert all("#\\u0023[error]/orders-0/" in text for text in lines.values())
    finding = json.loads(lines["jsonl"].splitlines()[0])
    assert "##[error]/orders-0" in finding["file"]
