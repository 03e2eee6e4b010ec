"""KA701-KA703: records that are in the log again where no sequence can show it."""

from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.checks.context import Context
from kaudit.model.finding import Confidence, Explanation, Finding


class PlainBatch(Struct, frozen=True):
    """A data batch without a producer id. `ordinal` counts those of the partition, timestamps are ms."""

    ordinal: int
    base_offset: int
    last_offset: int
    crc: int
    size: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    position: int
    segment: int

    def evidence(self) -> dict[str, object]:
        """As reports show batches."""
        return {
            "offset": self.base_offset,
            "last_offset": self.last_offset,
            "timestamp": self.max_timestamp,
            "producer_id": -1,
            "record_count": self.record_count,
            "crc": self.crc,
            "position": self.position,
        }


class Repeat(Struct, frozen=True):
    """Two copies of one batch."""

    first: PlainBatch
    again: PlainBatch


class Reordered(Struct, frozen=True):
    """Batches that a retry put behind later ones; `overtaken_by` is the batch before the first of them."""

    overtaken_by: PlainBatch
    late: Sequence[PlainBatch]
    reversed: bool
    """The copies come in the opposite order of what they copy; else their timestamps go back."""


class Repeats(Struct, frozen=True):
    """What a partition's batches without producer ids show."""

    repeats: Sequence[Repeat] = ()
    reordered: Sequence[Reordered] = ()


class Resent(Struct, frozen=True):
    """A session (producer id and epoch) whose first records another one had written just before.

    `records` are as many as could be compared; `same_times`: their timestamps are equal too.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    position: int
    segment: int
    previous_id: int
    previous_epoch: int
    copied_first: int
    copied_last: int
    records: int
    same_times: bool
    first: dict[str, object] = field(default_factory=dict)
    again: dict[str, object] = field(default_factory=dict)


def report_repeats(context: Context, found: Repeats) -> list[Finding]:
    """Report each burst of copies once, and each stretch a retry has put out of order."""
    return [
        *(_repeated(context, burst) for burst in _bursts(found.repeats)),
        *(_reordered(context, stretch) for stretch in found.reordered),
    ]


def _bursts(repeats: Sequence[Repeat]) -> list[list[Repeat]]:
    """Copies right behind one another are one event."""
    bursts: list[list[Repeat]] = []
    for repeat in repeats:
        if bursts and repeat.again.ordinal == bursts[-1][-1].again.ordinal + 1:
            bursts[-1].append(repeat)
        else:
            bursts.append([repeat])
    return bursts


def _repeated(context: Context, burst: Sequence[Repeat]) -> Finding:
    first, again, last = burst[0].first, burst[0].again, burst[-1].again
    records = sum(repeat.again.record_count for repeat in burst)
    if len(burst) == 1:
        copied = f"the batch at offset {first.base_offset}"
        message = (
            f"the batch at offset {again.base_offset} ({_records(records)}) is a repeat of {copied}: the same bytes"
        )
    else:
        low = min(repeat.first.base_offset for repeat in burst)
        high = max(repeat.first.last_offset for repeat in burst)
        message = (
            f"{len(burst)} batches at offsets {again.base_offset}..{last.last_offset} ({_records(records)}) are repeats of "
            f"batches at {low}..{high}: the same bytes"
        )
    return context.finding(
        "KA702",
        message,
        confidence=Confidence.LIKELY,
        segment=again.segment,
        position=again.position,
        offset=again.base_offset,
        last_offset=last.last_offset,
        evidence={
            "rule": "without a producer id a broker cannot recognise a batch that is sent again, and appends it again",
            "previous": first.evidence(),
            "offending": again.evidence(),
            "batches": len(burst),
            "records": records,
            "copies": [[repeat.first.base_offset, repeat.again.base_offset] for repeat in burst[:100]],
        },
        explanations=(
            Explanation(
                "a producer without idempotence sent the batch again, because the answer to the first request was late or "
                "lost",
                speaks_for=(f"same CRC, size and timestamps, {again.ordinal - first.ordinal} batches apart",),
            ),
            Explanation(
                "an application sends equal records in equal batches within one millisecond, as load generators do",
                innocent=True,
            ),
        ),
        following=(_look(context, again.base_offset),),
        absent=_NO_PRODUCER,
    )


def _reordered(context: Context, stretch: Reordered) -> Finding:
    first, last = stretch.late[0], stretch.late[-1]
    before = stretch.overtaken_by
    number = len(stretch.late)
    which = f"the batch at offset {first.base_offset} comes" if number == 1 else f"{number} batches at offsets "
    if number > 1:
        which += f"{first.base_offset}..{last.last_offset} come"
    how = "copies in the opposite order of what they copy" if stretch.reversed else "its records are older"
    if number > 1 and not stretch.reversed:
        how = "their records are older"
    return context.finding(
        "KA703",
        f"{which} behind later records because of a retry: {how}",
        confidence=Confidence.LIKELY if stretch.reversed else Confidence.POSSIBLE,
        segment=first.segment,
        position=first.position,
        offset=first.base_offset,
        last_offset=last.last_offset,
        evidence={
            "rule": "with several requests in flight and no idempotence, a batch that is retried lands behind those that "
            "were sent after it",
            "previous": before.evidence(),
            "offending": first.evidence(),
            "batches": number,
            "class": "reversed" if stretch.reversed else "older",
        },
        explanations=(
            Explanation(
                "max.in.flight.requests.per.connection is above 1 without idempotence, and a request failed",
                speaks_for=("batches near it are in the log twice (KA702)",),
            ),
            Explanation("two producers write here, and both retried", innocent=True),
        ),
        following=(_look(context, first.base_offset),),
        absent=_NO_PRODUCER,
    )


def report_resent(context: Context, found: Sequence[Resent]) -> list[Finding]:
    """Report sessions that begin with what another has written."""
    return [_resent(context, resent) for resent in found]


def _resent(context: Context, found: Resent) -> Finding:
    same_id = found.producer_id == found.previous_id
    who = f"producer {found.producer_id}" + (f" epoch {found.producer_epoch}" if same_id else "")
    other = f"producer {found.previous_id}" + (f" epoch {found.previous_epoch}" if same_id else "")
    times = ", timestamps included" if found.same_times else ""
    return context.finding(
        "KA701",
        f"{who} begins with {_records(found.records)} that {other} had written at offsets "
        f"{found.copied_first}..{found.copied_last}{times}",
        confidence=Confidence.LIKELY if found.same_times else Confidence.POSSIBLE,
        segment=found.segment,
        position=found.position,
        offset=found.first_offset,
        last_offset=found.last_offset,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        evidence={
            "rule": "idempotence ends with the producer id and epoch: what a new session sends is new to the broker",
            "previous": found.first,
            "offending": found.again,
            "records": found.records,
            "same_timestamps": found.same_times,
            "copied_producer_id": found.previous_id,
            "copied_producer_epoch": found.previous_epoch,
            "copied_first_offset": found.copied_first,
            "copied_last_offset": found.copied_last,
        },
        explanations=(
            Explanation(
                "the client raised its epoch after an error and sent again what was in flight, though it was in the log"
                if same_id
                else "an application was restarted and sent again what it did not know to be acknowledged"
            ),
            Explanation("the application means to write these records again", innocent=True),
        ),
        following=(
            _look(context, found.first_offset),
            context.timeline_command(found.previous_id),
        ),
    )


_NO_PRODUCER = {
    "producer_id": "the batch carries none",
    "producer_epoch": "the batch carries none",
}


def _look(context: Context, offset: int) -> str:
    return f"{context.inspect_command('').rstrip('/')} --records --around {offset}"


def _records(number: int) -> str:
    return f"{number:,} record" + ("" if number == 1 else "s")
