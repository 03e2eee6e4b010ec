"""What options are when they are not given, which numbers they take, and what values mean."""

import re

import pytest

from kaudit.cli.command_tree import command_tree, commands_of
from kaudit.cli.exits import MEANINGS, ExitCode, FailOn, exit_code
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.errors import UsageError
from kaudit.model.result import NotAudited
from kaudit.model.severity import Severity, Status
from kaudit.scanning.options import scan_options
from kaudit.source.option import check_int64, parse_duration, parse_int64, parse_time
from tests.scan_results import old_duplicate, scan_result

OPTIONS = [(name, option) for name, command in commands_of("kaudit", command_tree()) for option in command.params]
FROM_ONE = {"--jobs", "--max-decompressed", "--sweep", "--tries"}
"""Of nothing at all these make no sense; offsets, ids and limits may be 0."""


def test_no_flag_is_set_unless_it_is_given():
    flags = [(name, option) for name, option in OPTIONS if getattr(option, "is_flag", False)]
    assert len(flags) > 50
    assert [
        (name, option.opts) for name, option in flags if option.default is not False and option.name != "help"
    ] == []


def test_the_least_number_that_an_option_takes():
    ranges = {
        (option.opts[0], option.type.min, getattr(option.type, "max", None))
        for _, option in OPTIONS
        if hasattr(option.type, "min")
    }
    assert len(ranges) > 20
    for name, least, most in ranges:
        assert least == (1 if name in FROM_ONE else 0), name
        assert most == (65_535 if name == "--metrics-port" else None), name


def test_numbers_that_stand_in_the_guide():
    defaults = {option.opts[0]: option.default for _, option in OPTIONS if type(option.default) is int}
    assert defaults == {"--max-bytes-per-second": 64 * 2**20, "--rows": 200}


HIGHEST = 2**63 - 1


@pytest.mark.parametrize("number", [0, 7, HIGHEST])
def test_numbers_of_64_bits(number):
    assert parse_int64(str(number), "--x") == number
    check_int64([None, number, -1], "--x")


@pytest.mark.parametrize("number", [HIGHEST + 1, 10**19, 10**30])
def test_larger_numbers_are_refused(number):
    for refuse in (lambda: parse_int64(str(number), "--x"), lambda: check_int64([None, 5, number], "--x")):
        with pytest.raises(UsageError, match=f"--x {str(number)[:19]}.*larger than any there can be \\({HIGHEST}\\)"):
            refuse()


@pytest.mark.parametrize(("text", "milliseconds"), [
    (None, None), ("0s", 0), ("1s", 1000), ("90s", 90_000), ("30m", 1_800_000), ("12h", 43_200_000), ("7d", 604_800_000),
    ("999999999s", 999_999_999_000),
])  # fmt: skip
def test_spans_of_time(text, milliseconds):
    assert parse_duration(text, "--x") == milliseconds


@pytest.mark.parametrize("text", ["", "s", "5", "5w", "-5s", "1.5h", "5 s", "٣s", "²s", "1000000000s", "5S"])
def test_what_is_no_span_of_time(text):
    with pytest.raises(UsageError, match="not a span of time"):
        parse_duration(text, "--x")


@pytest.mark.parametrize(("text", "milliseconds"), [
    (None, None), ("1970-01-01", 0), ("1970-01-02T00:00:00", 86_400_000), ("1970-01-01T00:00:01Z", 1000),
    ("1970-01-01T01:00:00.001+01:00", 1), ("1969-12-31T23:59:59Z", -1000), ("000000001", 1), ("1700000000000", 1_700_000_000_000),
    # eight digits are a date
    ("19700102", 86_400_000),
])  # fmt: skip
def test_times(text, milliseconds):
    assert parse_time(text, "--x") == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "1970-13-01", "12345", "17000000"])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match=f"--x {text}: not a time"):
        parse_time(text, "--x")


def window(**typed):
    options = scan_options(typed)
    return options.since_ms, options.until_ms


def test_windows():
    assert window() == (None, None)
    assert window(since="1970-01-01") == (0, None)
    assert window(until="1970-01-01") == (None, 0)
    assert window(since="1970-01-02", until="1970-01-02") == (86_400_000, 86_400_000)
    with pytest.raises(UsageError, match="later than"):
        window(since="1970-01-03", until="1970-01-02")


def test_names_of_replicas():
    assert parse_names([], ["a", "b"]) == {}
    assert parse_names(["x=b", "y=a=1"], ["a=1", "b"]) == {"b": "x", "a=1": "y"}
    for values, says in (
        (["x"], "write NAME=DIR"), (["=a"], "write NAME=DIR"), (["x="], "write NAME=DIR"), (["x=c"], "not among"),
        (["x=a", "y=a"], "has the name x already"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=re.escape(says)):
            parse_names(values, ["a", "b"])
    with pytest.raises(UsageError, match="two or more"):
        parse_names([], ["a"])


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("-", True), ("a.json", True), ("a/b.json", True), ("a", False), ("a.json/b", False), ("--", False)],
)
def test_fingerprints_by_their_names(path, is_one):
    assert is_fingerprint(path) is is_one


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(("fail_on", "reached"), [
    (FailOn.ERROR, {ERROR}), (FailOn.WARNING, {ERROR, WARNING}), (FailOn.NOTE, {ERROR, WARNING, NOTE}), (FailOn.NEVER, set()),
])  # fmt: skip
def test_what_fails_a_run(fail_on, reached):
    assert {severity for severity in Severity if fail_on.reached(severity)} == reached
    assert not fail_on.reached(None)
    for severity in Severity:
        found = scan_result(old_duplicate(severity=severity))
        assert exit_code(found, fail_on, exit_zero=False) == (1 if severity in reached else 0)
        assert exit_code(found, fail_on, exit_zero=True) == 0
        known = scan_result(old_duplicate(severity=severity, status=Status.KNOWN))
        assert exit_code(known, fail_on, exit_zero=False) == 0


@pytest.mark.parametrize("exit_zero", [False, True])
def test_a_file_that_cannot_be_read(exit_zero):
    unread = [NotAudited("a", "healthy"), NotAudited("b", "denied", unreadable=True)]
    assert exit_code(scan_result(not_audited=unread), FailOn.ERROR, exit_zero=exit_zero) == 4
    assert exit_code(scan_result(not_audited=unread[:1]), FailOn.ERROR, exit_zero=exit_zero) == 0
    both = scan_result(old_duplicate(), not_audited=unread)
    assert exit_code(both, FailOn.ERROR, exit_zero=False) == 1
    warned = scan_result(old_duplicate(severity=WARNING), not_audited=unread)
    assert exit_code(warned, FailOn.ERROR, exit_zero=exit_zero) == 4


def test_codes_of_processes():
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 4, 70, 130, 141]
    assert set(MEANINGS) == set(ExitCode)
