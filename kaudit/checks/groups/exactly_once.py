"""Inputs of transactions that were processed twice or never, and offsets that groups commit outside their transactions."""

import functools
from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Withdrawal
from kaudit.checks.context import Context
from kaudit.checks.groups.committed_offsets import NO_FILE, group_check
from kaudit.checks.texts import counted, listed, time_text
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.exactly_once import (
    CommitsOutside,
    EndOfTransaction,
    InputRange,
    OutputRange,
    OutputsAlone,
    ProcessedTwice,
    Skipped,
)
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.severity import Confidence, Severity

_SHOWN = 20
_eos_check = functools.partial(group_check, withdrawn_by=Withdrawal.NEXT_READING, transactional=True)


class _TwiceEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    group_id: str
    inputs: InputRange
    committed_offset: int
    first_transaction: EndOfTransaction
    second_transaction: EndOfTransaction
    second_transactions: int
    shown_by: str
    outputs: Sequence[OutputRange] | None
    last_timestamp: int


@_eos_check(
    "KA915",
    severity=Severity.ERROR,
    severity_note="warning where the producer itself went back, perhaps on purpose",
    summary="inputs of a group were processed in two committed transactions",
    needs=(ProcessedTwice,),
)
def inputs_processed_twice(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of inputs with the transactions that have it."""
    for found in evidence.of(ProcessedTwice):
        inputs, itself = found.inputs, found.before.producer_id == found.again.producer_id
        again = f"{found.again.who} at {time_text(found.again.ended_ms)}"
        shown = (
            "the outputs of both are the same"
            if found.compared
            else f"the group had committed {found.committed}"
            + (", and its producer went back" if itself else ", and the other producer committed less")
        )
        written = sum(each.records for each in found.outputs or ())
        places = (
            listed([f"{each.topic}-{each.partition}" for each in (found.outputs or ())[:3]]) if found.outputs else ""
        )
        doubled = (
            f"; {counted(written, 'output')} of the second {'is' if written == 1 else 'are'} in {places}"
            if written
            else ""
        )
        count = inputs.end - inputs.first if inputs.first is not None else None
        yield inputs_processed_twice.finding(
            context,
            f"inputs {inputs.text} of {inputs.place} were processed twice by group {inputs.group}, in committed transactions of "
            f"{found.before.who} and {again}: {shown}{doubled}",
            severity=Severity.WARNING if itself else Severity.ERROR,
            confidence=Confidence.LIKELY if found.compared else Confidence.CERTAIN,
            offset=found.again.marker_offset,
            last_offset=found.last.marker_offset,
            producer_id=found.again.producer_id,
            producer_epoch=found.again.producer_epoch,
            anchor=f"{inputs.group}|{inputs.place}|{inputs.end}|{found.again.marker_offset}",
            evidence=_TwiceEvidence(
                rule="each input counts in one committed transaction: the group's next one begins where the last one ended "
                "(KIP-98, KIP-447)",
                broker="fences a producer by the generation of its group only where it names its member and generation "
                "(TxnOffsetCommit, KIP-447), and stores any offset",
                group_id=inputs.group,
                inputs=inputs,
                committed_offset=found.committed,
                first_transaction=found.before,
                second_transaction=found.again,
                second_transactions=found.transactions,
                shown_by="outputs" if found.compared else "offsets",
                outputs=found.outputs,
                last_timestamp=found.last.ended_ms,
            ),
            impact=Impact(records_delivered_again_at_most=count),
            explanations=_BY_ITSELF if itself else _BY_TWO,
            following=(
                context.transactions_command(inputs.group),
                *(
                    ()
                    if itself
                    else (
                        "pass consumer.groupMetadata() to sendOffsetsToTransaction, so that replaced members are fenced",
                    )
                ),
            ),
            absent=NO_FILE,
        )


_BY_TWO = (
    Explanation(
        "a replaced instance went on: sendOffsetsToTransaction was given the group's name alone, and each instance has a "
        "transactional id of its own, so that neither generation nor epoch fences it"
    ),
    Explanation("two applications read as one group, and assign themselves the same partitions"),
)
_BY_ITSELF = (
    Explanation("the application sought back without resetting the group, and processed again", innocent=True),
    Explanation("after an abort or a restart it went on from a position of its own, below what was committed"),
    Explanation("its position was out of the log's range, and auto.offset.reset took it back: see KA902"),
)


class _SkippedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    group_id: str
    inputs: InputRange
    aborted: EndOfTransaction | None
    passed_by: EndOfTransaction | None
    outputs: Sequence[OutputRange] | None
    last_timestamp: int


@_eos_check(
    "KA916",
    severity=Severity.ERROR,
    severity_note="warning where a commit outside any transaction went past them: they may have been processed otherwise",
    summary="inputs that no committed transaction of the group has",
    needs=(Skipped,),
)
def inputs_skipped(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of inputs, with what went past it."""
    for found in evidence.of(Skipped):
        inputs = found.inputs
        assert inputs.first is not None
        by = found.passed_by
        if by is not None and found.aborted is not None:
            how = (
                f"{found.aborted.who} aborted them at {time_text(found.aborted.ended_ms)}, and {by.who} committed {inputs.end} and more "
                "without them: nothing that was aborted is among its outputs"
            )
        else:
            how = f"an offset was committed past them outside any transaction, at {time_text(found.at_ms)}"
        yield inputs_skipped.finding(
            context,
            f"inputs {inputs.text} of {inputs.place} are in no committed transaction of group {inputs.group}: {how}",
            severity=Severity.WARNING if by is None else Severity.ERROR,
            confidence=Confidence.LIKELY,
            offset=found.offset,
            last_offset=found.offset,
            producer_id=None if by is None else by.producer_id,
            producer_epoch=None if by is None else by.producer_epoch,
            anchor=f"{inputs.group}|{inputs.place}|{inputs.first}",
            evidence=_SkippedEvidence(
                rule="each input counts in one committed transaction; after an abort the inputs are read again "
                "(KafkaProducer.abortTransaction, KIP-98)",
                broker="stores the offset that it is sent, and does not know what was processed",
                group_id=inputs.group,
                inputs=inputs,
                aborted=found.aborted,
                passed_by=by,
                outputs=found.outputs,
                last_timestamp=found.at_ms,
            ),
            impact=Impact(records_skipped_at_most=inputs.end - inputs.first),
            explanations=_OUTSIDE_CAUSES if by is None else _ABORTED_CAUSES,
            following=(context.transactions_command(inputs.group),),
            absent={
                **NO_FILE,
                **(
                    {"producer_id": "no producer committed it", "producer_epoch": "as the producer id"}
                    if by is None
                    else {}
                ),
            },
        )


_ABORTED_CAUSES = (
    Explanation(
        "after abortTransaction the application did not seek back to what the group had committed: its consumer went on"
    ),
    Explanation("the application leaves out inputs that fail, with all others of their transaction", innocent=True),
)
_OUTSIDE_CAUSES = (
    Explanation("the application commits by its consumer what it leaves out, or has enable.auto.commit", innocent=True),
    Explanation("it processed them in a transaction without its offsets: then they are there, and may be doubled"),
)


class _OutsideEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    group_id: str
    topics: Sequence[str]
    commits: int
    in_transactions: int
    transactional_id: str | None
    first_timestamp: int
    last_timestamp: int


@_eos_check(
    "KA917",
    severity=Severity.WARNING,
    summary="a group whose outputs are transactional commits offsets outside its transactions",
    needs=(CommitsOutside,),
)
def offsets_outside_transactions(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group once."""
    for found in evidence.of(CommitsOutside):
        if found.transactional_id is None:
            how = (
                f"{counted(found.commits, 'commit')} between {counted(found.in_transactions, 'commit')} in transactions"
            )
        else:
            how = f"{counted(found.commits, 'commit')} beside the transactions of {found.transactional_id!r}, which have none"
        yield offsets_outside_transactions.finding(
            context,
            f"group {found.group} commits offsets of {listed(list(found.topics[:3]))} outside any transaction: {how}",
            confidence=Confidence.CERTAIN if found.transactional_id is None else Confidence.LIKELY,
            offset=found.first_offset,
            last_offset=found.last_offset,
            producer_id=found.producer_id,
            anchor=f"{found.group}|outside",
            evidence=_OutsideEvidence(
                rule="offsets and outputs are committed together by sendOffsetsToTransaction; commits of the consumer are not part "
                "of the transaction (KIP-98)",
                broker="commits the offsets at once, whatever becomes of the transaction",
                group_id=found.group,
                topics=list(found.topics[:_SHOWN]),
                commits=found.commits,
                in_transactions=found.in_transactions,
                transactional_id=found.transactional_id,
                first_timestamp=found.first_ms,
                last_timestamp=found.last_ms,
            ),
            explanations=(
                Explanation(
                    "the application calls commitSync or commitAsync, or has enable.auto.commit, beside its transactions"
                ),
                Explanation("the program stores its position elsewhere: this is for monitoring", innocent=True),
            ),
            following=("commit by sendOffsetsToTransaction alone, and set enable.auto.commit=false",),
            absent={
                **NO_FILE,
                **({} if found.producer_id is not None else {"producer_id": "about the group's consumers"}),
                "producer_epoch": "about all of them",
            },
        )


class _AloneEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    group_id: str
    transactions: int
    in_transactions: int
    first_transaction: EndOfTransaction
    last_transaction: EndOfTransaction
    outputs: Sequence[OutputRange]
    written_again_by: EndOfTransaction | None
    written_again: int
    first_timestamp: int
    last_timestamp: int


@_eos_check(
    "KA918",
    severity=Severity.ERROR,
    severity_note="warning where no later transaction is known that wrote the same again",
    summary="a producer that commits a group's inputs committed outputs without any",
    needs=(OutputsAlone,),
)
def outputs_without_inputs(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each producer once."""
    for found in evidence.of(OutputsAlone):
        written = sum(each.records for each in found.outputs)
        again = (
            ""
            if found.again is None
            else f"; {found.again.who} wrote {found.written_again:,} of them again at {time_text(found.again.ended_ms)}, with the inputs"
        )
        yield outputs_without_inputs.finding(
            context,
            f"{counted(found.transactions, 'committed transaction')} of {found.first.who} wrote {counted(written, 'record')} and "
            f"{'commits' if found.transactions == 1 else 'commit'} no inputs of group {found.group}, as {found.in_transactions:,} others do{again}",
            severity=Severity.WARNING if found.again is None else Severity.ERROR,
            confidence=Confidence.LIKELY,
            producer_id=found.first.producer_id,
            producer_epoch=found.first.producer_epoch,
            anchor=f"{found.group}|alone|{found.first.producer_id}|{found.first.marker_offset}",
            evidence=_AloneEvidence(
                rule="offsets and outputs are committed together by sendOffsetsToTransaction (KIP-98)",
                broker="commits what a transaction has, with offsets or without",
                group_id=found.group,
                transactions=found.transactions,
                in_transactions=found.in_transactions,
                first_transaction=found.first,
                last_transaction=found.last,
                outputs=list(found.outputs[:_SHOWN]),
                written_again_by=found.again,
                written_again=found.written_again,
                first_timestamp=found.first.ended_ms,
                last_timestamp=found.last.ended_ms,
            ),
            impact=NO_IMPACT if found.again is None else Impact(records_delivered_again_at_most=found.written_again),
            explanations=(
                Explanation("the application left sendOffsetsToTransaction out on some path, or committed before it"),
                Explanation("what it wrote comes from no input: a timer, or a request", innocent=True),
            ),
            following=(context.transactions_command(found.group),),
            absent={**NO_FILE, "offset": "about transactions without a record of the group"},
        )
