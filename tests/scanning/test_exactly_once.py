"""Inputs held against outputs: what is compared, and what is said where that is too much."""

import kaudit
from kaudit.audits.transactions import committed_inputs
from kaudit.scanning import exactly_once
from tests.live_brokers.exactly_once.stage import DATA

LEVEL = DATA / "zombie-level.tar.xz"


def said(result):
    codes = [finding.code for finding in result.findings]
    return codes, [note.reason for note in result.not_audited if "KA915" in note.reason]


def test_outputs_are_compared_and_those_that_are_not_are_counted(monkeypatch):
    assert said(kaudit.scan(LEVEL)) == (["KA915"], [])
    monkeypatch.setattr(exactly_once, "_MOST_COMPARED", 0)
    codes, notes = said(kaudit.scan(LEVEL))
    assert codes == []
    assert [note.split(",")[0] for note in notes] == ["the outputs of 2 transactions were not compared"]


def test_what_is_not_listed_is_counted(monkeypatch):
    monkeypatch.setattr(committed_inputs, "_MOST_LISTED", 0)
    codes, notes = said(kaudit.scan(DATA / "processed-again.tar.xz"))
    assert "KA915" not in codes
    assert [note[:6] for note in notes] == ["2 more"]
