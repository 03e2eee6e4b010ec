"""KA012: segments that could not be opened or read, so that nothing is known of what they hold."""

from collections.abc import Sequence

from kaudit.checks.context import Context
from kaudit.model.finding import Explanation, Finding
from kaudit.source.layout import Unreadable

_CAUSES = (
    Explanation("whoever runs kaudit may not read the file", innocent=True),
    Explanation("the disk or the store that holds it fails"),
)


def report_unreadable(context: Context, unreadable: Sequence[Unreadable]) -> list[Finding]:
    """Report each segment once; what is no segment of this partition is told as not audited only."""
    numbers = {name: number for number, name in enumerate(context.segments)}
    found: list[Finding] = []
    for entry in unreadable:
        number = numbers.get(entry.path.rsplit("/", 1)[-1])
        if number is None:
            continue
        name = context.segments[number]
        found.append(
            context.finding(
                "KA012",
                f"{name} cannot be read: {entry.reason}",
                segment=number,
                anchor=name,
                evidence={
                    "rule": "an audit reads every segment it was given",
                    "broker": "takes a log directory offline when one of its files cannot be read",
                    "reason": entry.reason,
                },
                explanations=_CAUSES,
                absent={
                    "offset": "nothing of the segment was read",
                    "producer_id": "nothing of the segment was read",
                },
            )
        )
    return found
