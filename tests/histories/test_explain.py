"""Findings of logs whose history is known: it is among those that explain them."""

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import kaudit
from kaudit.cli.app import run
from kaudit.histories import explain
from kaudit.histories.explain import CAUSES, EXPLAINED, trace_of
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.simulate.scenario.reading import shipped
from tests.logs import Log, data

TRIES = "30"


def saved_scan(scenario, directory):
    """Write the scenario's logs and a saved scan of them; return its path and findings."""
    logs, saved = directory / "run", directory / "scan.json"
    assert run(["simulate", scenario, "-q", "-o", str(logs)]) == 0
    brokers = [str(path) for path in sorted(logs.glob("broker-*")) if any(path.glob("*/*.log"))]
    assert run(["scan", *brokers, "-q", "--fail-on", "never", "--output-format", f"json:{saved}"]) == 0
    return saved, json.loads(saved.read_text())["findings"]


def explained(saved, fingerprint, capsys, *options):
    command = ["simulate", "--explain-finding", f"{saved}#{fingerprint}", "--output-format", "json", *options]
    assert run(command) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("scenario", "code", "true_faults"),
    [
        ("six-in-flight", "KA704", {"lose-response"}),
        ("unclean-election", "KA206", {"kill-broker", "pause-broker"}),
        ("forgotten-duplicate", "KA101", {"lose-response", "stop-broker"}),
        ("cross-session", "KA701", {"kill-producer"}),
        ("zombie-producer", "KA203", {"pause-producer"}),
        ("retry-without-idempotence", "KA702", {"lose-response"}),
        ("retry-without-idempotence", "KA703", {"lose-response"}),
        ("hanging-transaction", "KA301", {"pause-broker"}),
        ("hanging-transaction", "KA304", {"pause-broker"}),
    ],
)
def test_what_really_happened_is_among_the_histories(scenario, code, true_faults, tmp_path, capsys):
    assert {fault.__struct_config__.tag for fault in shipped(scenario).faults} >= true_faults
    saved, findings = saved_scan(scenario, tmp_path)
    fingerprint = next(finding["fingerprint"] for finding in findings if finding["code"] == code)
    explanation = explained(saved, fingerprint, capsys, "--tries", TRIES)
    histories = explanation["histories"]
    assert 1 <= len(histories) <= 3
    assert any({CAUSES[kind].happened for kind in true_faults} <= set(history["happened"]) for history in histories)
    assert sum(history["schedules"] for history in histories) <= explanation["schedules_with_the_finding"]
    assert all(history["look"] for history in histories)


def test_the_text_says_how_often_what_happened_and_where_to_look(tmp_path, capsys):
    saved, findings = saved_scan("six-in-flight", tmp_path)
    (fingerprint,) = [finding["fingerprint"] for finding in findings if finding["code"] == "KA704"]
    capsys.readouterr()
    assert run(["simulate", "--explain-finding", f"{saved}#{fingerprint}", "--tries", TRIES]) == 0
    out = capsys.readouterr().out
    document = explained(saved, fingerprint, capsys, "--tries", TRIES)
    for number, history in enumerate(document["histories"], 1):
        assert f"{number}. {round(100 * history['share'])}% ({history['schedules']} of " in out
        for text in [*history["happened"], *history["look"], *history["events"]]:
            assert text in " ".join(out.split())
    assert "Kafka 3.9.1, 1 broker\n" in out


def test_where_no_schedule_gives_the_finding_the_causes_of_the_scan_are_shown(tmp_path, capsys):
    log, saved = Log(), tmp_path / "scan.json"
    for sequence in (0, 1, 5):  # no leader appends the last one
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "orders-0")
    scan = ["scan", str(tmp_path / "orders-0"), "-q", "--fail-on", "never", "--output-format", f"json:{saved}"]
    assert run(scan) == 0
    (finding,) = [finding for finding in json.loads(saved.read_text())["findings"] if finding["code"] == "KA104"]
    capsys.readouterr()
    assert run(["simulate", "--explain-finding", f"{saved}#{finding['fingerprint']}", "--tries", TRIES]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "none gave this finding" in out
    assert finding["explanations"]
    for number, cause in enumerate(finding["explanations"], 1):
        assert f"{number}. {cause['cause']}" in out


def test_a_slow_transaction_needs_no_fault(tmp_path, capsys):
    saved, findings = saved_scan("transaction-timeout", tmp_path)
    fencing = next(finding for finding in findings if finding["code"] == "KA203")
    histories = explained(saved, fencing["fingerprint"], capsys, "--tries", TRIES)["histories"]
    assert ["the transaction took longer than transaction.timeout.ms"] in [history["happened"] for history in histories]


def test_a_history_leaves_the_finding_again_and_the_seed_decides(tmp_path, capsys):
    saved, findings = saved_scan("cross-session", tmp_path)
    fingerprint = next(finding["fingerprint"] for finding in findings if finding["code"] == "KA701")
    first = explained(saved, fingerprint, capsys, "--tries", "30")
    assert first == explained(saved, fingerprint, capsys, "--tries", "30")
    scenario = tmp_path / "history.toml"
    scenario.write_text(first["histories"][0]["toml"])
    assert run(["simulate", str(scenario), "-q", "-o", str(tmp_path / "again")]) == 0
    assert "KA701" in {finding.code for finding in kaudit.scan(tmp_path / "again" / "broker-1").findings}


def test_a_recorded_duplicate_has_an_explanation(tmp_path, capsys):
    saved = tmp_path / "scan.json"
    recorded = "samples/duplicates/s59-snapshots-deleted-0"
    assert run(["scan", recorded, "-q", "--fail-on", "never", "--output-format", f"json:{saved}"]) == 0
    findings = json.loads(saved.read_text())["findings"]
    fingerprint = next(finding["fingerprint"] for finding in findings if finding["code"] in EXPLAINED)
    assert explained(saved, fingerprint, capsys, "--tries", "20")["schedules_tried"] == 20


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("scan.json", "expected SAVED.json#FINGERPRINT"),
        ("missing.json#0123456789abcdef", "missing.json: No such file"),
        ("{saved}#0123456789abcdef", "has no finding with the fingerprint 0123456789abcdef"),
        ("{text}#0123456789abcdef", "not JSON"),
    ],
)
def test_usage(named, expected, tmp_path, capsys):
    saved, _ = saved_scan("cross-session", tmp_path)
    text = tmp_path / "text.json"
    text.write_text("no")
    assert run(["simulate", "--explain-finding", named.format(saved=saved, text=text)]) == 2
    assert expected in capsys.readouterr().err


def test_what_cannot_be_explained_is_refused_with_what_can(tmp_path, capsys):
    saved = tmp_path / "scan.json"
    assert run(["scan", "samples/damaged", "-q", "--fail-on", "never", "--output-format", f"json:{saved}"]) == 0
    damage = next(item for item in json.loads(saved.read_text())["findings"] if item["code"] not in EXPLAINED)
    assert run(["simulate", "--explain-finding", f"{saved}#{damage['fingerprint']}"]) == 2
    message = capsys.readouterr().err
    assert f"{damage['code']} {damage['name']} cannot be explained" in message
    assert all(code in message for code in EXPLAINED)


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        ((0, 3, 0, 7), (0, 3, 0, 7), True),
        ((0, 3, 0, 7), (5, 10, 5, 14), True),  # both leave out three
        ((0, 3, 0, 7), (0, 3, 0, 5), False),  # one is missing
        ((0, 3, 0, 7), (0, 3, 0, 40), False),  # many are
        ((0, 3, 0, 7), (0, 3, 0, 0), False),
        ((0, 3, 0, 7), (0, 3, 0, 2), False),
        ((0, 3, 1, 0), (7, 3, 8, 0), True),
        ((0, 3, 1, 0), (0, 3, 2, 0), False),
        ((1, 3, 0, 0), (0, 3, 1, 0), False),
    ],
)
def test_the_same_trace(first, other, same):
    assert (trace_of(finding_with(*first)) == trace_of(finding_with(*other))) == same


@pytest.mark.parametrize(
    ("before", "offending", "changed"),
    [
        ({}, {}, {}),
        ({"leader_epoch": 1}, {}, {"same_leader": False}),
        ({"leader_epoch": None}, {}, {"same_leader": None}),
        ({"producer_id": 2}, {}, {"same_id": False}),
        ({"producer_epoch": 4}, {}, {"epoch": "lower"}),
        ({"producer_epoch": 2}, {}, {"epoch": "next"}),
        ({"producer_epoch": 1}, {}, {"epoch": "later"}),
        ({"producer_epoch": None}, {}, {"epoch": None}),
        ({}, {"producer_epoch": None}, {"epoch": None}),
        ({}, {"base_sequence": 4}, {"sequence": "next"}),
        ({}, {"base_sequence": 3}, {"sequence": "before"}),
        ({}, {"base_sequence": 0}, {"sequence": "0"}),
        ({"last_sequence": -1}, {"base_sequence": 0}, {"sequence": "next"}),
        ({}, {"base_sequence": -1}, {"sequence": None}),
        ({}, {"base_sequence": None}, {"sequence": None}),
        ({"last_sequence": None}, {}, {"sequence": None}),
        ({}, {"base_sequence": 5}, {"sequence": "gap of 1"}),
        ({}, {"base_sequence": 6}, {"sequence": "gap of few"}),
        ({}, {"base_sequence": 9}, {"sequence": "gap of few"}),
        ({}, {"base_sequence": 10}, {"sequence": "gap of many"}),
    ],
)
def test_the_trace_of_two_batches(before, offending, changed):
    both = {"producer_id": 1, "producer_epoch": 3, "leader_epoch": 0}
    found = {"class": "lost", "same_timestamps": True, "records": 5, "batches": 6}
    evidence = {
        "previous": {**both, "last_sequence": 3, **before},
        "offending": {**both, "base_sequence": 7, "is_transactional": False, **offending},
        **found,
    }
    finding = Finding(
        "KA104", "sequence-gap", Severity.ERROR, Confidence.CERTAIN, "", evidence=StoredEvidence(evidence)
    )
    alone = {
        "code": "KA104",
        "class": "lost",
        "is_transactional": False,
        "same_timestamps": True,
        "records": "few",
        "batches": "many",
    }
    pair = {"same_leader": True, "epoch": "same", "same_id": True, "sequence": "gap of few"}
    assert trace_of(finding) == {**alone, **pair, **changed}
    for missing in ("previous", "offending"):
        kept = {name: value for name, value in evidence.items() if name != missing}
        transactional = None if missing == "offending" else False
        assert trace_of(msgspec.structs.replace(finding, evidence=StoredEvidence(kept))) == {
            **alone,
            "is_transactional": transactional,
        }


def finding_with(epoch_before, last_sequence, epoch, first_sequence):
    previous = {"producer_id": 1, "producer_epoch": epoch_before, "last_sequence": last_sequence, "leader_epoch": 0}
    offending = {"producer_id": 1, "producer_epoch": epoch, "base_sequence": first_sequence, "leader_epoch": 0}
    evidence = {"previous": previous, "offending": offending}
    return Finding("KA104", "sequence-gap", Severity.ERROR, Confidence.CERTAIN, "", evidence=StoredEvidence(evidence))


def fewest(monkeypatch, faults, needed):
    """The faults that are left of a schedule whose finding needs some of them."""
    monkeypatch.setattr(explain, "with_tables", lambda document, faults: {**document, "faults": faults})
    monkeypatch.setattr(
        explain, "schedule_of", lambda document, name: SimpleNamespace(document=document, scenario=name)
    )
    monkeypatch.setattr(explain, "leaves", lambda schedule, _: {*needed} <= {*schedule.document["faults"]})
    schedule: Any = SimpleNamespace(document={"faults": faults}, scenario=SimpleNamespace(name="history"))
    wanted: Any = None
    return explain._with_fewest_faults(schedule, wanted).document["faults"]


@pytest.mark.parametrize("needed", ["", "b", "bd", "abcd"])
def test_faults_that_a_finding_does_not_need_are_left_out(monkeypatch, needed):
    assert fewest(monkeypatch, list("abcd"), needed) == list(needed)


def test_a_schedule_without_faults_stays_as_it_is(monkeypatch):
    assert fewest(monkeypatch, [], "") == []


def test_a_schedule_that_cannot_be_played_without_a_fault_keeps_it(monkeypatch):
    schedule: Any = SimpleNamespace(document={"faults": ["a", "b"]}, scenario=SimpleNamespace(name="history"))
    wanted: Any = None
    monkeypatch.setattr(explain, "with_tables", lambda document, faults: {**document, "faults": faults})
    monkeypatch.setattr(explain, "schedule_of", lambda *_: None)
    assert explain._with_fewest_faults(schedule, wanted) is schedule
