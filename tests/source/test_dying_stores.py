"""Stores that die in the middle of a read: one line with the path and the byte, in time, and never a part as if it were all."""

import errno
import json
from contextlib import suppress

import pytest

from kaudit.cli.app import run
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.source import filesystem
from kaudit.source.filesystem import Store
from tests.source.dying import DEATHS, SEGMENT, dying


@pytest.mark.parametrize(("store", "death"), DEATHS)
@pytest.mark.parametrize("command", ["scan", "dedup", "timeline", "diff"])
def test_what_a_dead_store_had_not_sent_is_named_in_time_and_the_result_incomplete(
    store, death, command, request, tmp_path, monkeypatch, capsys
):
    with dying(store, death, request, tmp_path, monkeypatch) as (url, said):
        paths = [url, str(tmp_path / "root")] if command == "diff" else [url]
        assert run([command, *paths, "--isolated", "-q", "--output-format", "json"]) == 4
    out, err = capsys.readouterr()
    assert "internal error" not in err
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["summary"].get("incomplete", document.get("incomplete"))
    reasons = [each["reason"] for each in json_notes(document) if each["path"].endswith(SEGMENT)]
    assert len(reasons) == 1
    assert said in reasons[0]
    assert reasons[0].endswith("(read from byte 0 on)")
    assert "\n" not in reasons[0]


def test_a_store_that_left_a_request_unanswered_is_given_a_second_until_it_answers(monkeypatch):
    given: list[float] = []
    answers = iter([None, None, b"x", None, b"x"])

    def answered(file, ask, seconds):
        given.append(seconds)
        answer = next(answers)
        if answer is None:
            raise OSError(errno.ETIMEDOUT, "no answer", file)
        return answer

    monkeypatch.setenv("KAUDIT_ANSWER_SECONDS", "20")
    monkeypatch.setattr(filesystem, "_SILENT", set())
    monkeypatch.setattr(filesystem, "answered", answered)
    for number, store in enumerate(("one", "one", "one", "one", "another")):
        with suppress(TimeoutError):
            Store("WebHDFS").asked(f"webhdfs://{store}:1/logs/{number}", bytes)
    assert given == [20, 1, 1, 20, 20]


def test_what_could_not_be_read_is_no_progress(request, tmp_path, monkeypatch):
    progress = Counted()
    with dying("webhdfs", "cut", request, tmp_path, monkeypatch) as (url, _):
        assert scan(ScanOptions([url], jobs=1), progress).incomplete
    assert progress.total > 0
    assert progress.read == 0


class Counted(SilentProgress):
    total = read = 0

    def start(self, total_bytes):
        self.total = total_bytes

    def advance(self, read_bytes):
        self.read += read_bytes


def json_notes(document):
    summary = document["summary"]
    return document.get("not_audited") or summary.get("not_compared") or summary.get("not_audited")
