"""Every command that reads partitions takes --remote: what it says of a log in two places is what it says of the log on one disk."""

import json
import shutil
from pathlib import Path

import pytest

from kaudit.cli.app import run
from tests.logs import Log, data, marker
from tests.remote_storage import AivenPlugin, LocalTieredStorage, dated, move, split
from tests.source.encrypted_chunks import KEY

SAMPLES = Path(__file__).parents[2] / "samples"
ENGINES = ("local", pytest.param("spark", marks=pytest.mark.jvm))
WRITTEN = 1_700_100_000


@pytest.fixture(params=["encrypted", "files"])
def sites(request, tmp_path):
    """The same logs twice: whole in `whole`, and in `here` without the first segments, which are in `there`."""
    plugin = (
        LocalTieredStorage() if request.param == "files" else AivenPlugin(chunk_size=500, compression=True, key=KEY)
    )
    return in_two_places(tmp_path, plugin)


RECORDS = 101


def in_two_places(tmp_path, plugin):
    whole, here, there = (tmp_path / name for name in ("whole", "here", "there"))
    log = Log()
    for number in range(80):
        log.append(data(100, 0, number, payload=b"order %d" % number))
        if number == 30:  # the same record once more, by a producer that does not know that it is
            log.append(data(200, 0, 0, payload=b"order 30"))
        if number % 4 == 0:
            log.append(data(500, 0, number // 4, transactional=True, payload=b"bill %d" % number))
            log.append(marker(500, 0, commit=number % 8 == 0))
    split(log.write(whole / "orders-0"))
    (whole / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    for name in ("__consumer_offsets-0", "__consumer_offsets-1"):
        shutil.copytree(SAMPLES / "consumed-offsets" / name, whole / name)
    shutil.copytree(whole, here)
    move(here / "orders-0", there, plugin)
    dated(tmp_path, WRITTEN)
    return whole, here, there


def remote(there):
    return "--remote", there, "--remote-key", KEY


@pytest.fixture
def said(capsys, request):
    """Return what a command prints."""

    def call(*arguments, engine=None):
        if engine == "spark":
            request.getfixturevalue("spark_session")
        code = run([str(argument) for argument in (*arguments, *(() if engine is None else ("--engine", engine)))])
        captured = capsys.readouterr()
        assert code in (0, 1), captured.err
        return captured.out

    return call


@pytest.mark.parametrize("command", ["dedup", "groups", "transactions"])
def test_rows_are_those_of_the_whole_log(sites, said, command):
    whole, here, there = sites

    def rows(*places):
        text = said(command, *places, "--output-format", "jsonl").replace('"here"', '"whole"')
        # without metadata among the inputs it is said that names alone chose the segments
        return [json.loads(line) | {"not_audited": []} for line in text.splitlines()]

    expected = rows(whole)
    assert len(expected) > 1
    assert rows(here, *remote(there)) == expected


def test_producers_are_those_of_the_whole_log(sites, said):
    whole, here, there = sites

    def listed(*places):
        text = said("producers", *places, "--output-format", "json", "--reproducible").replace('"here"', '"whole"')
        return json.loads(text)["producers"]

    assert {each["producer_id"] for each in listed(whole)} == {100, 200, 500}
    assert listed(here, *remote(there)) == listed(whole)
    assert [each["producer_id"] for each in listed(*remote(there))] == [100, 200, 500]


@pytest.mark.parametrize("command", ["dedup", "groups", "producers", "transactions"])
def test_no_path_is_needed_beside_a_location(sites, said, command):
    _, _, there = sites
    assert said(command, *remote(there))
    assert run([command]) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_replicas_are_compared_wherever_their_segments_lie(sites, said, engine):
    """What a replica has moved is compared with what the other still has on its disk."""
    whole, here, there = sites
    asked = ("--topic", "orders", "--output-format", "json", "--reproducible")
    compared = json.loads(said("diff", whole, here, *remote(there), *asked, engine=engine))
    assert compared["findings"] == []
    (orders,) = compared["partitions"]
    assert orders["relation"] == "identical"
    assert orders["start_offset"] == {"here": 0, "whole": 0}
    changed = there.parent / "changed"
    log = Log()
    log.append(data(100, 0, 0, payload=b"another"))
    log.write(changed / "orders-0")
    found = json.loads(said("diff", changed, here, *remote(there), *asked, engine=engine))
    assert [(each["code"], each["offset"]) for each in found["findings"]] == [("KA601", 0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_report_is_verified_against_both_places(sites, said, tmp_path, engine):
    whole, here, there = sites
    report = tmp_path / "report.json"
    report.write_text(said("scan", "--digests", whole, "--output-format", "json", "--exit-zero"))
    shown = said("diff", report, here, *remote(there), "--topic", "orders", engine=engine)
    assert shown.startswith("orders-0 unchanged: offsets 0..")
    assert "0..90 removed since" in said("diff", report, here, "--topic", "orders", engine=engine)


def test_fingerprints_are_those_of_the_whole_log(sites, said):
    whole, here, there = sites
    for by in ("batches", "records"):
        asked = ("diff", "--fingerprint", "--by", by)
        ours, theirs = (json.loads(said(*asked, *places)) for places in ((whole,), (here, *remote(there))))
        own: dict[str, object] = {"inputs": [], "not_audited": []}
        assert ours | own == theirs | own


@pytest.mark.parametrize("engine", ENGINES)
def test_topics_are_compared_record_by_record_in_both_places(tmp_path, said, engine):
    whole, here, there = in_two_places(tmp_path, AivenPlugin(key=KEY))
    asked = ("diff", "--by", "records", "--output-format", "json", "--reproducible", "--topic", "orders")
    for arguments in (
        (here, whole, "--remote", there, "--remote-key", KEY),
        (whole, here, "--target-remote", there, "--remote-key", KEY),
    ):
        found = json.loads(said(*asked, *arguments, engine=engine))
        (ledger,) = found["ledgers"]
        assert (ledger["matched"], ledger["missing"], ledger["only_in_target"]) == (RECORDS, 0, 0)
