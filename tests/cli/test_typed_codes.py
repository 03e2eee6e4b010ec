"""What a shell offers for what has been typed of a value."""

import pytest

from kaudit.bugs.registry import BUGS
from kaudit.checks.registry import CHECKS
from kaudit.cli.commands.explain import complete_codes_and_bugs
from kaudit.cli.options import complete_codes, complete_formats
from kaudit.report.formats import FORMATS

NAMED = CHECKS["KA101"]


@pytest.mark.parametrize(("typed", "offered"), [
    ("KA101", ["KA101"]),
    ("ka101", ["KA101"]),
    ("KA002,KA101", ["KA002,KA101"]),
    ("KA002,KA999", []),
    (NAMED.name, [name for name in (check.name for check in CHECKS.values()) if name.startswith(NAMED.name)]),
    (NAMED.name.upper(), [name for name in (check.name for check in CHECKS.values()) if name.startswith(NAMED.name)]),
    ("", list(CHECKS)),
    ("KA002,", [f"KA002,{code}" for code in CHECKS]),
    ("k", list(CHECKS)),
])  # fmt: skip
def test_codes_and_names(typed, offered):
    found = complete_codes(typed)
    assert [value for value, _ in found] == offered
    for value, summary in found:
        last = value.rpartition(",")[2]
        assert summary in {check.summary for code, check in CHECKS.items() if last in {code, check.name}}


@pytest.mark.parametrize("ticket", ["KAFKA-7866", "kafka-7866"])
def test_tickets_beside_codes(ticket):
    assert complete_codes_and_bugs(ticket) == [("KAFKA-7866", BUGS["KAFKA-7866"].title)]
    assert {value for value, _ in complete_codes_and_bugs("k")} == {*CHECKS} | {
        name for name in BUGS if name.lower().startswith("k")
    }


def test_output_formats():
    assert complete_formats("j") == [name for name in FORMATS if name.startswith("j")]
    assert "json" in complete_formats("json")
    assert complete_formats("") == list(FORMATS)
