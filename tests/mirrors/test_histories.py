"""Ledgers of random histories beside what became of each record."""

import pytest

from tests.mirrors.compared import wrong
from tests.mirrors.histories import History

SEEDS = 40


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_ledger_equals_the_truth(seed, tmp_path):
    history = History(seed)
    assert wrong(history, *history.write(tmp_path)) == []
