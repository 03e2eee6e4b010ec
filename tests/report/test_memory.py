"""What a report needs in memory beside the result: an item at a time, however many findings there are."""

import tracemalloc

import pytest
from msgspec.structs import replace

from kaudit.report.formats import FORMATS
from kaudit.report.render_options import RenderOptions, Tables
from tests import scan_results


@pytest.mark.parametrize("name", ["json", "jsonl"])
def test_json_is_written_a_finding_at_a_time(name):
    finding = scan_results.old_duplicate()
    result = scan_results.scan_result(*(replace(finding, offset=number) for number in range(2000)))
    pieces = FORMATS[name].render("scan", result, RenderOptions(findings_of_check=None))
    assert not isinstance(pieces, Tables)
    tracemalloc.start()
    written = sum(map(len, pieces))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert written > 4_000_000
    assert peak < written / 2
