"""A transaction index that does not list the aborted transactions of its segment."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, none_because
from kaudit.checks.context import Context
from kaudit.checks.sidefiles.about_file import file_finding, side_file_check
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.evidence_parts import AbortedEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.model.side_files import TransactionIndexMismatch, WrongAbortedTxn

_MAX_LISTED = 20
_CAUSES = (
    Explanation("the index was lost or cut: the file system was full, or a copy left it out"),
    Explanation("the index is of another state of the segment: one was restored without the other"),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    missing: Sequence[AbortedEvidence]
    wrong: Sequence[WrongAbortedTxn]
    missing_rows: int
    wrong_rows: int
    torn: str | None


@side_file_check(
    "KA305",
    severity=Severity.ERROR,
    summary="the transaction index does not list the aborted transactions of its segment",
    needs=(TransactionIndexMismatch,),
    incident=none_because(
        "an index of aborted transactions is wrong alone: brokers write it again when they load the log"
    ),
    caused_by=none_because("brokers write and read the index of aborted transactions without logging its rows"),
)
def txnindex_mismatch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each index once, with all that differs."""
    for found in evidence.of(TransactionIndexMismatch):
        position = found.wrong[0].position if found.wrong else None
        if found.torn is not None:
            position = found.torn[0]
        first = found.missing[0] if found.missing else None
        yield file_finding(
            txnindex_mismatch,
            context,
            found.file,
            f"the transaction index does not match the log: {'; '.join(_differences(found))}",
            segment=found.segment,
            position=position,
            offset=None if first is None else first.first_offset,
            last_offset=None if first is None else first.last_offset,
            producer_id=None if first is None else first.producer_id,
            evidence=_Evidence(
                rule="every aborted transaction has a row of producer id, first offset, marker offset and the last stable "
                "offset after it, in the index of the segment its marker lies in (TransactionIndex.append)",
                broker="rebuilds it only when it recovers the segment (unclean stop above the recovery point); a torn row "
                "is skipped. Without its row read_committed consumers get the records of the aborted transaction",
                missing=[
                    AbortedEvidence(row.producer_id, row.first_offset, row.last_offset)
                    for row in found.missing[:_MAX_LISTED]
                ],
                wrong=found.wrong[:_MAX_LISTED],
                missing_rows=len(found.missing),
                wrong_rows=len(found.wrong),
                torn=None if found.torn is None else found.torn[1],
            ),
            explanations=_CAUSES,
        )


def _differences(found: TransactionIndexMismatch) -> Iterator[str]:
    if found.torn is not None:
        yield found.torn[1]
    if found.missing:
        first = found.missing[0]
        yield (
            f"no row for {len(found.missing)} aborted, first that of producer {first.producer_id} "
            f"from offset {first.first_offset} to {first.last_offset}"
        )
    if found.wrong:
        yield f"{len(found.wrong)} wrong, first the row at byte {found.wrong[0].position}: {found.wrong[0].reason}"
