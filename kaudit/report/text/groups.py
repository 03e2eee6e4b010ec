"""`kaudit groups`: the answer in one line, and the committed offsets of each group below it."""

from collections.abc import Iterable, Iterator

from kaudit.listings.groups import GroupListing, Row
from kaudit.report.console import Console, visible
from kaudit.report.json_rows import rows_document
from kaudit.report.text.fitting import GAP, fit, notice
from kaudit.report.text.formatting import plural, timestamp_text

_HEADINGS = {
    "topic": "topic",
    "partition": "partition",
    "committed": "committed",
    "log_end_offset": "log end",
    "lag": "lag",
}


def document(listing: GroupListing) -> Iterator[str]:
    """Yield the kaudit.groups/1 document."""
    notes = [note.to_dict() for note in listing.not_checked]
    return rows_document(
        "kaudit.groups/1", listing.rows, lambda: {"inputs": list(listing.inputs), "not_checked": notes}
    )


def text(listing: GroupListing, console: Console) -> Iterator[str]:
    """Yield the answer, then each group with its offsets, commits and steps."""
    groups = [row for row in listing.rows if row["row"] == "group"]
    stepped = [row for row in groups if row["steps"]]
    answer = f"{plural(len(groups), 'group')}, {plural(sum(number_of(row, 'partitions') for row in groups), 'committed offset')}"
    for row in stepped[:1]:
        more = f" and {plural(len(stepped) - 1, 'other group')}" if len(stepped) > 1 else ""
        answer += f"; not only forward: {visible(str(row['group']))} ({plural(number_of(row, 'steps'), 'time')}){more}"
    yield from _lines(console.wrap(answer, indent="  "))
    for row in groups:
        name = row["group"]
        yield "\n"
        yield from _lines(console.wrap(group_text(row), indent="    "))
        own = [each for each in listing.rows if each["group"] == name]
        for each in own:
            if each["row"] == "member":
                line = f"  member {each['member_id']}: client {each['client_id']} at {each['host']}"
                yield from _lines(
                    console.wrap(
                        f"{visible(line)}, {plural(number_of(each, 'partitions'), 'partition')}", indent="    "
                    )
                )
        yield from _table([each for each in own if each["row"] == "offset"], console)
        for each in own:
            if each["row"] in ("commit", "generation", "step"):
                yield from _lines(console.wrap(f"  {change_text(each)}", indent="    "))


def _lines(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def group_text(row: Row) -> str:
    """Return a group in one line: generation, members, lag."""
    state = (
        "no record of the group itself"
        if row["members"] is None
        else (f"generation {row['generation']}, {plural(number_of(row, 'members'), 'member')}")
    )
    lag = "" if row["lag"] is None else f", lag {row['lag']:,}"
    return f"{visible(str(row['group']))}: {state}{lag}"


def number_of(row: Row, name: str) -> int:
    """Return a number of a row, 0 where it has none."""
    value = row[name]
    return value if isinstance(value, int) else 0


def _table(rows: list[Row], console: Console) -> Iterator[str]:
    if not rows:
        return
    cells = {
        heading: ["-" if row[name] is None else visible(str(row[name])) for row in rows]
        for name, heading in _HEADINGS.items()
    }
    cells["at (UTC)"] = [timestamp_text(number_of(row, "timestamp")) for row in rows]
    room = None if console.width is None else console.width - 2
    fitted = fit(cells, ("topic",), ("at (UTC)", "log end"), room)
    if line := notice(fitted, room):
        yield f"  ({line})\n"
    widths = {name: max(len(name), *map(len, cells[name])) for name in fitted.shown}
    for number in range(-1, len(rows)):
        line = GAP.join((name if number < 0 else cells[name][number]).ljust(widths[name]) for name in fitted.shown)
        yield f"  {line.rstrip()}\n"


def change_text(row: Row) -> str:
    """Return a commit, a new generation or a step of a group in one line."""
    if row["row"] == "generation":
        at, members = timestamp_text(number_of(row, "timestamp")), plural(number_of(row, "members"), "member")
        return f"{at} generation {row['generation']}, {members}"
    place = f"{row['topic']}-{row['partition']}"
    who = f"producer {row['producer_id']}" if row["producer_id"] is not None else f"member {row['member_id']}"
    by = "" if row["producer_id"] is None and row["member_id"] is None else f" by {who}"
    at = timestamp_text(number_of(row, "timestamp"))
    if row["row"] == "commit":
        return visible(f"{at} {place} committed {row['committed']}{by}")
    return visible(f"{at} {place} {row['kind']} from {row['committed_before']} to {row['committed']}{by}")
