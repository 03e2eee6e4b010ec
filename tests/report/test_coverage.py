"""What a report for people says of what was not checked."""

from kaudit.model.result import NotAudited
from kaudit.report.console import Console
from kaudit.report.coverage import unchecked_sections
from tests import scan_results as results


def lines_of(*not_audited):
    sections = unchecked_sections(results.scan_result(not_audited=list(not_audited)), Console())
    return [line for section in sections for line in section]


def test_replicas_of_a_partition_are_named_once():
    copies = [NotAudited(name, "cut") for name in ("a-0", "b-0", "a-0", "c-0", "d-0")]
    assert lines_of(*copies) == ["Not checked:", "  - a-0 (2 copies), b-0, c-0 and 1 more (json lists all): cut"]


def test_each_reason_is_said_once():
    assert lines_of(NotAudited("a-0", "cut"), NotAudited("b-0", "new"), NotAudited("c-0", "cut")) == [
        "Not checked:",
        "  - a-0, c-0: cut",
        "  - b-0: new",
    ]
