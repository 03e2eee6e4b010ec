"""Which rows are kept for what: of the producer ids that were chosen, of all, or of none."""

from typing import Any

import pytest

from kaudit.engines.kept_rows import ACTIVITY, HISTORIES, runs_of


@pytest.mark.parametrize(("producer_ids", "kept"), [([], None), ([7], {7}), ([7, 9, 7], {7, 9}), ([0], {0})])
def test_a_timeline_of_no_producer_ids_is_one_of_all(producer_ids, kept):
    rows: Any = runs_of(producer_ids)
    sink = rows.make_sink()
    assert sink.producer_ids == kept
    assert (rows.kind, rows.every_id) == (type(sink), False)
    assert rows.seal(None, sink) is sink
    assert rows.make_sink() is not sink


def test_a_list_of_producer_ids_needs_no_runs_and_tables_need_all():
    activity: Any = ACTIVITY.make_sink()
    histories: Any = HISTORIES.make_sink()
    assert (activity.rows.producer_ids, histories.rows.producer_ids) == (frozenset(), None)
    assert (ACTIVITY.every_id, HISTORIES.every_id) == (True, False)
