"""KA305: the transaction index against the aborted transactions the log itself tells of."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.checks.sidefiles import SideFileFact
from kaudit.formats.sidefiles.transaction_index import AbortedTransaction, TransactionIndex
from kaudit.model.finding import Explanation

_MAX_LISTED = 20
_RULE = (
    "every aborted transaction has a row of producer id, first offset, marker offset and the last stable offset after it, in "
    "the index of the segment its marker lies in (TransactionIndex.append)"
)


class Abort(Struct, frozen=True):
    """An abort marker as the log tells of it.

    `first_offset` is the transaction's first data offset, None for a transaction without data here; `stable_offset` the
    first offset of the oldest other transaction open at the marker, None without one.
    """

    producer_id: int
    first_offset: int | None
    marker_offset: int
    stable_offset: int | None


def check_transaction_index(
    file: str,
    segment: int,
    index: TransactionIndex,
    aborts: Sequence[Abort],
    log_start_offset: int,
    *,
    rows_known: bool,
) -> SideFileFact | None:
    """Compare an index with the aborts whose markers lie in its segment; all that differs is one fact.

    Rows of transactions that began before `log_start_offset` are believed as to where. A row for an abort without data
    is what brokers up to 2.7 write (KAFKA-10702). The last stable offset may name a transaction that begins behind the
    marker: followers append both at once. `rows_known` False: the log is damaged or compacted, only form is checked.
    """
    wrong: list[dict[str, object]] = []
    by_marker = {abort.marker_offset: abort for abort in aborts}
    previous = -1
    seen: set[int] = set()
    for row in index.rows:
        if row.last_offset <= previous:
            wrong.append(_listed(row, f"its marker offset does not rise above {previous}"))
        previous = row.last_offset
        if not rows_known or row.last_offset < log_start_offset:
            continue
        abort = by_marker.get(row.last_offset)
        reason = (
            "no abort marker lies at its last offset" if abort is None else _difference(row, abort, log_start_offset)
        )
        seen.add(row.last_offset)
        if reason:
            wrong.append(_listed(row, reason))
    torn = index.damage[0] if index.damage else None
    missing = [
        abort for abort in aborts if rows_known and abort.first_offset is not None and abort.marker_offset not in seen
    ]
    if not wrong and not missing and torn is None:
        return None
    return _fact(file, segment, wrong, missing, None if torn is None else (torn.position, torn.detail))


def _difference(row: AbortedTransaction, abort: Abort, log_start_offset: int) -> str | None:
    if row.producer_id != abort.producer_id:
        return f"the marker is producer {abort.producer_id}'s"
    empty = row.first_offset == row.last_offset
    expected = abort.marker_offset if abort.first_offset is None else abort.first_offset
    if row.first_offset != expected and not empty and row.first_offset >= log_start_offset:
        return f"the transaction began at {expected}"
    if empty and abort.first_offset is not None:
        return f"the transaction has data from {abort.first_offset} on"
    if abort.stable_offset is None:
        held = row.last_stable_offset > abort.marker_offset or row.last_stable_offset < log_start_offset
    else:
        held = row.last_stable_offset <= abort.stable_offset and (
            row.last_stable_offset == abort.stable_offset or row.last_stable_offset < log_start_offset
        )
    if held:
        return None
    stable = abort.marker_offset + 1 if abort.stable_offset is None else abort.stable_offset
    return f"the last stable offset was {stable}"


def _listed(row: AbortedTransaction, reason: str) -> dict[str, object]:
    return {
        "position": row.position,
        "producer_id": row.producer_id,
        "first_offset": row.first_offset,
        "last_offset": row.last_offset,
        "last_stable_offset": row.last_stable_offset,
        "reason": reason,
    }


def _fact(
    file: str,
    segment: int,
    wrong: Sequence[dict[str, object]],
    missing: Sequence[Abort],
    torn: tuple[int, str] | None,
) -> SideFileFact:
    parts = []
    if torn is not None:
        parts.append(torn[1])
    if missing:
        parts.append(
            f"no row for {len(missing)} aborted, first that of producer {missing[0].producer_id} "
            f"from offset {missing[0].first_offset} to {missing[0].marker_offset}"
        )
    if wrong:
        parts.append(f"{len(wrong)} wrong, first the row at byte {wrong[0]['position']}: {wrong[0]['reason']}")
    position = torn[0] if torn is not None else wrong[0]["position"] if wrong else None
    assert position is None or isinstance(position, int)
    first = missing[0] if missing else None
    return SideFileFact(
        "KA305",
        file,
        f"the transaction index does not match the log: {'; '.join(parts)}",
        _RULE,
        "rebuilds it only when it recovers the segment (unclean stop above the recovery point); a torn row is passed over. "
        "Without its row read_committed consumers are given the records of the aborted transaction",
        segment=segment,
        position=position,
        offset=first.first_offset if first is not None else None,
        last_offset=first.marker_offset if first is not None else None,
        producer_id=first.producer_id if first is not None else None,
        evidence={
            "missing": [
                {
                    "producer_id": abort.producer_id,
                    "first_offset": abort.first_offset,
                    "last_offset": abort.marker_offset,
                }
                for abort in missing[:_MAX_LISTED]
            ],
            "wrong": list(wrong[:_MAX_LISTED]),
            "missing_rows": len(missing),
            "wrong_rows": len(wrong),
            "torn": None if torn is None else torn[1],
        },
        explanations=(
            Explanation("the index was lost or cut: the file system was full, or a copy left it out"),
            Explanation("the index is of another state of the segment: one was restored without the other"),
        ),
    )
