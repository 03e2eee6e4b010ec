"""The summary of producer ids for people."""

from msgspec.structs import replace

from kaudit.report.console import Console
from kaudit.report.producer_statistics import statistics_lines
from tests import scan_results as results


def with_ids(chosen):
    """Return the listing of scan_results, whose patterns are of three ids, as one of so many ids."""
    result = results.producers_result()
    assert sum(creator["producers"] for creator in result.summary["creators"]) == 3
    return replace(result, summary={**result.summary, "ids": {**result.summary["ids"], "chosen": chosen}})


def test_ids_of_patterns_that_are_not_listed_are_counted():
    assert statistics_lines(with_ids(1203), Console())[-1] == "    1,200  of other patterns"
    assert not [line for line in statistics_lines(with_ids(3), Console()) if "other patterns" in line]
