"""KA917: offsets outside the transactions that they belong to (tests/data/exactly-once)."""

import shutil

import numpy as np
import pytest

from kaudit.audits.transactions.outputs import alternate
from tests.checks.groups.recorded import findings
from tests.checks.groups.scanned import scanned
from tests.live_brokers.exactly_once.stage import DATA
from tests.logs import Log, data
from tests.unpacked import extracted


@pytest.mark.parametrize(
    ("name", "commits", "within", "transactional_id"),
    [
        ("offsets-after", 14, 0, "outside"),
        ("offsets-before", 14, 0, "before"),
        ("offsets-automatic", 3, 0, "automatic"),
        ("jump-outside", 1, 3, None),
    ],
    ids=["after", "before", "automatic", "between"],
)
def test_commits_of_the_consumer(name, commits, within, transactional_id):
    (found,) = findings(name, "KA917")
    evidence = found.evidence.to_dict()
    assert (evidence["commits"], evidence["in_transactions"]) == (commits, within)
    assert (evidence["transactional_id"], evidence["topics"]) == (transactional_id, ["inputs"])


@pytest.mark.parametrize("name", ["healthy-loop-4.1", "streams-alos-4.1", "streams-eos-4.1", "zombie-level"])
def test_silent_where_all_offsets_are_in_transactions_or_none_are(name):
    assert findings(name, "KA917") == []


@pytest.mark.parametrize("without", ["inputs-0", "outputs-0", "__transaction_state-0"])
def test_without_turns_the_keys_of_inputs_and_outputs_and_the_name_are_needed(tmp_path, without):
    extracted(DATA / "offsets-automatic.tar.xz", tmp_path)
    assert [finding.code for finding in scanned(tmp_path).findings if finding.code == "KA917"] == ["KA917"]
    shutil.rmtree(tmp_path / without)
    assert [finding.code for finding in scanned(tmp_path).findings if finding.code == "KA917"] == []


def test_without_turns_other_keys_are_no_outputs_of_these_inputs(tmp_path):
    extracted(DATA / "offsets-automatic.tar.xz", tmp_path)
    log = Log()
    for number in range(160):
        log.append(data(-1, -1, -1, payload=b"v", key=b"other %d" % number))
    (tmp_path / "inputs-0" / f"{0:020d}.log").write_bytes(log.encode())
    assert [finding.code for finding in scanned(tmp_path).findings if finding.code == "KA917"] == []


@pytest.mark.parametrize(
    ("commits", "ends", "expected"),
    [
        (range(0, 900, 100), range(50, 950, 100), True),
        (range(0, 900, 100), range(3, 903, 100), True),
        (range(0, 800, 100), [*range(50, 850, 100)], True),
        (range(0, 700, 100), range(50, 750, 100), False),
        (range(0, 900, 100), range(0, 900, 30), False),
        (range(0, 900, 100), [50, 150], False),
        (range(0, 900, 100), [], False),
        ([], range(10), False),
    ],
    ids=["after", "at once", "seven", "six", "others", "few", "none", "no commits"],
)
def test_what_comes_in_turn(commits, ends, expected):
    assert alternate(list(commits), np.array(list(ends), dtype=np.int64)) is expected
