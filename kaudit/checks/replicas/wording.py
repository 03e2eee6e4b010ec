"""Texts, commands and explanations that the checks of replicas share."""

from collections.abc import Mapping, Sequence

import msgspec

from kaudit.checks.context import Context
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence_parts import CopyOfBatch
from kaudit.model.finding import Explanation
from kaudit.model.replicas import ReplicaBatch

ABSENT = {
    **dict.fromkeys(("file", "segment", "position"), "the replicas as a whole are compared"),
    **dict.fromkeys(("producer_id", "producer_epoch"), "the records may be any producer's"),
}


def inspect_replica(context: Context, name: str, offset: int) -> str:
    """The command that shows what a replica holds around an offset."""
    return context.replicas[name].inspect_around(offset)


def copy_of_batch(batch: ReplicaBatch) -> CopyOfBatch:
    """Return a batch of a replica as evidence."""
    return msgspec.convert(batch, CopyOfBatch, from_attributes=True)


def hold(names: Sequence[str]) -> str:
    """Return the names with `holds` or `hold`."""
    return f"{listed(names)} {'holds' if len(names) == 1 else 'hold'}"


def offsets_text(first: int, last: int) -> str:
    """Return `offsets 3..7 (5 offsets)`."""
    return f"offsets {first}..{last} ({counted(last - first + 1, 'offset')})"


def recreated_topic(topic_ids: Mapping[str, str]) -> list[Explanation]:
    """The explanation for copies (by name) whose topic ids differ; none where they are the same or not known."""
    if len(set(topic_ids.values())) < 2:
        return []
    ids = ", ".join(f"{name} {topic_id}" for name, topic_id in topic_ids.items())
    return [Explanation("the topic was deleted and created again: these are two topics", speaks_for=(ids,))]
