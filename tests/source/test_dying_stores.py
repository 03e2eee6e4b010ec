"""Stores that die in the middle of a read: one line with the path and the byte, in time, and never a part as if it were all."""

import json
import time

import pytest

from kaudit.cli.app import run
from tests.source.dying import DEATHS, SEGMENT, dying


@pytest.mark.parametrize(("store", "death"), DEATHS)
@pytest.mark.parametrize("command", ["scan", "dedup", "timeline", "diff"])
def test_what_a_dead_store_had_not_sent_is_named_in_time_and_the_result_incomplete(
    store, death, command, request, tmp_path, monkeypatch, capsys
):
    with dying(store, death, request, tmp_path, monkeypatch) as (url, said):
        began = time.monotonic()
        paths = [url, str(tmp_path / "root")] if command == "diff" else [url]
        assert run([command, *paths, "--isolated", "-q", "--output-format", "json"]) == 4
        assert time.monotonic() - began < 20
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


def json_notes(document):
    summary = document["summary"]
    return document.get("not_audited") or summary.get("not_compared") or summary.get("not_audited")
