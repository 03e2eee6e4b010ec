"""What a finding cost, as people read it."""

import json

import pytest

from kaudit.model.impact import Impact
from kaudit.report.render_options import RenderOptions
from kaudit.results.costs import impact_text
from tests import scan_results as results
from tests.rendered import scan_text

MORNING = results.MORNING


@pytest.mark.parametrize(
    ("impact", "text"),
    [
        (Impact(), ""),
        (Impact(records_lost_at_least=0, records_lost_at_most=0, records_duplicated=0, offsets_invisible=0), ""),
        (Impact(records_lost_at_least=1, records_lost_at_most=1), "1 record lost"),
        (Impact(records_lost_at_least=0, records_lost_at_most=1157), "at most 1,157 records lost"),
        (Impact(records_lost_at_least=3, records_lost_at_most=5), "at least 3, at most 5 records lost"),
        (Impact(records_lost_at_least=3), "at least 3 records lost"),
        (Impact(records_lost_at_most=5), "at most 5 records lost"),
        (Impact(records_lost_at_least=0), "records may be lost: how many is not known"),
        (Impact(records_duplicated=1, records_duplicated_at_most=1), "1 record was written twice"),
        (Impact(records_duplicated=1), "at least 1 record was written twice"),
        (Impact(records_duplicated=7), "at least 7 records were written twice"),
        (Impact(records_duplicated=0, records_duplicated_at_most=1), "at most 1 record was written twice"),
        (
            Impact(records_duplicated=3, records_duplicated_at_most=9),
            "at least 3, at most 9 records were written twice",
        ),
        (Impact(records_duplicated=0), ""),
        (Impact(bytes_truncated=16297), "a broker that recovers this log cuts off 16,297 bytes"),
        (
            Impact(offsets_invisible=213, last_stable_offset=2, invisible_since_timestamp=MORNING),
            (
                "read_committed consumers cannot see 213 offsets since 2023-11-14 22:13:20 UTC: the last stable offset stays "
                "at 2"
            ),
        ),
        (
            Impact(offsets_invisible=1, last_stable_offset=2, invisible_since_timestamp=-1),
            "read_committed consumers cannot see 1 offset: the last stable offset stays at 2",
        ),
        (Impact(offsets_invisible=9), "read_committed consumers cannot see 9 offsets"),
        (
            Impact(records_lost_at_most=5, bytes_truncated=7),
            "at most 5 records lost; a broker that recovers this log cuts off 7 bytes",
        ),
    ],
)
def test_the_line(impact, text):
    assert impact_text(impact) == text


@pytest.mark.parametrize("name", ["table", "junit", "github", "gitlab", "sarif", "markdown"])
def test_every_format_for_people_says_it(name):
    assert "5 records were written twice" in scan_text(name, results.many(), RenderOptions())


def test_programs_get_it_as_numbers():
    text = scan_text("sarif", results.many(), RenderOptions())
    found = {result["ruleId"]: result["properties"].get("impact") for result in json.loads(text)["runs"][0]["results"]}
    assert found["KA102"] == {"records_duplicated": 5, "records_duplicated_at_most": 5}
    assert found["KA106"] is None
