"""What the checks of replicas share."""

from collections.abc import Sequence

from kaudit.checks.context import Context

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
