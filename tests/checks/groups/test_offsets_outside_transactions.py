"""KA917: offsets outside the transactions that they belong to (tests/data/exactly-once)."""

import numpy as np
import pytest

from kaudit.audits.transactions.outputs import alternate
from tests.checks.groups.recorded import findings


@pytest.mark.parametrize(
    ("name", "commits", "within", "transactional_id"),
    [("offsets-after", 14, 0, "outside"), ("offsets-before", 14, 0, "before"), ("jump-outside", 1, 3, None)],
    ids=["after", "before", "between"],
)
def test_commits_of_the_consumer(name, commits, within, transactional_id):
    (found,) = findings(name, "KA917")
    evidence = found.evidence.to_dict()
    assert (evidence["commits"], evidence["in_transactions"]) == (commits, within)
    assert (evidence["transactional_id"], evidence["topics"]) == (transactional_id, ["inputs"])


@pytest.mark.parametrize("name", ["healthy-loop-4.1", "streams-alos-4.1", "streams-eos-4.1", "zombie-level"])
def test_silent_where_all_offsets_are_in_transactions_or_none_are(name):
    assert findings(name, "KA917") == []


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
