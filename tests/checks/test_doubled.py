"""One loss that lines, bytes and copies show is said once: what gives way to what, at each bound."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.doubled import bounded_by_lines, kept_by_others, shown_lines, without_doubled
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.replicas import PartitionComparison, Relation, ReplicaGap
from kaudit.model.severity import Confidence, Severity

LOGGED, DIVERGED, ONLY_COPY, CUT_OFF, ENDS_EARLY = "KA814", "KA601", "KA603", "KA612", "KA014"
GAP = "KA104"
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def finding(code: str, severity: Severity = ERROR, **fields: Any) -> Finding:
    return Finding(code, "", severity, Confidence.CERTAIN, code, **fields)


def lines(*numbers: int, path: str = "server.log") -> FindingEvidence:
    events = [EventEvidence(path=path, line=number) for number in numbers]
    return FindingEvidence(events=ShownEvents(events, len(events)))


class _CutOff(FindingEvidence, frozen=True, kw_only=True):
    cut_off_by: list[str]


BY_ELECTION, BY_LINES = _CutOff(cut_off_by=[]), _CutOff(cut_off_by=["b1"])


class TestLines:
    def test_the_lines_and_the_producer_of_each_finding_with_the_gravest_severity(self):
        producer = {"topic": "orders", "partition": 3, "producer_id": 7}
        found = [
            finding(GAP, NOTE, evidence=lines(1, 2), **producer),
            finding(GAP, ERROR, evidence=lines(2)),
            finding(GAP, WARNING, evidence=lines(2, 3)),
            finding(GAP, ERROR, **producer),  # without lines
            finding(LOGGED, ERROR, evidence=lines(4), **producer),  # of lines alone
            finding(GAP, NOTE, evidence=lines(5), producer_id=9),  # in no partition
        ]
        assert shown_lines(found) == {
            ("server.log", 1): NOTE,
            ("server.log", 2): ERROR,
            ("orders", 3, 7): NOTE,
            ("server.log", 3): WARNING,
            ("server.log", 5): NOTE,
        }

    @pytest.mark.parametrize(
        ("own", "known", "stays"),
        [
            (finding(LOGGED, ERROR, evidence=lines(1)), ERROR, False),
            (finding(LOGGED, ERROR, evidence=lines(1)), WARNING, True),
            (finding(LOGGED, NOTE, evidence=lines(9, 1)), WARNING, False),
            (finding(LOGGED, NOTE, evidence=lines(9)), ERROR, True),
            (finding(LOGGED, NOTE, evidence=lines(1, path="other.log")), ERROR, True),
            (finding(LOGGED, ERROR), ERROR, True),
            (finding(GAP, NOTE, evidence=lines(1)), ERROR, True),
        ],
    )
    def test_what_lines_alone_say_gives_way_to_what_shows_them_and_is_as_severe(self, own, known, stays):
        assert without_doubled([own], {("server.log", 1): known}) == [own] * stays


def cut_off(
    first: int, last: int | None, most: int | None = 10, evidence: FindingEvidence = BY_LINES, **more
) -> Finding:
    return finding(CUT_OFF, offset=first, last_offset=last, impact=Impact(0, most), evidence=evidence, **more)


def compared(first: int | None, last: int | None, least: int | None, most: int | None, code: str = DIVERGED) -> Finding:
    return finding(code, offset=first, last_offset=last, impact=Impact(least, most))


class TestLosses:
    @pytest.mark.parametrize("code", [DIVERGED, ONLY_COPY])
    @pytest.mark.parametrize(
        ("first", "last", "least", "most", "stays"),
        [
            (10, 19, 5, 5, False),
            (0, 99, 5, 5, False),
            (11, 19, 5, 5, True),
            (10, 18, 5, 5, True),
            (10, 19, 4, 5, True),  # not exactly counted
            (10, 19, None, None, True),
            (None, 19, 5, 5, True),
            (10, None, 5, 5, True),
        ],
    )
    def test_lines_give_way_to_an_exact_count_of_all_their_offsets(self, code, first, last, least, most, stays):
        line, copy = cut_off(10, 19), compared(first, last, least, most, code)
        assert [each.code for each in bounded_by_lines([line, copy])] == [CUT_OFF] * stays + [code]

    @pytest.mark.parametrize("place", [(None, 19), (10, None)])
    def test_lines_without_offsets_do_not(self, place):
        line, copy = replace(cut_off(10, 19), offset=place[0], last_offset=place[1]), compared(0, 99, 5, 5)
        assert len(bounded_by_lines([line, copy])) == 2

    @pytest.mark.parametrize(
        ("evidence", "first", "most", "stays"),
        [
            (BY_ELECTION, 10, 5, False),
            (BY_ELECTION, 11, 5, False),
            (BY_ELECTION, 9, 5, True),
            (BY_ELECTION, 10, None, True),
            (BY_LINES, 10, 5, True),
            (lines(1), 10, 5, True),
        ],
    )
    def test_an_election_alone_gives_way_to_a_bound_from_there_on(self, evidence, first, most, stays):
        line, copy = cut_off(10, 19, None, evidence), compared(first, first, 0, most)
        assert [each.code for each in bounded_by_lines([line, copy])] == [CUT_OFF] * stays + [DIVERGED]

    @pytest.mark.parametrize(
        ("copy", "bound"),
        [
            (compared(10, 19, 3, None), 8),
            (compared(12, None, 3, None), 8),
            (compared(9, 19, 3, None), None),
            (compared(10, 20, 3, None), None),
            (compared(20, None, 3, None), None),
            (compared(None, None, 3, None), None),
            (compared(10, 19, 3, 5), 5),
        ],
    )
    def test_a_comparison_has_the_bound_that_lines_give_for_its_offsets(self, copy, bound):
        line = cut_off(10, 19, 8)
        assert bounded_by_lines([line, copy]) == [line, replace(copy, impact=Impact(3, bound))]
        assert bounded_by_lines([replace(line, impact=Impact(0, None)), copy])[1] == copy

    def test_the_first_lines_that_cover_it_give_the_bound(self):
        copy = compared(10, 19, 3, None)
        found = bounded_by_lines([cut_off(15, 19, 7), cut_off(0, 30, 8), cut_off(0, 40, 9), copy])
        assert found[3].impact.records_lost_at_most == 8

    def test_only_comparisons_of_what_diverged_are_bounded(self):
        copy = compared(10, 19, 3, None, ONLY_COPY)
        assert bounded_by_lines([cut_off(10, 19, 8), copy])[1] == copy

    @pytest.mark.parametrize("code", [DIVERGED, ONLY_COPY])
    def test_what_must_be_left_alone_is_named_where_the_copies_are(self, code):
        caution = Caution(Act.RESTART, "replica b1", "it has them")
        line = cut_off(10, 19)
        line = replace(line, impact=replace(line.impact, cautions=(caution,)))
        copy = finding(code, offset=50, last_offset=60, impact=Impact(1, 2, cautions=(caution,)))
        found = bounded_by_lines([line, copy])
        assert found[0].impact.cautions == (() if code == DIVERGED else (caution,))
        assert found[1] == copy


def comparison(
    relation: Relation = Relation.BEHIND, *, end: int = 100, gap: tuple[int, int, str] | None = None
) -> PartitionComparison:
    gaps = [] if gap is None else [ReplicaGap(gap[0], gap[1], [gap[2]], ["b2"], 0, 0)]
    return PartitionComparison(
        "orders", 0, relation, "b1", {"b2": relation}, [], 80, None, {}, {}, {}, {}, {"b1": end, "b2": 80}, gaps=gaps
    )


class TestEnds:
    """A log of b2 that lacks 80..99, which b1, the reference, may hold."""

    LOST = finding(ENDS_EARLY, replica="b2", offset=80, last_offset=99, impact=Impact(5, 20))
    HELD = Explanation("b1 holds these offsets", innocent=True)

    @pytest.mark.parametrize(
        ("end", "least", "most"),
        [(100, 0, 0), (120, 0, 0), (99, 1, 1), (96, 4, 4), (90, 5, 10), (81, 5, 19), (80, 5, 20), (70, 5, 20)],
    )
    def test_what_the_reference_holds_is_not_lost(self, end, least, most):
        (found,) = kept_by_others([self.LOST], comparison(end=end))
        assert found.impact == Impact(least, most)
        assert list(found.explanations) == ([self.HELD] if end >= 100 else [])

    @pytest.mark.parametrize(("end", "most"), [(100, 0), (90, None)])
    def test_without_a_bound_there_is_none_for_what_is_left(self, end, most):
        lost = replace(self.LOST, impact=Impact(None, None), explanations=[Explanation("first")])
        (found,) = kept_by_others([lost], comparison(end=end))
        assert found.impact == Impact(0, most)
        assert [each.cause for each in found.explanations][:1] == ["first"]

    @pytest.mark.parametrize(
        ("gap", "kept"),
        [
            ((0, 79, "b1"), True),
            ((0, 80, "b1"), False),
            ((99, 99, "b1"), False),
            ((100, 110, "b1"), True),
            ((85, 90, "b3"), True),
        ],
    )
    def test_unless_it_lacks_some_of_them(self, gap, kept):
        (found,) = kept_by_others([self.LOST], comparison(gap=gap))
        assert (found.impact.records_lost_at_most == 0) is kept

    @pytest.mark.parametrize(
        ("lost", "others"),
        [
            (replace(LOST, code=GAP), comparison()),
            (replace(LOST, offset=None), comparison()),
            (replace(LOST, last_offset=None), comparison()),
            (replace(LOST, replica="b3"), comparison()),
            (replace(LOST, replica=None), comparison()),
            (LOST, comparison(Relation.DIVERGED)),
            (LOST, replace(comparison(), reference=None)),
        ],
    )
    def test_other_findings_stay_as_they_are(self, lost, others):
        assert kept_by_others([lost], others) == [lost]

    def test_a_checkpoint_beyond_the_end_is_one_of_them(self):
        (found,) = kept_by_others([replace(self.LOST, code="KA505")], comparison())
        assert found.impact == Impact(0, 0)
