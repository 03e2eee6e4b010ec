"""Evidence, findings and the registry, on which all checks rest."""

import pytest
from msgspec.structs import replace

from kaudit.checks.check import Evidence, check, none_because, observers
from kaudit.checks.listed import nearest, parse_documentation
from kaudit.checks.log.missing_offsets import offset_gap
from kaudit.checks.registry import run_checks
from kaudit.checks.sequences.sequence_gap import sequence_gap
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.evidence import StoredEvidence
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.sequence import SequenceRange
from kaudit.model.severity import Confidence, Severity
from kaudit.source.layout import FetchedRange
from tests.checks.facts import CONTEXT, batch, gap


def test_evidence_goes_by_type_and_kind():
    first = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 0)
    second = gap(2, batch(0, 0, 5, 0), batch(30, 9, 1, 10), 4, 0, kind=ObservationKind.INSIDE)
    explained = gap(3, batch(0, 0, 5, 0), batch(40, 9, 1, 10), 4, 4)
    evidence = Evidence([second, 7], [first, "text"], [explained])
    assert (evidence.of(int), evidence.of(str), evidence.of(float)) == ([7], ["text"], ())
    assert evidence.of(Observation) == [second, first, explained]
    assert evidence.observed(ObservationKind.GAP, ObservationKind.INSIDE) == [first, second]
    assert evidence.observed(ObservationKind.OVERLAP) == []
    assert evidence.explained == [explained]
    assert evidence.kinds == {"int", "str", "Observation"}


def test_what_is_missing_and_what_came_again():
    missing = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 0)
    explained = gap(1, batch(20, 9, 1, 10), batch(40, 15, 1, 20), 5, 5)
    behind = replace(missing, missing_sequences=-3)
    assert Evidence([missing, explained]).missing_sequences.count(SequenceRange(1, 1, 0, 40)) == 4
    assert Evidence([behind]).missing_sequences.count(SequenceRange(1, 1, 0, 40)) == 0
    repeated = [
        gap(1, batch(0, 0, 5, 0), batch(20, 2, 3, 10), 0, 0, kind=kind)
        for kind in (ObservationKind.INSIDE, ObservationKind.GAP)
    ]
    for each, number in zip(repeated, (3, 0), strict=True):
        assert Evidence([each]).repeated_sequences.count(SequenceRange(1, 1, 0, 40)) == number


def test_explained_observations_across_offsets():
    known, unknown = (
        gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 4),
        gap(2, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 4),
    )
    unknown = replace(unknown, remembered=None)
    evidence = Evidence([known, unknown])
    assert evidence.explained_across(5, 19) == [known, unknown]
    assert evidence.explained_across(4, 19) == [unknown]  # offset 4 is the last of its batch before
    assert evidence.explained_across(5, 20) == []
    assert evidence.explained_across(0, 19) == [unknown]


@check(
    "KA998",
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    summary="a test's",
    needs=(str,),
    incident=none_because("a test's"),
    caused_by=none_because("a test's"),
    simulated=none_because("a test's"),
)
def test_check(context, evidence):
    """Named as this module, as a check has to be."""
    for text in evidence.of(str):
        yield made.finding(context, text)


made = test_check
del test_check  # pytest would take it for a test


def test_a_finding_has_its_checks_severity_and_its_contexts_place():
    (found,) = made.run(CONTEXT, Evidence(["x"]))
    assert (found.code, found.name, found.message) == ("KA998", "test-check", "x")
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert (found.topic, found.partition, found.log_dir, found.segment, found.file) == (
        "orders",
        0,
        "/logs",
        None,
        None,
    )
    other = made.finding(
        CONTEXT, "y", segment=0, severity=Severity.NOTE, confidence=Confidence.POSSIBLE, following=("do",)
    )
    assert (other.severity, other.confidence, list(other.next)) == (Severity.NOTE, Confidence.POSSIBLE, ["do"])
    assert (other.segment, other.file) == (CONTEXT.segments[0], f"orders-0/{CONTEXT.segments[0]}")
    assert made.finding(CONTEXT, "z", segment=1, file="other").file == "other"
    assert (made.family, made.since, made.package) == ("KA9", "0.1.0", "tests.checks")


def test_batches_that_brokers_sent_lie_in_no_file():
    fetched = FetchedRange("h:9092", "orders", 0, 0, 0, 100)
    here = replace(CONTEXT, fetched=fetched)
    evidence = StoredEvidence({
        "position": 1, "segment": 2, "file": 3, "end_position": 4, "offset": 5, "previous": {"position": 6, "offset": 7},
        "several": [{"file": 8, "offset": 9}, (10, {"segment": 11})],
    })  # fmt: skip
    found = made.finding(here, "x", segment=1, position=70, evidence=evidence, absent={"offset": "none", "file": "x"})
    assert (found.file, found.segment, found.position) == (None, None, None)
    assert found.evidence.to_dict() == {"offset": 5, "previous": {"offset": 7}, "several": [{"offset": 9}, [10, {}]]}
    assert set(found.absent) == {"offset", "file", "segment", "position"}
    assert found.absent["offset"] == "none"
    assert "no positions" in found.absent["file"]
    missing = MissingOffsets(85, 89, MissingCause.UNKNOWN, 1, 70)
    (finding,) = offset_gap.run(here, Evidence([missing]))
    assert finding.message == "offsets 85..89 missing: the next batch starts 5 offsets too high"


def test_who_reports_a_kind_of_observation():
    found = observers(sequence_gap, made)
    assert found == {ObservationKind.GAP: sequence_gap}


def test_the_sections_of_a_page():
    text = "# title\nlost\n## One \n\na\n b\n\n## Two\n### c\n## One\nd\n"
    assert parse_documentation(text) == {"One": "a\n b\n\nd", "Two": "### c"}


def test_checks_run_in_the_order_of_their_codes_where_there_is_evidence():
    missing = MissingOffsets(5, 8, MissingCause.UNKNOWN, 0, 70)
    lacking = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 0)
    found = run_checks(CONTEXT, Evidence([lacking, missing]))
    assert [each.code for each in found] == ["KA007", "KA104"]
    assert run_checks(CONTEXT, Evidence()) == []


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("KA60", "; did you mean KA60"),
        ("sequence-gab", "; did you mean sequence-gap"),
        ("zzzzzzzzzzzzzzz", " ('kaudit checks' lists them)"),
    ],
)
def test_names_that_are_near(typed, text):
    assert nearest(typed).startswith(text)
    assert nearest(typed).endswith("('kaudit checks' lists them)")
