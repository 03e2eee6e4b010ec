"""KA403: a value of the znode that is not a block of producer ids."""

import json

import pytest

from kaudit.checks.producer_ids.blocks import block_malformed
from tests.checks.findings import recorded_findings
from tests.logs import Log, data


@pytest.mark.parametrize(("value", "expected"), [("garbage", [("warning", None, None, None)]), (None, [])])
def test_a_value_that_is_not_json_is_named(tmp_path, value, expected):
    log = Log()
    log.append(data(5, 0, 0))
    lines = [json.dumps({"version": 1, "broker": 1, "block_start": "0", "block_end": "999"})]
    if value is not None:
        lines.append(json.dumps({"data": value, "version": 9, "mzxid": 77}))
    blocks = tmp_path / "blocks"
    blocks.write_text("\n".join(lines) + "\n")
    assert recorded_findings(block_malformed, str(log.write(tmp_path / "t-0")), blocks=str(blocks)) == expected
