"""Configuration: who wins, what is refused, and where a value came from."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOPICS = """
broker-version = "2.8.2"
[topics.state]
compacted = true
[topics.orders]
expected-producers = 800
[[topics.orders.ignore]]
codes = ["KA102"]
reason = "ticket 7"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    home = tmp_path / "home"
    work = tmp_path / "repo" / "deep"
    (home / "kaudit").mkdir(parents=True)
    work.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.chdir(work)
    return work


def jobs(engine, kaudit, *options):
    assert kaudit("scan", "/data", *options).code == 1
    return engine.options.jobs


def test_the_usual_order(engine, kaudit, here, monkeypatch):
    assert jobs(engine, kaudit) is None
    (here.parents[1] / "home" / "kaudit" / "kaudit.toml").write_text("jobs = 2\ncompacted = true\n")
    assert jobs(engine, kaudit) == 2
    (here.parent / "kaudit.toml").write_text("jobs = 3\n")
    assert jobs(engine, kaudit) == 3
    assert engine.options.compacted  # the user's file still speaks where the project's does not
    (here / "pyproject.toml").write_text("[tool.other]\n")
    assert jobs(engine, kaudit) == 3
    (here / "pyproject.toml").write_text("[tool.kaudit]\njobs = 4\n")
    assert jobs(engine, kaudit) == 4
    (here / "kaudit.toml").write_text("jobs = 5\n")
    assert jobs(engine, kaudit) == 5
    monkeypatch.setenv("KAUDIT_JOBS", "6")
    assert jobs(engine, kaudit) == 6
    assert jobs(engine, kaudit, "--jobs", "7") == 7


def test_config_names_the_only_file_and_isolated_none(engine, kaudit, here, monkeypatch):
    (here / "kaudit.toml").write_text("jobs = 5\n")
    (here / "other.toml").write_text("depth = 'headers'\n")
    assert jobs(engine, kaudit, "--config", "other.toml") is None
    assert engine.options.depth.value == "headers"
    assert jobs(engine, kaudit, "--isolated") is None
    assert kaudit("scan", "--isolated", "--config", "other.toml", "/data").code == 2
    assert "no such file" in kaudit("scan", "--config", "none.toml", "/data").err
    monkeypatch.setenv("KAUDIT_CONFIG", "other.toml")
    assert jobs(engine, kaudit) is None
    monkeypatch.delenv("KAUDIT_CONFIG")
    monkeypatch.setenv("KAUDIT_ISOLATED", "1")
    assert jobs(engine, kaudit) is None


def test_help_and_version_need_no_sound_configuration(kaudit, here):
    (here / "kaudit.toml").write_text("jobz = 5\n")
    assert kaudit("scan", "--help").code == 0
    assert kaudit("scan", "--version").code == 0
    assert kaudit("explain", "KA101").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobz = 5", "there is no key jobz; did you mean jobs?"),
        ("jobs", "not TOML"),
        ("jobs = 0", "jobs: "),
        ("jobs = true", "jobs: True is neither a string nor a number"),
        ("compacted = 1", "compacted: is true or false, not 1"),
        ("fail-on = 'errors'", "fail-on: "),
        ("force = true", "there is no key force"),
        ("topics = 3", "write a table per topic"),
        ("[topic.orders]\n", "topic: {'orders': {}} is neither a string nor a number"),
        ("[topics.orders]\ncompact = true", "topics.orders: there is no key compact; did you mean compacted?"),
        ("[topics.orders]\ncompacted = 1", "topics.orders.compacted: is true or false"),
        ("[topics.orders]\nexpected-producers = -1", "is not a number of producer ids"),
        ("[topics.orders]\nignore = ['KA102']", "write a table with codes and a reason"),
        ("[[topics.orders.ignore]]\ncodes = ['KA102']", "ignore.reason: say why"),
        ("[[topics.orders.ignore]]\nreason = 'x'", "ignore.codes: write a list"),
        ("[[topics.orders.ignore]]\nreason = 'x'\ncodes = ['KA99']", "no check has this code, prefix or name"),
        ("[topics]\norders = 1", "topics.orders: is not a table"),
        ("[topics.orders]\nexpected-producers = true", "is not a number of producer ids"),
        ("[topics.orders]\nexpected-producers = 'x'", "is not a number of producer ids"),
        ("[topics.orders]\nignore = 'KA102'", "write [[topics.orders.ignore]]"),
        ("[[topics.orders.ignore]]\nreason = 'x'\ncodes = []", "ignore.codes: write a list"),
        ("[[topics.orders.ignore]]\nreason = 'x'\ncodes = 'KA102'", "ignore.codes: write a list"),
        ("[[topics.orders.ignore]]\nreason = 'x'\ncodes = ['KA102', 7]", "ignore.codes: write a list"),
        ("[[topics.orders.ignore]]\nreason = ' '\ncodes = ['KA102']", "ignore.reason: say why"),
        ("[[topics.orders.ignore]]\nreason = 7\ncodes = ['KA102']", "ignore.reason: say why"),
        ("[[topics.orders.ignore]]\nreson = 'x'\ncodes = ['KA102']", "no key reson; did you mean reason?"),
        ("partition = [1, true]", "partition: True is neither a string nor a number"),
    ],
)
def test_mistakes_are_reported_with_their_place(engine, kaudit, here, text, message):
    (here / "kaudit.toml").write_text(text)
    outcome = kaudit("scan", "/data")
    assert outcome.code == 2
    assert message in outcome.err
    assert "kaudit.toml" in outcome.err
    assert engine.options is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("KAUDIT_JOBS", "many", "KAUDIT_JOBS: jobs: "),
        ("KAUDIT_COMPACTED", "maybe", "KAUDIT_COMPACTED=maybe: is neither of"),
        ("KAUDIT_SELECT", "KA99", "no check has this code"),
    ],
)
def test_mistakes_in_the_environment_too(engine, kaudit, here, monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    outcome = kaudit("scan", "/data")
    assert (outcome.code, message in outcome.err) == (2, True)


def test_lists_flags_and_tables(engine, kaudit, here, monkeypatch):
    (here / "kaudit.toml").write_text(
        "select = ['KA1', 'KA203']\npartition = [1, 2]\nseverity = {KA102 = 'note'}\nsince = 2026-11-21\nexit-zero = true\n"
    )
    monkeypatch.setenv("KAUDIT_TOPIC", "orders payments")
    monkeypatch.setenv("KAUDIT_EXIT_ZERO", "no")
    outcome = kaudit("scan", "/data", "--output-format", "json", "--fail-on", "warning")
    document = json.loads(outcome.out)
    assert {finding["code"]: finding["severity"] for finding in document["findings"]} == {
        "KA102": "note", "KA106": "warning", "KA203": "note",
    }  # fmt: skip
    assert (list(engine.options.partitions), list(engine.options.topics)) == ([1, 2], ["orders", "payments"])
    assert engine.options.since_ms == 1_795_219_200_000
    assert outcome.code == 1


def test_topics_reach_the_engine_and_the_findings(engine, kaudit, here):
    (here / "kaudit.toml").write_text(TOPICS)
    document = json.loads(kaudit("scan", "/data", "--output-format", "json").out)
    assert engine.options.compacted_topics == ("state",)
    marked = {finding["code"]: finding["suppression"] for finding in document["findings"] if finding["status"] != "new"}
    assert marked == {"KA102": "ticket 7"}
    kaudit("timeline", "/data")
    assert engine.options.compacted_topics == ("state",)
    (here / "kaudit.toml").write_text("[topics.orders]\nexpected-producers = 0\n")
    assert kaudit("scan", "/data").code == 1


def test_config_show_lists_every_value_with_its_origin(kaudit, here, monkeypatch):
    (here / "kaudit.toml").write_text(TOPICS)
    monkeypatch.setenv("KAUDIT_JOBS", "2")
    monkeypatch.setenv("KAUDIT_SELCET", "KA1")
    text = kaudit("config", "show").out.splitlines()
    assert any(line.startswith("jobs = 2 ") and line.endswith("# KAUDIT_JOBS") for line in text)
    assert any(line.startswith("broker-version = 2.8.2 ") and line.endswith(f"# {here}/kaudit.toml") for line in text)
    assert any(line.startswith("fail-on = error ") and line.endswith("# default") for line in text)
    assert "  ignore KA102: ticket 7" in text
    assert "KAUDIT_SELCET is not an option of kaudit: ignored" in text
    document = json.loads(kaudit("config", "show", "--output-format", "json").out)
    assert document["settings"]["jobs"] == {"value": "2", "origin": "KAUDIT_JOBS"}
    assert document["settings"]["fail-on"] == {"value": "error", "origin": "default"}
    assert document["topics"]["orders"]["expected-producers"] == 800
    assert document["ignored_variables"] == ["KAUDIT_SELCET"]


@pytest.mark.parametrize("name", ["CONFIG", "CONNECT_SECONDS", "DEBUG", "ISOLATED", "PAGER", "PYTHON"])
def test_a_variable_that_something_else_of_kaudit_reads_is_not_called_misspelt(kaudit, here, monkeypatch, name):
    monkeypatch.setenv(f"KAUDIT_{name}", "")
    monkeypatch.setenv("KAUDIT_CONFIGS", "")
    document = json.loads(kaudit("config", "show", "--output-format", "json").out)
    assert document["ignored_variables"] == ["KAUDIT_CONFIGS"]


@pytest.mark.parametrize(("digits", "aligned"), [(39, True), (40, False)])
def test_config_show_aligns_what_is_short(kaudit, here, monkeypatch, digits, aligned):
    monkeypatch.setenv("KAUDIT_METRICS_ADDRESS", "9" * digits)  # longer than every other setting
    monkeypatch.setenv("KAUDIT_SELECT", "")
    monkeypatch.setenv("KAUDIT_TOPIC", "a b")
    monkeypatch.setenv("KAUDIT_QUIET", "yes")
    monkeypatch.setenv("KAUDIT_COLOR", "never")
    lines = [line for line in kaudit("config", "show").out.splitlines() if " = " in line]
    texts = [line.partition("#")[0].rstrip() for line in lines if not line.startswith("metrics-address")]
    assert {"topic = a, b", "quiet = true", "exit-zero = false", "select = (not set)", "master = (not set)"} <= set(
        texts
    )
    widest = max(len(text) for text in texts)
    starts = {line.index("#") for line in lines if not line.startswith("metrics-address")}
    assert starts == {len("metrics-address = ") + 39 + 2 if aligned else widest + 2}


def test_config_show_lists_topics_as_they_are_written(kaudit, here):
    (here / "kaudit.toml").write_text(TOPICS)
    lines = kaudit("config", "show").out.splitlines()
    first = lines.index(f"topics.state  # {here}/kaudit.toml")
    assert lines[first : first + 5] == [
        f"topics.state  # {here}/kaudit.toml",
        "  compacted = true",
        f"topics.orders  # {here}/kaudit.toml",
        "  expected-producers = 800",
        "  ignore KA102: ticket 7",
    ]
    topics = json.loads(kaudit("config", "show", "--output-format", "json").out)["topics"]
    assert topics["state"] == {
        "compacted": True, "expected-producers": None, "ignore": [], "origin": f"{here}/kaudit.toml",
    }  # fmt: skip


@pytest.mark.parametrize(("xdg", "found"), [("config", True), ("", True), ("elsewhere", False)])
def test_the_users_file_is_below_xdg_config_home_or_home(engine, kaudit, here, monkeypatch, xdg, found):
    home = here.parents[1]
    for folder in (".config", "config"):
        (home / folder / "kaudit").mkdir(parents=True)
        (home / folder / "kaudit" / "kaudit.toml").write_text("jobs = 2\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / xdg) if xdg else "")
    assert jobs(engine, kaudit) == (2 if found else None)
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("HOME", "")
    assert jobs(engine, kaudit) is None


@pytest.mark.parametrize(
    ("text", "exits_with_zero"),
    [(text, True) for text in ("1", "true", "YES", "on")] + [(text, False) for text in ("0", "false", "No", "off", "")],
)
def test_flags_in_the_environment(engine, kaudit, here, monkeypatch, text, exits_with_zero):
    monkeypatch.setenv("KAUDIT_EXIT_ZERO", text)
    assert kaudit("scan", "/data").code == (0 if exits_with_zero else 1)


@pytest.mark.parametrize("key", ["zookeeper", "blocks", "metadata", "state", "command-config"])
def test_paths_in_a_file_are_relative_to_that_file(engine, kaudit, here, key):
    name = key.replace("-", "_")
    for value, read in (("own", str(here.parent / "own")), ("/own", "/own"), ("s3://own", "s3://own")):
        (here.parent / "kaudit.toml").write_text(f"{key} = '{value}'\n")
        assert kaudit("scan", "/data").code == 1
        assert getattr(engine.options.cluster if key == "command-config" else engine.options, name) == read
    assert kaudit("scan", f"--{key}", "typed", "/data").code == 1
    assert getattr(engine.options.cluster if key == "command-config" else engine.options, name) == "typed"


def test_a_baseline_in_a_file_is_beside_that_file(engine, kaudit, here):
    (here.parent / "kaudit.toml").write_text("baseline = 'known.json'\n")
    outcome = kaudit("scan", "/data")
    assert outcome.code == 2
    assert f"{here.parent}/known.json: no such file" in outcome.err
    assert kaudit("baseline", "create", "/data").code == 0
    assert (here.parent / "known.json").exists()
    assert kaudit("scan", "/data").code == 0


def test_checks_are_configured_by_name(engine, kaudit, here):
    (here / "kaudit.toml").write_text('ignore = ["old-duplicate", "crc-mismatch"]\n')
    assert kaudit("scan", "/data").code == 0
    (here / "kaudit.toml").write_text('ignore = ["old-duplicat"]\n')
    outcome = kaudit("scan", "/data")
    assert (outcome.code, "did you mean old-duplicate" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("cwd", "path", "used"),
    [
        (".", ".", False),  # the input itself
        ("orders-0", "..", False),  # inside an input
        ("orders-0", ".", True),  # above the input
        ("..", "deep", True),  # the project's own
    ],
)
def test_configuration_in_an_input_is_evidence(engine, kaudit, here, monkeypatch, cwd, path, used):
    (here / "orders-0").mkdir()
    (here.parent / "kaudit.toml").write_text("jobs = 3\n")
    (here / "kaudit.toml").write_text("jobs = 5\n")
    monkeypatch.chdir(here / cwd)
    outcome = kaudit("scan", path)
    expected = 3 if not used or cwd == ".." else 5
    assert engine.options.jobs == expected
    assert ("was not used as configuration" in outcome.err) is not used
    assert jobs(engine, kaudit, "--config", str(here / "kaudit.toml"), path) == 5


def test_a_link_to_an_input_leads_to_the_input(engine, kaudit, here):
    (here / "kaudit.toml").write_text("jobs = 5\n")
    (here.parent / "link").symlink_to(here)
    kaudit("scan", "../link")
    assert engine.options.jobs is None


def test_an_input_named_by_url_holds_evidence_too(engine, kaudit, here):
    (here / "kaudit.toml").write_text("jobs = 5\n")
    outcome = kaudit("scan", f"file://{here}")
    assert engine.options.jobs is None
    assert "was not used as configuration" in outcome.err


def test_tables_for_kaudit_in_a_shared_file_are_evidence_in_an_input(engine, kaudit, here):
    (here / "pyproject.toml").write_text("[tool.kaudit]\njobs = 5\n")
    outcome = kaudit("scan", ".")
    assert engine.options.jobs is None
    assert outcome.err.count("pyproject.toml lies in an input") == 1


@pytest.mark.parametrize("option", ["--zookeeper", "--metadata"])
def test_a_directory_that_an_option_names_is_an_input(engine, kaudit, here, option):
    (here / "kaudit.toml").write_text("jobs = 5\n")
    outcome = kaudit("scan", option, ".", "/data")
    assert "was not used as configuration" in outcome.err


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "# " + "x" * (1 << 20)])
def test_toml_is_bounded_in_depth_and_size(kaudit, here, text):
    (here / "deep.toml").write_text(text)
    for command in (["scan", "--config", "deep.toml", "/data"], ["simulate", "deep.toml"]):
        outcome = kaudit(*command)
        assert outcome.code == 2
        assert len(outcome.err.splitlines()) == 1


@pytest.fixture
def faulty(here):
    """A log directory with findings of several checks."""
    shutil.copytree(ROOT / "samples" / "zombie", here / "logs")
    return here / "logs"


def found(kaudit, *arguments):
    document = json.loads(kaudit("scan", "--output-format", "json", *arguments).out)
    codes = Counter(finding["code"] for finding in document["findings"])
    return document.get("configuration"), codes


def test_the_report_names_what_applied_and_how_many_findings_it_changed(kaudit, here, faulty):
    none, codes = found(kaudit, faulty)
    assert none is None
    code, changed = next(iter(codes.items()))
    other = next(each for each in codes if each != code)
    file = here / "kaudit.toml"
    file.write_text(f'severity = ["{code}=note"]\nignore = ["{other}"]\nfail-on = "error"\n')
    configuration, left = found(kaudit, faulty)
    assert left == codes - Counter({other: codes[other]})
    was_note = sum(finding["severity"] == "note" for finding in findings_of(kaudit, faulty, code))
    assert configuration == {
        "sources": [str(file)],
        "not_used": [],
        "severities_changed": changed - was_note,
        "suppressed": 0,
        "left_out": codes[other],
        "fail_on": "error",
    }
    text = " ".join(kaudit("scan", faulty).out.split())
    assert f"Configuration: {file}: " in text
    assert f"{codes[other]:,} left out, the exit code counts findings from error on" in text
    # the command line wins: nothing was configured of these
    configuration, _ = found(kaudit, faulty, "--severity", "KA001=error", "--ignore", "KA001", "--fail-on", "never")
    assert configuration["fail_on"] is None
    assert (configuration["severities_changed"], configuration["left_out"]) == (0, 0)


def findings_of(kaudit, path, code):
    outcome = kaudit("scan", "--isolated", "--output-format", "json", path)
    return [finding for finding in json.loads(outcome.out)["findings"] if finding["code"] == code]


def test_findings_suppressed_in_a_topic_are_counted_with_the_file(kaudit, here, faulty):
    (here / "kaudit.toml").write_text('[[topics."*".ignore]]\ncodes = ["KA"]\nreason = "all is well"\n')
    configuration, codes = found(kaudit, faulty)
    assert configuration["suppressed"] == codes.total()
    html = kaudit("scan", faulty, "--output-format", "html").out
    assert f"kaudit.toml: {codes.total()} suppressed" in html


def test_a_configuration_that_changed_nothing_is_named_by_verbose(kaudit, here, faulty):
    (here / "kaudit.toml").write_text('severity = ["KA701=note"]\n')
    line = "kaudit.toml: no finding changed"
    assert line in " ".join(kaudit("scan", "-v", faulty).out.split())
    assert line not in " ".join(kaudit("scan", faulty).out.split())


@pytest.mark.parametrize("given", ["s38-epoch-max-0", "s38-epoch-max-0/00000000000000000000.log"])
@pytest.mark.parametrize("at", [".", "s38-epoch-max-0"])
def test_configuration_beside_what_is_scanned_alone_is_evidence(kaudit, faulty, monkeypatch, given, at):
    (faulty / at / "kaudit.toml").write_text('ignore = ["KA"]\n')
    monkeypatch.chdir(faulty / "s38-epoch-max-0")
    configuration, codes = found(kaudit, faulty / given)
    assert codes
    assert configuration["not_used"] == [str(faulty / at / "kaudit.toml")]
    text = " ".join(kaudit("scan", faulty / given).out.split())
    assert "kaudit.toml lies in an input: it is evidence and was not used" in text


def test_a_directory_that_only_holds_a_partition_is_no_log_directory(kaudit, here):
    shutil.copytree(ROOT / "samples" / "zombie" / "s38-epoch-max-0", here / "s38-epoch-max-0")
    (here / "kaudit.toml").write_text('ignore = ["KA"]\n')
    configuration, codes = found(kaudit, "s38-epoch-max-0")
    assert (configuration["not_used"], codes) == ([], {})
