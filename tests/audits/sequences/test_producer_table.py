"""The table of producers as it is saved: the same rows and ids, and it grows."""

import numpy as np

from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.model.producer_state import ProducerAuditState, RetainedBatch

STATE = ProducerAuditState(3, 17, (RetainedBatch(40, 16, 17, 99),))


def test_a_table_that_was_saved_has_its_rows_and_grows():
    table = ProducerTable()
    for ids in ([30, 70], [10, 50]):  # the rows are in order of appearance, which is not that of the ids
        table.slots(np.array(ids))
    table.store({int(table.slots(np.array([50]))[0]): STATE})
    again = ProducerTable.of(table.rows.copy())
    assert again.rows["producer_id"].tolist() == [30, 70, 10, 50]
    assert again.load(np.arange(4)) == [None, None, None, STATE]
    assert again.slots(np.array([10, 20, 30, 50, 70])).tolist() == [2, 4, 0, 3, 1]
    again.store({4: STATE})
    assert again.load(np.arange(5)) == [None, None, None, STATE, STATE]
    assert len(table) == 4


def test_an_empty_table_that_was_saved_takes_producers():
    again = ProducerTable.of(ProducerTable().rows.copy())
    assert again.slots(np.array([5, 6])).tolist() == [0, 1]
