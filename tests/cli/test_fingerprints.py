"""`kaudit diff` with fingerprints as a command: documents, formats, exit codes, and documents that are none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kaudit.cli.exits import ExitCode
from tests.diff.replicas import TOPIC, Copy, history


@pytest.fixture
def sites(tmp_path):
    """Two sites that part at offset 6."""
    one = history((0, 3))
    other = one.copy().append(2, 1, b"other's")
    one.append(2, 0, b"one's")
    return [str(log.write(tmp_path / name)) for name, log in (("one", one), ("other", other))]


def made(kaudit, place, *arguments):
    outcome = kaudit("diff", "--fingerprint", *arguments)
    assert (outcome.code, outcome.err) == (ExitCode.OK, ""), outcome
    place.write_text(outcome.out)
    return str(place)


def test_sites_that_part_are_found_by_two_documents(kaudit, sites, tmp_path):
    one, other = sites
    first = made(kaudit, tmp_path / "first.json", one)
    outcome = kaudit("diff", first, other)
    assert outcome.code == ExitCode.FINDINGS
    assert f"kaudit diff --fingerprint {first} {other} > narrower.json" in outcome.out
    second = made(kaudit, tmp_path / "second.json", first, other)
    outcome = kaudit("diff", second, one)
    assert outcome.code == ExitCode.FINDINGS
    assert f"{TOPIC}-0 at offset 6: one holds batch 6..7 (leader epoch 0, CRC " in outcome.out
    assert "second.json holds batch 6..7 (leader epoch 1, CRC " in outcome.out
    assert "narrow it down" not in outcome.out
    outcome = kaudit("diff", first, second)  # without any log
    assert (outcome.code, "diverged" in outcome.out) == (ExitCode.FINDINGS, True)


def test_json_says_what_the_table_says(kaudit, sites, tmp_path):
    first = made(kaudit, tmp_path / "first.json", sites[0])
    second = made(kaudit, tmp_path / "second.json", first, sites[1])
    document = json.loads(kaudit("diff", "--output-format", "json", second, sites[0]).out)
    assert (document["schema"], document["sites"]) == ("kaudit.fingerprint-diff/1", ["one", "second.json"])
    (partition,) = document["partitions"]
    assert (partition["relation"], partition["identical_up_to"]) == ("diverged", 6)
    assert partition["differing"] == [{"first_offset": 6, "last_offset": 7}]
    assert {name: batch["leader_epoch"] for name, batch in partition["first_difference"].items()} == {
        "one": 0,
        "second.json": 1,
    }


def test_a_fingerprint_through_a_pipe(kaudit, sites, tmp_path, monkeypatch):
    import io

    first = made(kaudit, tmp_path / "first.json", sites[0])
    monkeypatch.setattr("sys.stdin", io.StringIO((tmp_path / "first.json").read_text()))
    outcome = kaudit("diff", "-", sites[0])
    assert (outcome.code, outcome.out) == (ExitCode.OK, "1 partition identical, by digests of one and -\n"), first


def test_exit_codes(kaudit, sites, tmp_path):
    first = made(kaudit, tmp_path / "first.json", sites[0])
    assert kaudit("diff", "--exit-zero", first, sites[1]).code == ExitCode.OK
    assert kaudit("diff", "--fail-on", "never", first, sites[1]).code == ExitCode.OK
    assert kaudit("diff", first, sites[0]).code == ExitCode.OK
    document = json.loads((tmp_path / "first.json").read_text())
    document |= {"incomplete": True, "not_audited": [{"path": "/x", "reason": "gone", "unreadable": True}]}
    (tmp_path / "first.json").write_text(json.dumps(document))
    second = made(kaudit, tmp_path / "second.json", sites[0])
    for others in ([first, sites[0]], [first, second], [second, first]):
        outcome = kaudit("diff", *others)
        assert (outcome.code, "kaudit: /x: gone" in outcome.err) == (ExitCode.UNREADABLE, True)


def test_partitions_that_one_site_alone_has_are_said(kaudit, sites, tmp_path):
    first = made(kaudit, tmp_path / "first.json", sites[0])
    (tmp_path / "other" / f"{TOPIC}-0").rename(tmp_path / "other" / f"{TOPIC}-1")
    outcome = kaudit("diff", first, sites[1])
    assert outcome.code == ExitCode.OK
    assert f"{TOPIC}-1: on other only, not compared." in outcome.out
    assert f"{TOPIC}-0: on first.json only, not compared." in outcome.out
    second = made(kaudit, tmp_path / "second.json", sites[1])
    outcome = kaudit("diff", first, second)
    assert outcome.code == ExitCode.OK
    assert f"{TOPIC}-1: on second.json only, not compared." in outcome.out
    assert f"{TOPIC}-0: on first.json only, not compared." in outcome.out
    document = json.loads(kaudit("diff", "--output-format", "json", first, second).out)
    assert document["inputs"] == sites
    history((0, 3)).write(tmp_path / "both")
    history((0, 1)).write(tmp_path / "more")
    (tmp_path / "more" / f"{TOPIC}-0").rename(tmp_path / "both" / f"{TOPIC}-1")
    document = json.loads(kaudit("diff", "--output-format", "json", first, str(tmp_path / "both")).out)
    assert document["only_on"] == {"both": [{"topic": TOPIC, "partition": 1}], "first.json": []}
    assert [entry["partition"] for entry in document["partitions"]] == [0]


def test_segments_that_retention_removes_meanwhile_are_said_and_no_fault(kaudit, sites, monkeypatch):
    from kaudit.engines import local

    log = history((0, 3))
    log.rolls = (2, 4)
    path = Path(sites[0]).with_name("rolled")
    log.write(path)
    first, real = path / f"{TOPIC}-0" / f"{0:020d}.log", vars(local)["open_segment"]

    def removing(segment):
        first.unlink(missing_ok=True)
        return real(segment)

    monkeypatch.setattr(local, "open_segment", removing)
    outcome = kaudit("diff", "--fingerprint", str(path))
    document = json.loads(outcome.out)
    assert (outcome.code, document["incomplete"]) == (ExitCode.OK, False)
    ((where, why),) = [(entry["path"], entry["reason"]) for entry in document["not_audited"]]
    assert where == str(first)
    assert "removed" in why


def test_segments_that_cannot_be_read_leave_a_fingerprint_incomplete(kaudit, sites, tmp_path, monkeypatch):
    from kaudit.engines import local

    log = history((0, 3))
    log.rolls = (2, 4)
    path = tmp_path / "rolled"
    log.write(path)
    refused, real = path / f"{TOPIC}-0" / f"{2:020d}.log", vars(local)["open_segment"]

    def refusing(segment):
        if segment.path == str(refused):
            raise PermissionError(13, "Permission denied", segment.path)
        return real(segment)

    first = made(kaudit, tmp_path / "first.json", sites[0])
    monkeypatch.setattr(local, "open_segment", refusing)
    outcome = kaudit("diff", "--fingerprint", str(path))
    document = json.loads(outcome.out)
    expected = [{"path": str(refused), "reason": "Permission denied", "unreadable": True, "asked_for": False}]
    assert (outcome.code, document["incomplete"], document["not_audited"]) == (ExitCode.UNREADABLE, True, expected)
    compared = kaudit("diff", "--output-format", "json", first, str(path))
    document = json.loads(compared.out)
    assert (compared.code, document["incomplete"], document["not_audited"]) == (ExitCode.UNREADABLE, True, expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fingerprint", "one", "other"], "--fingerprint takes one directory, and at most one fingerprint"),
        (["--fingerprint", "first.json"], "--fingerprint takes one directory"),
        (["--fingerprint", "--output-format", "sarif", "one"], "a fingerprint is json"),
        (["first.json", "one", "other"], "fingerprints are compared two at a time"),
        (["--output-format", "sarif", "first.json", "one"], "a comparison of fingerprints is table or json"),
        (["missing.json", "one"], "no such file: missing.json"),
        (["--fingerprint", "-o", "one/x.json", "one"], "lies in what is audited"),
        (["first.json", "nowhere"], "no such file or directory"),
    ],
)
def test_wrong_arguments_are_one_line(kaudit, sites, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    made(kaudit, tmp_path / "first.json", sites[0])
    outcome = kaudit("diff", *arguments)
    assert (outcome.code, outcome.out) == (ExitCode.USAGE, "")
    assert says in outcome.err


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "kaudit.fingerprint/2"},
        {"partitions": [{"topic": "t\0"}]},
        {"partitions": 7},
        {"first_offset": 5},
        {"width": 1000},
        {"width": 1 << 70},
        {"digests": ["x"]},
        {"digests": []},
        {"digests": [None] * 65},
        {"twice": True},
        {"listed": [{"first_offset": 0, "batches": [[5, 6, 0, 1], [4, 4, 0, 1]]}]},
        {"listed": [{"first_offset": 0, "batches": [[1024, 1024, 0, 1]]}]},
    ],
    ids=str,
)
def test_a_damaged_document_is_one_line(kaudit, sites, tmp_path, change):
    path = tmp_path / "first.json"
    made(kaudit, path, sites[0])
    document = json.loads(path.read_text())
    partition = document["partitions"][0]
    if change.pop("twice", False):
        document["partitions"].append(partition)
    for name, value in change.items():
        owner = next((each for each in (document, partition) if name in each), partition["ranges"][0])
        owner[name] = value
    path.write_text(json.dumps(document))
    outcome = kaudit("diff", str(path), sites[1])
    assert (outcome.code, outcome.out) == (ExitCode.USAGE, "")
    assert outcome.err.startswith(f"kaudit: {path}: ") or str(path) in outcome.err
    assert "\0" not in outcome.err


def test_a_document_of_many_partitions_stays_small(kaudit, tmp_path):
    log = Copy()
    for number in range(100):
        log.append(1, 0, b"%d" % number)
        log.batches[-1] = replace(log.batches[-1], base_offset=number * 1000)
    content = b"".join(batch.encode() for batch in log.batches)
    for number in range(400):
        partition = tmp_path / "site" / f"{TOPIC}-{number}"
        partition.mkdir(parents=True)
        (partition / f"{0:020d}.log").write_bytes(content)
    outcome = kaudit("diff", "--fingerprint", str(tmp_path / "site"))
    # four digests of 64 characters and the one of all, and as much again for names and offsets
    assert len(outcome.out) < 400 * 700
