"""What the checks of replicas share."""

from collections.abc import Mapping, Sequence

from kaudit.checks.context import Context
from kaudit.model.finding import Explanation

ABSENT = {
    **dict.fromkeys(("file", "segment", "position"), "the replicas as a whole are compared"),
    **dict.fromkeys(("producer_id", "producer_epoch"), "the records may be any producer's"),
}


def inspect_replica(context: Context, name: str, offset: int) -> str:
    """The command that shows what a replica holds around an offset."""
    return context.replicas[name].inspect_command("--records", "--around", str(offset))


def listed(names: Sequence[str], last: str = "and") -> str:
    """Return `b1`, `b1 and b2` or `b1, b2 and b3`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def hold(names: Sequence[str]) -> str:
    """Return the names and the verb in their number."""
    return f"{listed(names)} {'holds' if len(names) == 1 else 'hold'}"


def offsets_count(number: int) -> str:
    """Return `1 offset` or `1,234 offsets`."""
    return f"{number:,} offset" + ("" if number == 1 else "s")


def offsets_text(first: int, last: int) -> str:
    """Return `offsets 3..7 (5 offsets)`."""
    return f"offsets {first}..{last} ({offsets_count(last - first + 1)})"


def recreated_topic(topic_ids: Mapping[str, str]) -> list[Explanation]:
    """The explanation for copies (by name) whose topic ids differ; none where they are the same or not known."""
    if len(set(topic_ids.values())) < 2:
        return []
    ids = ", ".join(f"{name} {topic_id}" for name, topic_id in topic_ids.items())
    return [Explanation("the topic was deleted and created again: these are two topics", speaks_for=(ids,))]
