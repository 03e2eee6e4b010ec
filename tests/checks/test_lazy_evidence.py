"""Evidence and commands that are made when they are asked for, and notes that are counted while they come."""

import pickle

from kaudit.checks.notes import fold_notes
from kaudit.checks.observations import ABSENT, LazyCommands, LazyEvidence
from kaudit.model.finding import Confidence, Finding, Severity

PARTS = {
    "double": lambda number: 2 * number,
    "half": lambda number: ABSENT if number % 2 else number // 2,
    "own": lambda number: number,
}


def test_evidence_is_made_of_the_subject():
    even, odd = LazyEvidence(6, PARTS, {"own": "given", "more": None}), LazyEvidence(7, PARTS, {})
    assert dict(even) == {"double": 12, "half": 3, "own": "given", "more": None}
    assert list(even) == ["double", "half", "own", "more"]
    assert dict(odd) == {"double": 14, "own": 7}
    assert ("half" in even, "half" in odd, odd.get("half"), odd.get("other")) == (True, False, None, None)
    assert (len(even), len(odd)) == (4, 2)
    assert repr(odd) == "{'double': 14, 'own': 7}"
    assert pickle.loads(pickle.dumps(LazyEvidence("text", {}, {"more": 1}))) == {"more": 1}


def test_the_last_command_is_made_of_its_arguments():
    asked = []

    def make(*words):
        asked.append(words)
        return " ".join(words)

    commands = LazyCommands(("first", "second"), make, "kaudit", "scan")
    assert (len(commands), asked) == (3, [])
    assert list(commands) == ["first", "second", "kaudit scan"]
    assert (commands[0], commands[-1], commands[1:]) == ("first", "kaudit scan", ("second", "kaudit scan"))
    assert commands == ["first", "second", "kaudit scan"]
    assert commands != ("first", "second")
    assert commands != 3
    assert hash(commands) == hash(("first", "second", "kaudit scan"))
    assert repr(commands) == "('first', 'second', 'kaudit scan')"
    assert pickle.loads(pickle.dumps(LazyCommands((), str.upper, "x"))) == ("X",)


def note(offset, *, code="KA203", producer_id=1, severity=Severity.NOTE, **evidence):
    return Finding(
        code, "a-note", severity, Confidence.CERTAIN, "", producer_id=producer_id, offset=offset, last_offset=offset + 2,
        evidence=evidence,
    )  # fmt: skip


def test_notes_that_say_the_same_are_one_with_a_count():
    folded = fold_notes(
        [
            note(10),
            note(20, **{"class": "restart"}),
            note(30),
            note(35, severity=Severity.WARNING),
            note(40, producer_id=2),
            note(50),
            note(60, code="KA204"),
            note(70, **{"class": "restart"}),
            note(80, severity=Severity.WARNING),
            note(90, count=7),
            note(95, count=7),
        ]
    )
    counted = [(found.offset, found.evidence.get("count")) for found in folded]
    assert counted == [
        (10, 3), (20, 2), (35, None), (40, 1), (60, 1), (80, None), (90, 7), (95, 7)
    ]  # fmt: skip
    assert dict(folded[0].evidence) == {"count": 3, "first_offset": 10, "last_offset": 52}
    assert dict(folded[1].evidence) == {"count": 2, "first_offset": 20, "last_offset": 72, "class": "restart"}
    assert dict(folded[3].evidence) == {"count": 1, "first_offset": 40, "last_offset": 42}
