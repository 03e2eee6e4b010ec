"""explain and checks: from the registry, for people and programs."""

import io
import json

import pytest

from kaudit.bugs.bug import HEADINGS as BUG_HEADINGS
from kaudit.bugs.registry import BUGS
from kaudit.bugs.reports import reports
from kaudit.checks.listed import HEADINGS
from kaudit.checks.registry import CHECKS
from kaudit.installation import version_text
from kaudit.results.selection import parse_codes


@pytest.mark.parametrize("code", CHECKS)
def test_every_check_can_be_explained_by_code_and_by_name(kaudit, code):
    outcome = kaudit("explain", code)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{code} {CHECKS[code].name}")
    lines = outcome.out.splitlines()
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 110  # examples stand as they print
    assert kaudit("explain", CHECKS[code].name).out == outcome.out
    assert kaudit("explain", code.lower(), "--no-color").out == outcome.out


def test_explain_wraps_to_the_terminal(kaudit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    prose = [
        line for line in kaudit("explain", "KA301").out.splitlines()[1:] if "--" not in line and line[:4] != "    "
    ]
    assert max(map(len, prose)) <= 60


def test_explain_as_json(kaudit):
    page = json.loads(kaudit("explain", "KA101", "--output-format", "json").out)
    assert page["schema"] == "kaudit.check/1"
    assert page["severity"] == "error"
    assert set(page["documentation"]) == set(HEADINGS)
    assert page["documentation"]["What it checks"] == CHECKS["KA101"].documentation()["What it checks"]


def test_checks_lists_every_check_once(kaudit):
    lines = kaudit("checks").out.splitlines()
    assert [line[:5] for line in lines if line.startswith("KA")] == list(CHECKS)


def test_checks_as_json(kaudit):
    listed = json.loads(kaudit("checks", "--output-format", "json").out)
    assert [check["code"] for check in listed["checks"]] == list(CHECKS)
    assert listed["checks"][0]["name"] == "crc-mismatch"


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["scan", "--version"], ["explain", "--version"]])
def test_version(kaudit, arguments):
    assert (kaudit(*arguments).code, kaudit(*arguments).out) == (0, f"{version_text()}\n")


@pytest.mark.parametrize("command", ["scan", "timeline", "explain", "checks"])
def test_every_command_has_help(kaudit, command):
    outcome = kaudit(command, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: kaudit {command}")
    assert command in kaudit("--help").out


def test_codes_prefixes_and_names_select_the_same_checks():
    assert parse_codes(["duplicate-batch, ka2", "Stray-File"], "--select") == ("KA101", "KA2", "KA011")


@pytest.mark.parametrize(
    ("typed", "codes"),
    [
        ("sequence-gap", ["KA104"]),
        ("duplicate", ["KA101", "KA102", "KA702"]),
        ("KA60", ["KA601", "KA602", "KA603"]),
        ("late transactional", ["KA304"]),
    ],
)
def test_a_check_is_found_by_a_word(kaudit, typed, codes):
    outcome = kaudit("explain", typed)
    assert outcome.code == 0
    if len(codes) == 1:
        assert outcome.out == kaudit("explain", codes[0]).out
        assert outcome.out == kaudit("explain", *typed.split()).out
        return
    assert set(codes) <= {line[:5] for line in outcome.out.splitlines()}
    listed = json.loads(kaudit("explain", typed, "--output-format", "json").out)
    assert set(codes) <= {check["code"] for check in listed["checks"]}
    assert all(
        typed.lower() in (check["code"] + check["name"] + check["summary"]).lower() for check in listed["checks"]
    )


def test_a_word_that_only_a_page_holds(kaudit):
    assert "KA301" in kaudit("explain", "KIP-664").out


def test_a_word_no_page_holds(kaudit):
    outcome = kaudit("explain", "sequense-gap")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean sequence-gap" in outcome.err


@pytest.mark.parametrize("ticket", BUGS)
def test_every_known_bug_can_be_explained(kaudit, ticket):
    outcome = kaudit("explain", ticket)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{ticket} {BUGS[ticket].title.split()[0]}")
    assert [line for line in outcome.out.splitlines() if line in BUG_HEADINGS] == list(BUG_HEADINGS)
    assert kaudit("explain", ticket.lower().replace("-", "#")).out == outcome.out
    page = json.loads(kaudit("explain", ticket, "--output-format", "json").out)
    assert (page["schema"], page["id"], set(page["documentation"])) == ("kaudit.bug/1", ticket, set(BUG_HEADINGS))


def test_a_ticket_that_is_not_known(kaudit):
    outcome = kaudit("explain", "kafka-1267")
    assert (outcome.code, outcome.out) == (2, "")
    assert "kafka-1267 is not a known bug; did you mean KAFKA-12671" in outcome.err


@pytest.mark.parametrize("ticket", reports())
def test_every_report_can_be_explained(kaudit, ticket):
    outcome = kaudit("explain", ticket)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{ticket} {reports()[ticket].title.split()[0]}")
    page = json.loads(kaudit("explain", ticket, "--output-format", "json").out)
    assert (page["schema"], page["id"], page["title"]) == ("kaudit.report/1", ticket, reports()[ticket].title)
    assert {"What happens", "How to recognise it", "What it costs", "What to do"} <= set(page["documentation"])


def test_an_error_by_number_name_and_class(kaudit):
    outcome = kaudit("explain", "45")
    assert outcome.code == 0
    assert outcome.out.startswith("OUT_OF_ORDER_SEQUENCE_NUMBER (45)\nan error of Kafka's protocol; not retriable\n")
    assert kaudit("explain", "error", "code", "45").out == outcome.out
    assert kaudit("explain", "kafka.errors.OutOfOrderSequenceNumberError").out == outcome.out
    assert "KA104: sequence-gap" in outcome.out.partition("See also")[2]
    page = json.loads(kaudit("explain", "OutOfOrderSequenceException", "--output-format", "json").out)
    assert (page["schema"], page["code"], page["retriable"]) == ("kaudit.error/1", 45, False)
    assert "KA104" in page["see_also"]


def test_an_error_of_a_client(kaudit):
    outcome = kaudit("explain", "RD_KAFKA_RESP_ERR__MSG_TIMED_OUT")
    assert outcome.out.startswith("_MSG_TIMED_OUT (librdkafka -192)\nan error of librdkafka itself\n")


def test_what_begins_with_a_dash_is_no_option(kaudit):
    assert kaudit("explain", "-192").out.startswith("_MSG_TIMED_OUT (librdkafka -192)\n")
    line = "- [2024-06-25 13:14:03,893] WARN [Partition t-441 broker=2] Shrinking ISR from 2,3 to 2. Leader: (highWatermark: 1, endOffset: 2). (kafka.cluster.Partition)"
    assert "left the replicas in sync" in kaudit("explain", line).out
    for option in ("--verson", "-x"):
        assert f"No such option: {option}" in kaudit("explain", option).err


def test_a_term(kaudit):
    outcome = kaudit("explain", "LSO")
    assert outcome.out.startswith("last stable offset\n\nWhat it means\n")
    assert "KA301" in outcome.out.partition("See also")[2]
    page = json.loads(kaudit("explain", "last", "stable", "offset", "--output-format", "json").out)
    assert (page["schema"], page["name"], page["also"]) == ("kaudit.term/1", "last stable offset", ["LSO"])


def test_words_of_several_kinds_as_json(kaudit):
    found = json.loads(kaudit("explain", "duplicate", "--output-format", "json").out)
    assert found["schema"] == "kaudit.explanations/1"
    assert found["found"][0] == {"kind": "check", "id": "KA101", "title": f"duplicate-batch: {CHECKS['KA101'].summary}"}
    assert "DUPLICATE_SEQUENCE_NUMBER" in [error["name"] for error in found["errors"]]
    assert json.loads(kaudit("explain", "KA6", "--output-format", "json").out)["schema"] == "kaudit.checks/1"


REFUSED = (
    "[2026-01-05 10:00:00,123] ERROR [ReplicaManager broker=2] Error processing append operation on partition orders-3 "
    "(kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 4001 at "
    "offset 812 in partition orders-3: 25 (incoming seq. number), 19 (current end sequence number)\n"
)


@pytest.fixture
def pasted(kaudit, monkeypatch):
    """`kaudit explain -` with a text on standard input."""

    def call(text, *options):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return kaudit("explain", "-", *options)

    return call


def test_lines_on_standard_input(pasted):
    outcome = pasted(REFUSED + REFUSED.replace("10:00:00", "10:00:01"))
    said = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert said.startswith("error[KA810] batches-refused: the broker refused batches of producer 4001 in orders-3")
    assert "sequence 25 came where 20 was due, 20..24 are missing; 2 lines" in said
    assert "kaudit explain OUT_OF_ORDER_SEQUENCE_NUMBER" in said
    assert "KA104: sequence-gap" in said.partition("See also")[2]
    lines = json.loads(pasted(REFUSED, "--output-format", "json").out)
    assert (lines["schema"], lines["errors"]) == ("kaudit.log-lines/1", ["OUT_OF_ORDER_SEQUENCE_NUMBER"])
    assert lines["events"][0]["meaning"] == "a batch was refused because sequences before it are missing"
    assert [finding["code"] for finding in lines["findings"]] == ["KA810"]


def test_a_line_as_argument(kaudit):
    line = REFUSED.splitlines()[1]
    outcome = kaudit("explain", line)
    assert "20..24 are missing" in " ".join(outcome.out.split())
    assert kaudit("explain", *line.split()).out == outcome.out
    wrapped = kaudit("explain", "my job failed: org.apache.kafka.common.errors.InvalidTxnStateException: bad")
    assert "kaudit explain INVALID_TXN_STATE" in wrapped.out
    assert "KAFKA-20785" in wrapped.out.partition("See also")[2]
    named = kaudit("explain", "produce failed with error code: 47 again")
    assert named.out.startswith("INVALID_PRODUCER_EPOCH (47)\nWhat it means\n")


def test_a_name_on_standard_input(pasted, kaudit):
    assert pasted("KA104\n").out == kaudit("explain", "KA104").out


def test_a_long_log_on_standard_input_is_cut_and_says_so(pasted):
    assert "Only the first 1.0 MB were read" in " ".join(pasted(REFUSED + "x" * (1 << 20)).out.split())
    assert "Only the first" not in pasted(REFUSED).out


@pytest.mark.parametrize("text", ["", "nothing about it in these words\n"])
def test_lines_that_say_nothing(pasted, text):
    outcome = pasted(text)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1


def test_text_from_a_log_drives_no_terminal(pasted):
    assert "\x1b" not in pasted(REFUSED.replace("partition orders-3:", "partition orders-3:\x1b]0;x\x07")).out


def test_bugs_lists_every_bug_once(kaudit):
    tickets = {line.split()[0] for line in kaudit("bugs").out.splitlines() if line[:1].strip()}
    assert tickets - {"kaudit"} == set(BUGS)
    listed = json.loads(kaudit("bugs", "--output-format", "json").out)
    assert (listed["schema"], [bug["id"] for bug in listed["bugs"]]) == ("kaudit.bugs/1", list(BUGS))


@pytest.mark.parametrize(
    ("arguments", "there", "missing"),
    [
        (("--affects", "2.8.1"), "KAFKA-12671", "KAFKA-7190"),
        (("--affects", "2.3.1"), "KAFKA-7190", "KAFKA-16541"),
        (("--affects", "2.6.1", "--client", "librdkafka"), "librdkafka-4953", "KAFKA-12671"),
        (("--client", "java"), "KAFKA-14034", "librdkafka-4953"),
    ],
)
def test_bugs_of_a_version_or_a_program(kaudit, arguments, there, missing):
    listed = json.loads(kaudit("bugs", *arguments, "--output-format", "json").out)
    tickets = {bug["id"] for bug in listed["bugs"]}
    assert there in tickets
    assert missing not in tickets


@pytest.mark.parametrize(("option", "value"), [("--affects", "newest"), ("--client", "pulsar")])
def test_bugs_of_what_is_not_there(kaudit, option, value):
    outcome = kaudit("bugs", option, value)
    assert (outcome.code, outcome.out) == (2, "")
    assert value in outcome.err
