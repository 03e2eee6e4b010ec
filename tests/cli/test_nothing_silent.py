"""What was asked for and is not there is named: inputs that hold nothing, topics, partitions, producer ids."""

import json
import os
from pathlib import Path

import pytest

CLEAN = "samples/clean"
ZOMBIE = "samples/zombie"


@pytest.fixture(autouse=True)
def at_the_samples(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "empty/lost+found").mkdir(parents=True)
    return tmp_path / "empty"


def not_audited(outcome):
    return {(item["path"], item["reason"]) for item in json.loads(outcome.out)["not_audited"] if item["asked_for"]}


@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_an_input_that_held_nothing_beside_one_that_did(kaudit, empty, command):
    outcome = kaudit(command, CLEAN, empty, "-q", "--output-format", "json")
    reason = "no segment (a file such as 00000000000000000000.log) was found"
    assert outcome.code == 0
    assert not_audited(outcome) == {(str(empty), reason)}
    assert outcome.err == f"kaudit: {empty}: {reason}\n"
    assert str(empty) in kaudit(command, CLEAN, empty).out


@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_require_all_wants_every_input(kaudit, empty, command):
    outcome = kaudit(command, CLEAN, empty, "--require-all", "--output-format", "json")
    assert outcome.code == 3
    assert str(empty) in outcome.err
    assert json.loads(outcome.out)["incomplete"] is True
    assert kaudit(command, CLEAN, ZOMBIE, "--require-all", "--fail-on", "never").code == 0
    outcome = kaudit(command, CLEAN, ZOMBIE, "--topic", "mix-ct", "--require-all")
    assert (outcome.code, ZOMBIE in outcome.err) == (3, True)
    assert kaudit(command, CLEAN, "--topic", "mix-ct", "--topic", "gone", "--require-all").code == 3


def test_what_was_there_instead_of_a_segment(kaudit, evidence, tmp_path):
    leftover = evidence.capture("torn-writes") / "artificial/dir-delete"
    assert "explosion-0.0123456789abcdef0123456789abcdef-delete (delete)" in kaudit("scan", CLEAN, leftover).err
    (tmp_path / "records.json").write_text("{}", encoding="utf-8")
    assert str(tmp_path) in kaudit("scan", CLEAN, tmp_path).err
    outcome = kaudit("scan", CLEAN, f"{CLEAN}/README.md")
    assert outcome.err.startswith(f"kaudit: {CLEAN}/README.md: no segment file but a text of which none of ")


def test_an_input_that_another_holds_is_audited(kaudit, tmp_path):
    (tmp_path / "link").symlink_to(Path(CLEAN).absolute())
    for paths in ([CLEAN, f"{CLEAN}/mix-ct-0"], [f"{CLEAN}/mix-ct-0", CLEAN], [CLEAN, tmp_path / "link"], [CLEAN] * 2):
        outcome = kaudit("scan", *paths, "-q", "--output-format", "json")
        assert (outcome.code, outcome.err, not_audited(outcome)) == (0, "", set())


def test_zookeepers_directory_is_of_use(kaudit, evidence):
    capture = evidence.capture("zk-pid-blocks")
    assert kaudit("scan", capture / "logdirs/b0", capture / "zk", "-q", "--require-all").err == ""


def test_a_topic_that_is_not_there(kaudit):
    outcome = kaudit("scan", CLEAN, "--topic", "mix-compcat")
    assert (outcome.code, "did you mean mix-compact" in outcome.err) == (3, True)
    outcome = kaudit("scan", CLEAN, "--topic", "xyz")
    assert "--topic xyz: no such topic; topics there: mix-compact, mix-ct" in outcome.err
    outcome = kaudit("scan", CLEAN, "--topic", "mix-compcat", "--topic", "mix-ct", "--output-format", "json")
    ((path, reason),) = not_audited(outcome)
    assert (outcome.code, path, reason in outcome.err) == (0, "--topic mix-compcat", True)
    outcome = kaudit("scan", CLEAN, "--topic", "mix-ct", "--partition", "7")
    assert (outcome.code, "--partition 7: no such partition; there: 0, 1" in outcome.err) == (3, True)


@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_a_producer_id_that_is_not_there(kaudit, command):
    outcome = kaudit(command, CLEAN, "--producer-id", "31", "--output-format", "json")
    assert outcome.code == 3
    assert "--producer-id 31: no such producer id; nearest: 27, 28, 29 (29 ids from 0 to 29)" in outcome.err
    assert json.loads(outcome.out)["incomplete"] is True
    outcome = kaudit(command, CLEAN, "--producer-id", "31", "--producer-id", "27", "--output-format", "json", "-q")
    assert outcome.code == 0
    assert {path for path, _ in not_audited(outcome)} == {"--producer-id 31"}
    assert outcome.err.count("\n") == 1
    legacy = kaudit(command, "samples/duplicates", "--producer-id", "900002")
    assert "no such producer id; there: 900001" in legacy.err


def test_an_id_that_only_a_snapshot_knows_is_there(kaudit):
    assert kaudit("timeline", "samples/crafted", "--producer-id", "9", "-q").err == ""


@pytest.mark.parametrize(("inputs", "code"), [(["{}"], 4), ([CLEAN, "{}"], 4), ([ZOMBIE, "{}"], 1)])
def test_a_directory_that_must_not_be_read(kaudit, tmp_path, monkeypatch, inputs, code):
    (tmp_path / "closed/orders-0").mkdir(parents=True)
    closed, real = str(tmp_path / "closed"), os.scandir

    def guarded(path):
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return real(path)

    monkeypatch.setattr(os, "scandir", guarded)  # root may read everything
    outcome = kaudit("scan", *(path.format(closed) for path in inputs), "--output-format", "json")
    assert outcome.code == code
    (unread,) = [item for item in json.loads(outcome.out)["not_audited"] if item["unreadable"]]
    assert (unread["path"], "Permission denied" in unread["reason"]) == (closed, True)
