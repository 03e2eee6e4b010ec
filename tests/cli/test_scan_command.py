"""scan and timeline: options reach the engine, results reach where they belong."""

import json
import stat
from pathlib import Path

import pytest

from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.kafka.options import ClusterOptions
from tests import scan_results as results


def test_options_reach_the_engine(engine, kaudit):
    kaudit(
        "scan", "/a", "/b", "--broker-version", "2.0.1", "--topic", "orders", "--topic", "pay", "--partition", 3,
        "--producer-id", 1000, "--since", "2023-11-14T22:13:20Z", "--until", "2023-11-15", "--now", "1700000000001",
        "--log-start-offset", 7, "--compacted", "--jobs", 2, "--depth", "records", "--require-all", "--state", "/s",
        "--zookeeper", "/z", "--blocks", "/b", "--metadata", "/m", "--layout", "{topic}-{partition}",
        "--command-config", "c", "--from-offset", 0, "--to-offset", 1, "--from-time", "1699999999999",
        "--to-time", "1700000000000", "--max-bytes-per-second", 9,
    )  # fmt: skip
    assert engine.options == ScanOptions(
        paths=["/a", "/b"],
        broker_version="2.0.1",
        topics=["orders", "pay"],
        partitions=[3],
        producer_ids=[1000],
        since_ms=1_700_000_000_000,
        until_ms=1_700_006_400_000,
        now_ms=1_700_000_000_001,
        log_start_offset=7,
        compacted=True,
        jobs=2,
        depth=Depth.RECORDS,
        require_all=True,
        state="/s",
        zookeeper="/z",
        blocks="/b",
        metadata="/m",
        layout="{topic}-{partition}",
        cluster=ClusterOptions("c", 0, 1, 1_699_999_999_999, 1_700_000_000_000, 9),
    )
    scanned = engine.options
    kaudit("timeline", "/a")
    assert engine.options == ScanOptions(paths=["/a"])
    assert scanned != engine.options


MOST, MORE = 2**63 - 1, 2**63


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (("--from-offset", 5, "--to-offset", 5), "nothing lies between"),
        (("--from-offset", 0, "--to-offset", 0), "nothing lies between"),
        (("--from-offset", 6, "--to-offset", 5), "nothing lies between"),
        (("--from-offset", 4, "--to-offset", 5), None),
        (("--from-offset", 4), None),
        (("--to-offset", 0), None),
        (("--from-time", "123456789", "--to-time", "123456789"), "nothing lies between"),
        (("--from-time", "123456789", "--to-time", "123456790"), None),
        (("--from-time", "123456789"), None),
        (("--to-time", "123456789"), None),
        (("--since", "123456790", "--until", "123456789"), "later than --until"),
        (("--since", "123456789", "--until", "123456789"), None),
        (("--since", "123456789"), None),
        (("--until", "123456789"), None),
        (("--from-offset", MOST), None),
        (("--from-offset", MORE), "larger than any there can be"),
        (("--to-offset", MOST), None),
        (("--to-offset", MORE), "larger than any there can be"),
        (("--log-start-offset", MOST), None),
        (("--log-start-offset", MORE), "larger than any there can be"),
        (("--producer-id", 1, "--producer-id", MOST), None),
        (("--producer-id", 1, "--producer-id", MORE), "larger than any there can be"),
        (("--until", MOST), None),
        (("--until", MORE), "larger than any there can be"),
    ],
)
def test_a_range_holds_something_and_a_number_64_bits(engine, kaudit, options, refused):
    outcome = kaudit("scan", "/data", *options)
    assert outcome.code == (1 if refused is None else 2)
    assert (refused or "") in outcome.err
    assert (engine.options is None) is (refused is not None)


def test_no_limit_of_the_rate_is_zero(engine, kaudit):
    kaudit("scan", "/data", "--max-bytes-per-second", 0)
    assert engine.options.cluster == ClusterOptions(max_bytes_per_second=None)
    kaudit("scan", "/data")
    assert engine.options.cluster.max_bytes_per_second == 64 << 20


@pytest.mark.parametrize(
    ("text", "now_ms"), [("12345678", None), ("20231114", 1_699_920_000_000), ("123456789", 123_456_789)]
)
def test_eight_digits_are_a_date_and_more_are_milliseconds(engine, kaudit, text, now_ms):
    outcome = kaudit("scan", "/data", "--now", text)
    assert outcome.code == (2 if now_ms is None else 1)
    assert (engine.options and engine.options.now_ms) == now_ms


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:20", "2023-11-14T23:13:20+01:00", "1700000000000", "20231114T221320Z"]
)
def test_times_are_utc_unless_they_say_otherwise(engine, kaudit, text):
    kaudit("scan", "/data", "--now", text)
    assert engine.options.now_ms == 1_700_000_000_000


def test_stdout_is_the_report_and_stderr_the_closing_line(engine, kaudit):
    outcome = kaudit("scan", "/data", "--reproducible")
    assert outcome.out.startswith("at most 5 records lost in orders-3; ")
    assert outcome.err == "2 errors, 1 warning, 1 note (hidden; -v shows) in 2 segments, 1 partition, 1.2 MB\n"
    assert kaudit("scan", "/data", "-q").err == ""
    assert kaudit("scan", "/data").err.rstrip().endswith(" s")


@pytest.mark.parametrize("shows", [["-v"], ["--select", "KA"], ["--fail-on", "note"]])
@pytest.mark.parametrize("form", ["table", "concise"])
def test_notes_are_hidden_unless_asked_for(engine, kaudit, shows, form):
    assert "KA203" not in kaudit("scan", "/data", "--output-format", form).out
    assert "KA203" in kaudit("scan", "/data", "--output-format", form, *shows).out


def test_json_has_the_notes_always(engine, kaudit):
    codes = [
        finding["code"] for finding in json.loads(kaudit("scan", "/data", "--output-format", "json").out)["findings"]
    ]
    assert codes == ["KA106", "KA102", "KA001", "KA203"]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (["--select", "KA1"], {"KA102", "KA106"}),
        (["--select", "ka102,KA203"], {"KA102", "KA203"}),
        (["--select", "KA102", "--select", "KA203"], {"KA102", "KA203"}),
        (["--ignore", "KA1,KA203"], {"KA001"}),
        (["--select", "KA1", "--ignore", "KA106"], {"KA102"}),
        (["--select", "KA106", "--ignore", "KA1"], {"KA106"}),
        (["--select", "KA1", "--ignore", "KA1"], set()),
    ],
)
def test_the_longest_prefix_decides_what_is_reported_and_counted(engine, kaudit, options, codes):
    document = json.loads(kaudit("scan", "/data", "--output-format", "json", *options).out)
    assert {finding["code"] for finding in document["findings"]} == codes
    assert sum(document["summary"]["findings"].values()) == len(codes)


def test_a_timeline_leaves_out_what_is_not_selected(engine, kaudit):
    document = json.loads(kaudit("timeline", "/data", "--output-format", "json", "--ignore", "KA102").out)
    entries = [entry for timeline in document["timelines"] for entry in timeline["entries"]]
    assert [entry["code"] for entry in entries if entry["kind"] == "finding"] == ["KA203"]


def test_one_run_writes_several_formats(engine, kaudit, tmp_path):
    outcome = kaudit(
        "scan", "/data", "--output-format", f"json:{tmp_path}/a.json", "--output-format", "concise", "--output-format",
        f"jsonl:{tmp_path}/a:b.jsonl",
    )  # fmt: skip
    assert outcome.out.startswith("orders-3/00000000000000000000.log:0: warning[KA106]")
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "kaudit.scan/1"
    assert len((tmp_path / "a:b.jsonl").read_text().splitlines()) == 5
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a:b.jsonl"}


def test_output_replaces_a_file_as_a_whole_and_keeps_its_mode(engine, kaudit, tmp_path):
    report = tmp_path / "report.txt"
    report.write_text("old")
    report.chmod(0o640)
    assert kaudit("scan", "/data", "-o", report).out == ""
    assert report.read_text().startswith("at most 5 records lost in orders-3; ")
    assert stat.S_IMODE(report.stat().st_mode) == 0o640


def test_a_failing_run_leaves_the_old_file_alone(engine, kaudit, tmp_path):
    report = tmp_path / "report.json"
    report.write_text("old")
    engine.error = ZeroDivisionError()
    assert kaudit("scan", "/data", "--output-format", f"json:{report}").code == 70
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]


def test_a_device_is_written_to_and_not_replaced(engine, kaudit):
    assert kaudit("scan", "/data", "-o", "/dev/null").code == 1
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_a_link(engine, kaudit, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    kaudit("scan", "/data", "-o", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("at most 5 records lost in orders-3; ")


def test_dash_is_stdout(engine, kaudit):
    assert kaudit("scan", "/data", "-o", "-").out.startswith("at most 5 records lost in orders-3; ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "{tmp}/none/a"], "there is no directory"),
        (["-o", "{tmp}"], "is a directory"),
        (["-o", "{tmp}/data/report.txt"], "where kaudit never writes"),
        (["-o", "{tmp}/data/orders-0/report.txt"], "where kaudit never writes"),
        (["--output-format", "json:{tmp}/a", "--output-format", "jsonl:{tmp}/a"], "same place"),
        (["--output-format", "json", "--output-format", "jsonl"], "only one format"),
        (["--output-format", "json:{tmp}/a", "-o", "{tmp}/b"], "has its own file already"),
    ],
)
def test_places_that_cannot_be_are_refused_before_the_scan(engine, kaudit, tmp_path, options, message):
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    outcome = kaudit("scan", tmp_path / "data", *[option.format(tmp=tmp_path) for option in options])
    assert outcome.code == 2
    assert message in outcome.err
    assert engine.options is None


def test_the_file_that_is_audited_is_never_overwritten(engine, kaudit, tmp_path):
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(b"records")
    assert kaudit("scan", segment, "-o", segment).code == 2
    assert segment.read_bytes() == b"records"


def test_reproducible_output_has_nothing_of_the_run(engine, kaudit):
    with_run = json.loads(kaudit("scan", "/data", "--output-format", "json").out)
    without = json.loads(kaudit("scan", "/data", "--output-format", "json", "--reproducible").out)
    assert set(with_run.pop("run")) == {"host", "started_at"}
    assert with_run == without


@pytest.mark.parametrize(
    ("environ", "options", "colored"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"CLICOLOR_FORCE": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"FORCE_COLOR": "1"}, ["--no-color"], False),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
    ],
)
def test_color(engine, kaudit, monkeypatch, environ, options, colored):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for command in (["scan", "/data"], ["timeline", "/data"]):
        assert ("\x1b[" in kaudit(*command, *options).out) is colored
    for command in (["explain", "KA101"], ["checks"]):
        assert ("\x1b[" in kaudit(*command, *options).out) is colored
    assert "\x1b[" not in kaudit("scan", "/data", "--output-format", "json", *options).out


def test_a_file_gets_color_only_when_asked_for(engine, kaudit, monkeypatch, tmp_path):
    monkeypatch.setenv("FORCE_COLOR", "1")
    kaudit("scan", "/data", "-o", tmp_path / "a")
    kaudit("scan", "/data", "-o", tmp_path / "b", "--color", "always")
    assert "\x1b[" not in (tmp_path / "a").read_text()
    assert "\x1b[" in (tmp_path / "b").read_text()


def test_columns_wrap_the_report(engine, kaudit, monkeypatch):
    longest = max(map(len, kaudit("scan", "/data").out.splitlines()))
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, kaudit("scan", "/data").out.splitlines())) <= 80 < longest


def test_incomplete_is_said_everywhere(engine, kaudit):
    engine.scan_result = results.incomplete(results.old_duplicate())
    table, concise = kaudit("scan", "/data"), kaudit("scan", "/data", "--output-format", "concise")
    assert "incomplete: the absence of findings proves nothing" in table.out
    assert table.err.rstrip().endswith("incomplete")
    assert "orders-4/00000000000000000000.log:-: unreadable: Permission denied" in concise.out
    assert json.loads(kaudit("scan", "/data", "--output-format", "json").out)["incomplete"] is True
