"""Notes that say the same are one."""

from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.findings import fold_notes


def note(offset, *, code="KA203", producer_id=1, severity=Severity.NOTE, **evidence):
    return Finding(
        code, "a-note", severity, Confidence.CERTAIN, "", producer_id=producer_id, offset=offset, last_offset=offset + 2,
        evidence=StoredEvidence(evidence),
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
