"""Baselines: what is new, known, stale, out of sight; and a file that people may write into."""

import json
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit import __version__
from kaudit.errors import UsageError
from kaudit.model.severity import Status
from kaudit.policy.baseline import Baseline, Entry, parse_baseline
from kaudit.policy.comparison import Scope, compare
from kaudit.scanning.options import Depth, ScanOptions
from tests import scan_results as results

TODAY = date(2026, 11, 21)
ALL = Scope(lambda code: True, ScanOptions(["/data"]))


def baseline_of(*findings, **more):
    return Baseline([replace(Entry.of(finding), **more) for finding in findings])


def compared(result, baseline, scope=ALL):
    return compare(result, baseline, "base.json", scope, TODAY)


def fates(comparison):
    return {name: len(getattr(comparison, name)) for name in ("stale", "out_of_scope", "expired")}


def test_known_findings_are_marked_with_their_reason_and_no_longer_the_worst():
    known = baseline_of(results.old_duplicate(), reason="ticket 7")
    result = compared(results.scan_result(results.old_duplicate(), results.unknown_start()), known)
    assert [(f.code, f.status, f.suppression) for f in result.findings] == [
        ("KA106", Status.NEW, None),
        ("KA102", Status.KNOWN, "in the baseline: ticket 7"),
    ]
    assert result.worst().value == "warning"
    assert result.baseline.known == 1
    assert fates(result.baseline) == {"stale": 0, "out_of_scope": 0, "expired": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"replica": "2", "log_dir": "/elsewhere"},
        {"file": "orders-3/00000000000000000400.log", "segment": "orders-3/00000000000000000400.log", "position": 0},
        {"message": "put in other words"},
        {"evidence": {}, "explanations": (), "next": ()},
    ],
    ids=["another replica", "after a roll", "another message", "less evidence"],
)
def test_a_finding_stays_the_same_one(changes):
    result = compared(results.scan_result(results.old_duplicate(**changes)), baseline_of(results.old_duplicate()))
    assert result.findings[0].status is Status.KNOWN


@pytest.mark.parametrize("changes", [{"topic": "o"}, {"partition": 4}, {"offset": 513}, {"producer_epoch": 1}])
def test_another_finding_is_new(changes):
    result = compared(results.scan_result(results.old_duplicate(**changes)), baseline_of(results.old_duplicate()))
    assert result.findings[0].status is Status.NEW


def test_what_is_seen_no_more_is_stale():
    result = compared(results.scan_result(), baseline_of(results.old_duplicate()))
    assert [entry.code for entry in result.baseline.stale] == ["KA102"]


PART = results.scan_result().partitions[0]


@pytest.mark.parametrize(
    ("changes", "scope"),
    [
        ({"partitions": []}, ALL),
        ({"partitions": [replace(PART, partition=4)]}, ALL),
        ({"partitions": [replace(PART, log_start_offset=513)]}, ALL),
        ({"incomplete": True}, ALL),
        ({"summary": replace(results.scan_result().summary, omitted=1)}, ALL),
        ({}, Scope(lambda code: code != "KA102", ScanOptions(["/data"]))),
        ({}, Scope(lambda code: True, ScanOptions(["/data"], producer_ids=[7]))),
        ({}, Scope(lambda code: True, ScanOptions(["/data"], since_ms=1))),
        ({}, Scope(lambda code: True, ScanOptions(["/data"], until_ms=1))),
    ],
    ids=[
        "nothing read", "another partition", "retention passed", "incomplete", "limited", "not selected",
        "another producer", "since", "until",
    ],
)  # fmt: skip
def test_what_could_not_be_seen_is_not_called_stale(changes, scope):
    result = compared(results.scan_result(**changes), baseline_of(results.old_duplicate()), scope)
    assert fates(result.baseline) == {"stale": 0, "out_of_scope": 1, "expired": 0}


def test_one_replica_that_still_has_the_offset_is_enough_to_see():
    parts = [replace(PART, log_start_offset=513), replace(PART, replica="2", log_start_offset=512)]
    result = compared(results.scan_result(partitions=parts), baseline_of(results.old_duplicate()))
    assert fates(result.baseline)["stale"] == 1


def test_headers_alone_prove_nothing_about_a_crc():
    scope = Scope(lambda code: True, ScanOptions(["/data"], depth=Depth.HEADERS))
    result = compared(results.scan_result(), baseline_of(results.crc_mismatch(), results.old_duplicate()), scope)
    assert [entry.code for entry in result.baseline.out_of_scope] == ["KA001"]


@pytest.mark.parametrize(("last_day", "status"), [("2026-11-21", Status.KNOWN), ("2026-11-20", Status.NEW)])
def test_an_entry_holds_to_the_end_of_its_last_day(last_day, status):
    known = baseline_of(results.old_duplicate(), expires=date.fromisoformat(last_day))
    result = compared(results.scan_result(results.old_duplicate()), known)
    assert result.findings[0].status is status
    assert len(result.baseline.expired) == (status is Status.NEW)


def test_the_file_is_sorted_and_read_back():
    many = results.many().findings
    text = baseline_of(*reversed(many), reason="why", expires=TODAY).to_text()
    entries = json.loads(text)["entries"]
    assert [entry["fingerprint"] for entry in entries] == [finding.fingerprint for finding in many]
    assert parse_baseline(text, "f").to_text() == text
    assert text == baseline_of(*many, reason="why", expires=TODAY).to_text()


def test_fields_of_others_are_kept_in_the_file_and_in_entries():
    document = json.loads(baseline_of(results.old_duplicate()).to_text())
    document["owner"] = "payments"
    document["entries"][0]["ticket"] = {"id": 7}
    read = parse_baseline(json.dumps(document), "f").adding(
        [results.old_duplicate(), results.crc_mismatch()], reason="new ones", expires=None
    )
    written = json.loads(read.to_text())
    assert written["owner"] == "payments"
    old, new = sorted(written["entries"], key=lambda entry: entry["offset"])
    assert (old["ticket"], "reason" in old) == ({"id": 7}, False)
    assert new["reason"] == "new ones"


def test_a_review_shows_a_finding_at_a_time_in_order_of_place():
    entries = [
        Entry("ff", "KA402", "no place"),
        Entry("dd", "KA101", "a partition", topic="a", partition=0),
        Entry("ee", "KA101", "an offset", topic="a", partition=0, offset=-1),
        Entry("bb", "KA101", "another offset", topic="a", partition=0, offset=9, producer_id=7),
        Entry("aa", "KA101", "offsets are numbers", topic="a", partition=0, offset=10),
        Entry("cc", "KA101", "so are partitions", topic="a", partition=10, offset=0),
        Entry("a0", "KA101", "another topic", topic="b", partition=0, offset=0),
    ]
    text = Baseline([entries[place] for place in (3, 6, 0, 5, 2, 4, 1)]).to_text()
    assert [entry["fingerprint"] for entry in json.loads(text)["entries"]] == [entry.fingerprint for entry in entries]
    alone = Baseline(entries[:1], {"schema": "old", "zebra": 1, "entries": "old", "owner": "me"}).to_text()
    assert (
        alone
        == f"""{{
  "entries": [
    {{
      "code": "KA402",
      "fingerprint": "ff",
      "summary": "no place"
    }}
  ],
  "owner": "me",
  "schema": "kaudit.baseline/1",
  "tool": {{
    "name": "kaudit",
    "version": "{__version__}"
  }},
  "zebra": 1
}}
"""
    )
    assert parse_baseline(alone.replace('"ff",', '"ff", "reason": null,'), "f").to_text() == alone


@pytest.mark.parametrize(
    ("changes", "summary"),
    [
        ({}, "orders-3 @ 512: sequence: said"),
        ({"offset": None}, "orders-3: sequence: said"),
        ({"topic": None, "partition": None, "offset": None}, "sequence: said"),
    ],
)
def test_an_entry_says_where_its_finding_was(changes, summary):
    finding = results.old_duplicate(name="sequence", message="said", **changes)
    assert Entry.of(finding).summary == summary


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "not a kaudit.baseline/1 document"),
        ('{"schema": "kaudit.baseline/2", "entries": []}', "not a kaudit.baseline/1"),
        ('{"schema": "kaudit.baseline/1"}', "'entries' is not a list"),
        ('{"schema": "kaudit.baseline/1", "entries": [7]}', "entry 1: is not an object"),
        ('{"schema": "kaudit.baseline/1", "entries": [{"code": "KA102"}]}', "entry 1: 'fingerprint' is not a string"),
        ("%reason%", "entry 1: 'reason' is not a string"),
        ("%partition%", "entry 1: 'partition' is not a number"),
        ("%expires%", "entry 1: 'expires': soon is not a date"),
    ],
)
def test_mistakes_in_the_file_are_reported_with_their_place(text, message):
    if text.startswith("%"):
        name = text.strip("%")
        entry: dict[str, Any] = {
            "fingerprint": "f",
            "code": "KA102",
            "summary": "s",
            name: {"expires": "soon"}.get(name, []),
        }
        text = json.dumps({"schema": "kaudit.baseline/1", "entries": [entry]})
    with pytest.raises(UsageError, match=r"baseline known\.json: ") as error:
        parse_baseline(text, "known.json")
    assert message in str(error.value)
