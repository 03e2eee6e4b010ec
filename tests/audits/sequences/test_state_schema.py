"""A row is declared once: its dtype, its defaults, load and store follow from the NamedTuple."""

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from kaudit.audits.sequences.producer_table import ROW, ProducerTable
from kaudit.broker.producer_state import rules
from kaudit.model.dtypes import default_rows, dtype_of, load, store
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker, Run
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN, ProducerAuditState, RetainedBatch
from kaudit.model.schema import AtMost, Bool, Int16, Int64
from kaudit.reading.rows import BOUNDARY_BATCH, MARKER, RUN

BATCH = BoundaryBatch(7, 9, 3, 5, 3, 0xFFFFFFFF, 1000, 7, 61, 90, 4, 1)


def retained(offset: int) -> RetainedBatch:
    return RetainedBatch(offset, offset, offset + 1, 0xFFFFFFF0 + offset)


EVERY_FIELD_SET: list[Any] = [
    tuple(retained(offset) for offset in range(NUM_BATCHES_TO_RETAIN))
    if name == "window"
    else BATCH
    if name == "last"
    else number
    for number, name in enumerate(ProducerAuditState.__struct_fields__)
]
STATES = [
    ProducerAuditState(),
    ProducerAuditState(epoch=3, last_sequence=2**31 - 1, window=(retained(1),), last=BATCH, flags=127),
    ProducerAuditState(*EVERY_FIELD_SET),
]


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_is_stored_is_loaded_again(state):
    table = ProducerTable()
    slots = table.slots(np.array([5, 8]))
    assert table.load(slots) == [None, None]
    table.store({int(slots[1]): state})
    assert table.load(slots) == [None, state]
    table.store({int(slots[1]): STATES[0]})
    assert table.load(slots) == [None, STATES[0]]


class _NewField(NamedTuple):
    """A state with a field that nothing but this class knows."""

    epoch: Int16 = -1
    window: Annotated[tuple[RetainedBatch, ...], AtMost(2)] = ()
    last: BoundaryBatch | None = None
    new_field: Int64 = 42
    new_flag: Bool = False


def test_a_new_field_needs_no_more_than_its_declaration():
    dtype = dtype_of(_NewField)
    assert dtype.names == ("epoch", "window_count", "window", "has_last", "last", "new_field", "new_flag")
    assert (dtype["new_field"], dtype["new_flag"]) == (np.dtype(np.int64), np.dtype(np.bool_))
    rows = np.repeat(default_rows(_NewField), 2)
    assert load(_NewField, rows)[0] == _NewField()
    changed = _NewField(4, (retained(1), retained(2)), BATCH, 2**40, new_flag=True)
    store(rows, [1], [changed])
    assert load(_NewField, rows)[1] == changed
    assert load(_NewField, rows)[0] == _NewField()
    store(rows, [1], [changed._replace(window=(retained(3),), last=None)])
    assert load(_NewField, rows)[1] == changed._replace(window=(retained(3),), last=None)
    store(rows, [1, 0], [_NewField(new_field=1), changed])
    assert load(_NewField, rows) == [changed, _NewField(new_field=1)]


def test_the_table_has_a_column_for_each_field_of_the_state():
    assert set(ProducerAuditState.__struct_fields__) < set(ROW.names or ())
    assert set(dtype_of(ProducerAuditState).names or ()) < set(ROW.names or ())
    assert load(ProducerAuditState, default_rows(ProducerAuditState)) == [ProducerAuditState()]


@pytest.mark.parametrize(("row", "dtype"), [(BoundaryBatch, BOUNDARY_BATCH), (EndTxnMarker, MARKER), (Run, RUN)])
def test_a_tuple_and_its_dtype_have_the_same_fields(row, dtype):
    assert row._fields == dtype.names


VALUES = [-1, 0, 1, 4, 5, 2**30, 2**31 - 2, 2**31 - 1]
PAIRS = [
    rules.in_sequence,
    rules.sequences_missing,
    rules.explains,
    rules.is_fenced,
    rules.is_new_epoch,
    rules.is_coordinator_fenced,
]
FLAGS = [rules.begins_transaction, rules.is_outside_transaction]


@pytest.mark.parametrize("rule", PAIRS, ids=lambda rule: rule.__name__)
def test_a_rule_of_columns_is_the_rule_of_numbers(rule):
    pairs = [(a, b) for a in VALUES for b in VALUES]
    first, second = np.array(pairs, dtype=np.int32).T
    assert rule(first, second).tolist() == [rule(a, b) for a, b in pairs]


@pytest.mark.parametrize("rule", FLAGS, ids=lambda rule: rule.__name__)
def test_a_rule_of_masks_is_the_rule_of_truth_values(rule):
    both = [(a, b) for a in (False, True) for b in (False, True)]
    first, second = np.array(both).T
    assert rule(first, second).tolist() == [rule(a, b) for a, b in both]


@pytest.mark.parametrize("kind", [-3, -2, 0, 1])
@pytest.mark.parametrize("epoch", [2, 3, 4, 5])
def test_rules_of_markers_are_the_same_for_columns(kind, epoch):
    committed = rules.may_commit(kind)
    mask = rules.may_commit(np.array([kind]))
    for rule in (rules.is_version_2_commit, rules.is_raising_abort):
        assert rule(np.array([epoch]), np.array([3]), mask).tolist() == [rule(epoch, 3, committed)]
    assert rules.is_version_2_commit(epoch, 3, committed) == (kind in (1, -3) and epoch == 4)
    assert rules.is_raising_abort(epoch, 3, committed) == (kind not in (1, -3) and epoch > 3)
