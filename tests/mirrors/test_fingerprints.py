"""Two sites that cannot see each other's records exchange counts and digests of windows."""

import json
from datetime import datetime

import pytest

from kaudit.cli.app import run
from tests.mirrors.histories import History
from tests.mirrors.test_windows import BEGIN, EVEN, topic

LOST = EVEN[:15] + EVEN[16:]
BY = "diff", "--by", "records", "-q"


@pytest.fixture
def sites(tmp_path):
    """A source, and a copy of it without one record."""
    topic(*EVEN).write(tmp_path / "a" / "orders-0")
    topic(*LOST).write(tmp_path / "b" / "primary.orders-0")
    return tmp_path / "a", tmp_path / "b"


def printed(capsys, *arguments):
    code = run([*BY, *map(str, arguments)])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def sent(capsys, file, *arguments):
    """The file with what one site sends to the other."""
    code, out = printed(capsys, "--fingerprint", *arguments)
    assert code == 0
    file.write_text(out)
    return file


def differing(out):
    """What json says of the windows of the only pair: total, and those that differ."""
    (one,) = json.loads(out)["topics"]
    windows = one["windows"]
    return windows["windows"], [tuple(each.values()) for each in windows["differences"]]


def test_a_site_compares_its_logs_with_what_another_sends(sites, capsys):
    ours, theirs = sites
    file = sent(capsys, ours.parent / "a.json", "--windows", "10s", ours)
    code, out = printed(capsys, "--output-format", "json", file, theirs)
    assert (code, differing(out)) == (1, (4, [("2023-11-14T22:13:30.000Z", 10, 9)]))
    code, out = printed(capsys, file, theirs)
    said = " ".join(out.split())
    assert "orders -> primary.orders: 1 of 4 windows of 10 s differ (2023-11-14T22:13:30.000Z: 10 records of" in said
    assert f"kaudit diff --fingerprint --by records {file} {theirs}" in out


def test_an_answer_has_narrower_windows_where_sites_differ(sites, capsys):
    ours, theirs = sites
    file = sent(capsys, ours.parent / "a.json", ours)
    answer = sent(capsys, ours.parent / "b.json", file, theirs)
    document = json.loads(answer.read_text())
    assert document["milliseconds"] == 10_000
    code, out = printed(capsys, "--output-format", "json", ours, answer)
    assert (code, differing(out)) == (1, (4, [("2023-11-14T22:13:30.000Z", 10, 9)]))
    narrowest = sent(capsys, ours.parent / "c.json", ours, answer)
    assert {len(each["partitions"][0]["windows"]) for each in json.loads(narrowest.read_text())["topics"]} == {10}
    code, out = printed(capsys, "--output-format", "json", narrowest, theirs)
    at = datetime.fromtimestamp((BEGIN + 15_000) / 1000).astimezone().timestamp()
    total, ((start, source, target),) = differing(out)
    assert (total, datetime.fromisoformat(start).timestamp(), source, target) == (10, at, 1, 0)


def test_two_fingerprints_are_compared_without_logs(sites, capsys):
    ours = sites[0]
    files = [sent(capsys, site.parent / f"{site.name}.json", "--windows", "10s", site) for site in sites]
    code, out = printed(capsys, *files)
    assert code == 1
    assert "kaudit diff --fingerprint" not in out
    assert printed(capsys, files[0], ours)[0] == 0


@pytest.mark.parametrize("seed", range(300, 312))
def test_sites_differ_where_their_records_do(seed, tmp_path, capsys):
    history = History(seed)
    source, target = history.write(tmp_path)
    isolation = "read_committed" if history.settings.committed else "read_uncommitted"
    options = "--map", f"orders={history.settings.renamed}"
    file = sent(capsys, tmp_path / "a.json", "--windows", "1s", "--isolation-level", isolation, source)
    code, _ = printed(capsys, *options, file, target)
    rows = [
        [[each.record for each in log.visible(committed=history.settings.committed)] for log in logs]
        for logs in (history.source, history.target)
    ]
    same = [[[record._replace(number=0) for record in log] for log in logs] for logs in rows]
    assert code == int(same[0] != same[1])


def test_options_are_those_of_the_other_site(sites, capsys):
    ours, theirs = sites
    file = sent(capsys, ours.parent / "a.json", "--identity", "value,timestamp", ours)
    other = sent(capsys, ours.parent / "b.json", theirs)
    assert printed(capsys, file, theirs)[0] == 1
    assert run([*BY, "--identity", "key,timestamp", str(file), str(theirs)]) == 2
    assert "the fingerprint is by value,timestamp" in capsys.readouterr().err
    assert run([*BY, str(file), str(other)]) == 2
    assert "these fingerprints differ in identity" in capsys.readouterr().err


def test_a_part_that_cannot_be_read_is_named(sites, capsys):
    (segment,) = sites[1].rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert run([*BY, "--fingerprint", str(sites[1])]) == 4
    captured = capsys.readouterr()
    assert json.loads(captured.out)["incomplete"] is True
    assert "primary.orders-0" in captured.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-9], "not a fingerprint of records"),
        (lambda text: text.replace("kaudit.record-fingerprint/1", "kaudit.scan/1"), "a kaudit.scan/1 document"),
        (lambda text: text.replace('"partition":0', '"partition":-1'), "not a fingerprint of records"),
        (lambda text: text.replace('"milliseconds": 10000', '"milliseconds": 0'), "not a fingerprint of records"),
        (lambda text: text.replace('"identity": "key', '"identity": "colour'), "colour"),
        (lambda text: text.replace(f"[[{BEGIN // 10_000},", f"[[{BEGIN // 10_000 + 7},"), "do not ascend"),
        (lambda _: "[" * 100_000, "not a fingerprint of records"),
        (lambda _: '{"schema": "\ud800"}', "cannot be read"),
    ],
    ids=["cut", "schema", "partition", "width", "identity", "order", "deep", "surrogate"],
)
def test_damaged_documents_are_one_line(sites, capsys, change, said):
    file = sent(capsys, sites[0].parent / "a.json", "--windows", "10s", sites[0])
    text = change(file.read_text())
    assert text != file.read_text()
    file.write_text(text, errors="surrogatepass")
    assert run([*BY, str(file), str(sites[1])]) == 2
    said_all = capsys.readouterr().err
    assert said in said_all
    assert said_all.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fingerprint", "a", "b"], "one directory"),
        (["--fingerprint", "a", "--output-format", "table"], "a fingerprint is json"),
        (["--fingerprint", "a", "--redact"], "a fingerprint names topics"),
        (["a.json"], "two inputs"),
        (["--fingerprint", "none"], "nothing to read"),
    ],
    ids=str,
)
def test_wrong_usage_is_one_line(sites, capsys, arguments, said, monkeypatch):
    monkeypatch.chdir(sites[0].parent)
    sent(capsys, sites[0].parent / "a.json", "a")
    (sites[0].parent / "none").mkdir()
    assert run([*BY, *arguments]) != 0
    assert said in capsys.readouterr().err


def test_a_topic_without_records_has_no_windows(tmp_path, capsys):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").touch()
    code, out = printed(capsys, "--fingerprint", tmp_path)
    assert code == 0
    assert [each["windows"] for one in json.loads(out)["topics"] for each in one["partitions"]] == [[]]
