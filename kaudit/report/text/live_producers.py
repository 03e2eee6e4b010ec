"""`kaudit producers --live`: the states of log and broker side by side, for people and as JSON."""

from collections.abc import Iterator, Sequence

from kaudit.model.json_record import document_head
from kaudit.model.producer_listing import COMPARED, ComparedPartition, ComparedProducer, DescribedState, Relation
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_documents import pretty
from kaudit.report.text.formatting import plural, timestamp_text

_ONLY = {Relation.LOG_ONLY: "only in the log", Relation.BROKER_ONLY: "only on the broker"}
_TIMES = ("last_timestamp",)


def live_document(partitions: Sequence[ComparedPartition]) -> str:
    """Return the JSON document."""
    return pretty(
        {
            **document_head("kaudit.producers-live/1"),
            "summary": {
                "partitions": len(partitions),
                "producers": sum(len(each.producers) for each in partitions),
                "differing": sum(_differing(each) for each in partitions),
                "unexplained": sum(each.unexplained for each in partitions),
            },
            "partitions": [each.to_dict() for each in partitions],
        }
    )


def live_table(partitions: Sequence[ComparedPartition], console: Console) -> str:
    """Return a paragraph for each partition: every producer that differs, field by field, and how many do not."""
    lines: list[str] = []
    for part in partitions:
        lines += _paragraph(part, console)
    total, differing = sum(len(each.producers) for each in partitions), sum(map(_differing, partitions))
    unexplained = sum(each.unexplained for each in partitions)
    verdict = f"{plural(total, 'producer')} in {plural(len(partitions), 'partition')}: "
    if not differing:
        verdict += "the brokers remember what the logs yield"
    else:
        verdict += f"{differing} differ, {unexplained} of them without an explanation"
    return "".join(f"{line}\n" for line in [*lines, "", *console.wrap(verdict, style=Style.STRONG)])


def _paragraph(part: ComparedPartition, console: Console) -> Iterator[str]:
    identical = len(part.producers) - _differing(part)
    yield from console.wrap(
        f"{visible(part.topic)}-{part.partition} on broker {part.node}: {plural(len(part.producers), 'producer')}, "
        f"{identical} identical"
    )
    for producer in part.producers:
        if producer.relation is not Relation.IDENTICAL:
            yield from console.wrap(_sentence(producer), lead="  ", indent="    ")
            if producer.explanation is not None:
                yield from console.wrap(f"= {producer.explanation}", lead="    ", indent="      ")


def _sentence(producer: ComparedProducer) -> str:
    name = f"producer {producer.producer_id}"
    if producer.log is None or producer.broker is None:
        state = producer.log or producer.broker
        assert state is not None
        return (
            f"{name}: {_ONLY[producer.relation]} ({', '.join(f'{field} {_value(state, field)}' for field in COMPARED)})"
        )
    log, broker = producer.log, producer.broker
    said = (
        f"{field} is {_value(log, field)} in the log, {_value(broker, field)} on the broker"
        for field in producer.differences
    )
    return f"{name}: {'; '.join(said)}"


def _value(state: DescribedState, field: str) -> str:
    value = getattr(state, field)
    return timestamp_text(value) if field in _TIMES and value >= 0 else str(value)


def _differing(part: ComparedPartition) -> int:
    return sum(each.relation is not Relation.IDENTICAL for each in part.producers)
