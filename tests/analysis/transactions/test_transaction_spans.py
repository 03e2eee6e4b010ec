"""Transactions of a partition, chunk by chunk."""


def test_cutting_into_chunks_changes_no_transaction(evidence):
    """The spans are fed chunk by chunk: aborts must not depend on where the chunks were cut."""
    import numpy as np

    from kaudit.analysis.scan.producer_grouping import merge
    from kaudit.analysis.scan.rows import MARKER, RUN
    from kaudit.analysis.transactions.transaction_spans import TransactionSpans
    from kaudit.model.columns import Columns

    random = np.random.default_rng(7)
    for _ in range(30):
        events = []
        offset = 0
        for _ in range(60):
            producer, kind = int(random.integers(1, 5)), int(random.integers(0, 3))
            events.append((producer, offset, kind))
            offset += int(random.integers(1, 4))
        results = []
        for pieces in (1, 7):
            spans = TransactionSpans()
            for piece in np.array_split(np.arange(len(events)), pieces):
                chosen = [events[index] for index in piece]
                runs = np.zeros(sum(kind == 2 for *_, kind in chosen), dtype=RUN)
                ends = np.zeros(sum(kind < 2 for *_, kind in chosen), dtype=MARKER)
                data_events = [event for event in chosen if event[2] == 2]
                end_events = [event for event in chosen if event[2] < 2]
                runs["producer_id"], runs["first_offset"] = [e[0] for e in data_events], [e[1] for e in data_events]
                runs["is_transactional"] = True
                ends["producer_id"], ends["offset"] = [e[0] for e in end_events], [e[1] for e in end_events]
                ends["type"], ends["record_count"] = [e[2] for e in end_events], 1
                runs.sort(order=["producer_id", "first_offset"])
                ends.sort(order=["producer_id", "offset"])
                columns = [
                    Columns(rows.dtype, len(rows), {n: rows[n] for n in rows.dtype.names}) for rows in (runs, ends)
                ]
                spans.feed(merge(*columns))
            results.append(
                [
                    (int(row["marker_offset"]), int(row["first_offset"]), int(row["stable_offset"]))
                    for row in spans.ended()
                    if row["type"] == 0
                ]
            )
        assert results[0] == results[1] == naive_aborts(events)


def naive_aborts(events):
    """The same by a diary: open transactions in a dict, one event after the other."""
    opened: dict[int, int] = {}
    found = []
    for producer, offset, kind in events:
        if kind == 2:
            opened.setdefault(producer, offset)
            continue
        first = opened.pop(producer, -1)
        if kind == 0:
            found.append((offset, first, min(opened.values(), default=-1)))
    return found
