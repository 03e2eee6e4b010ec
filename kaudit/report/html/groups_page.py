"""The page of `kaudit groups`: of each group its members over time, and a lane of committed offsets for each partition.

Pictures are drawn here, as SVG that scales with the page: it has no script, and reads the same without styles.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from kaudit.listings.groups import GroupListing, Row
from kaudit.report.html.document import BASE_STYLES, document
from kaudit.report.text.formatting import plural, timestamp_text
from kaudit.report.text.groups import change_text, group_text, number_of

_MOST_LANES = 300
"""Lanes of a page, some 12 kB each: those that went back come first."""
_MOST_POINTS = 400
_MOST_BACK = 100
"""Steps back that a lane shows."""
_MOST_LISTED = 40
"""Steps of a group, and members, that are listed."""
_COLOURS = 6
_WIDTH, _HEIGHT = 1000, 100


class _Point(NamedTuple):
    at: int
    value: int
    who: int
    """The number of the committer in the group, -1 for none that is known."""


def group_page(listing: GroupListing) -> str:
    """Return the page of a listing with its commits and generations."""
    own = {name: list(rows) for name, rows in groupby(listing.rows, key=lambda row: str(row["group"]))}
    names = sorted(own, key=lambda name: (-number_of(own[name][0], "steps"), -number_of(own[name][0], "lag"), name))
    groups, lanes = [], 0
    for name in names:
        room = _MOST_LANES - lanes
        if room <= 0:
            break
        group, own_lanes = _group(own[name], room)
        groups.append(group)
        lanes += own_lanes
    left_out = len(names) - len(groups)
    stepped = sum(1 for name in names if own[name][0]["steps"])
    return document(
        "groups.html",
        title=f"kaudit groups: {', '.join(listing.inputs)}",
        styles=(*BASE_STYLES, "groups.css"),
        scripts=(),
        data={},
        context={
            "answer": f"{plural(len(names), 'group')}; {plural(stepped, 'group')} did not only go forward",
            "groups": groups,
            "left_out": f"{plural(left_out, 'more group')}: kaudit groups --group NAME draws one" if left_out else "",
            "notes": [f"{note.path}: {note.reason}" for note in listing.not_checked],
            "width": _WIDTH,
            "height": _HEIGHT,
        },
    )


def _group(rows: Sequence[Row], room: int) -> tuple[dict[str, object], int]:
    """What is shown of a group, with the number of its lanes, `room` at most."""
    kinds = {
        kind: [row for row in rows if row["row"] == kind]
        for kind in ("member", "offset", "commit", "step", "generation")
    }
    commits, generations = kinds["commit"], kinds["generation"]
    times = [number_of(row, "timestamp") for row in (*commits, *generations)]
    span = (min(times), max(times)) if times else (0, 0)
    committers = list(dict.fromkeys(filter(None, map(_committer, commits))))
    numbers = {who: number for number, who in enumerate(committers)}
    by_place = {(row["topic"], row["partition"]): list[_Point]() for row in (*kinds["offset"], *commits)}
    for row in commits:
        point = _Point(number_of(row, "timestamp"), number_of(row, "committed"), numbers.get(_committer(row), -1))
        by_place[row["topic"], row["partition"]].append(point)
    newest = {(row["topic"], row["partition"]): row for row in kinds["offset"]}
    order = sorted(by_place, key=lambda place: (-len(_back(by_place[place])), str(place[0]), place[1]))
    turns = [_x(number_of(row, "timestamp"), span) for row in generations][:_MOST_POINTS]
    lanes = [
        _lane(f"{topic}-{part}", by_place[topic, part], newest.get((topic, part)), span) for topic, part in order[:room]
    ]
    shown = {
        "name": rows[0]["group"],
        "title": group_text(rows[0]),
        "from": timestamp_text(span[0]) if times else "",
        "to": timestamp_text(span[1]) if times else "",
        "committers": [
            {"colour": number % _COLOURS, "name": who} for number, who in enumerate(committers[:_MOST_LISTED])
        ],
        "members": _members(generations, span),
        "turns": turns,
        "lanes": lanes,
        "steps": [change_text(row) for row in kinds["step"][:_MOST_LISTED]],
        "more": _more(
            (len(order) - len(lanes), "partition"),
            (len(committers) - _MOST_LISTED, "member"),
            (len(kinds["step"]) - _MOST_LISTED, "step"),
        ),
    }
    return shown, len(lanes)


def _more(*left_out: tuple[int, str]) -> str:
    said = [plural(count, f"more {what}") for count, what in left_out if count > 0]
    return f"Not shown: {', '.join(said)}" if said else ""


def _members(generations: Sequence[Row], span: tuple[int, int]) -> dict[str, object] | None:
    """The number of members over time, and the generations there were."""
    if not generations:
        return None
    points = [_Point(number_of(row, "timestamp"), number_of(row, "members"), -1) for row in generations]
    first, last = generations[0]["generation"], generations[-1]["generation"]
    most = max(point.value for point in points)
    return {
        "text": f"members 0 to {most}, generations {first} to {last}",
        "paths": [path for _, path in _paths(_thinned(points), span, (0, max(most, 1)))],
    }


def _lane(name: str, points: Sequence[_Point], newest: Row | None, span: tuple[int, int]) -> dict[str, object]:
    low, high = min((point.value for point in points), default=0), max((point.value for point in points), default=0)
    back = _back(points)
    text = f"{plural(len(points), 'commit')} of {low:,} to {high:,}" if points else "no commit in the log"
    if back:
        text += f", went back {plural(len(back), 'time')}"
    if newest is not None:
        lag = "" if newest["lag"] is None else f", lag {newest['lag']:,}"
        text += f"; now {newest['committed']:,}{lag}"
    bounds = low, max(high, low + 1)
    return {
        "name": name,
        "text": text,
        "paths": [
            {"colour": f"c{who % _COLOURS}" if who >= 0 else "none", "d": path}
            for who, path in _paths(_thinned(points), span, bounds)
        ],
        "back": [
            f"M{_x(now.at, span)} {_y(before.value, bounds)}V{_y(now.value, bounds)}"
            for before, now in back[:_MOST_BACK]
        ],
    }


def _back(points: Sequence[_Point]) -> list[tuple[_Point, _Point]]:
    return [(before, now) for before, now in pairwise(points) if now.value < before.value]


def _thinned(points: Sequence[_Point]) -> list[_Point]:
    """Leave points out of long lanes; not those around a step back, nor where another commits."""
    every = max(len(points) // _MOST_POINTS, 1)
    last = len(points) - 1
    return [
        point
        for number, point in enumerate(points)
        if number % every == 0
        or number == last
        or points[number + 1].value < point.value
        or (number and (point.value < points[number - 1].value or point.who != points[number - 1].who))
    ][: 4 * _MOST_POINTS]


def _paths(points: Sequence[_Point], span: tuple[int, int], bounds: tuple[int, int]) -> Iterator[tuple[int, str]]:
    """Yield stairs, a path for each committer: an offset stands from its commit to the next one, or to the end."""
    parts: dict[int, list[str]] = {}
    for point, after in pairwise([*points, None]):
        assert point is not None
        left, level = _x(point.at, span), _y(point.value, bounds)
        parts.setdefault(point.who, []).append(f"M{left} {level}H{_WIDTH if after is None else _x(after.at, span)}")
        if after is not None and after.value != point.value:
            parts.setdefault(after.who, []).append(f"M{_x(after.at, span)} {level}V{_y(after.value, bounds)}")
    for who, own in parts.items():
        yield who, "".join(own)


def _x(at: int, span: tuple[int, int]) -> int:
    return round((at - span[0]) * _WIDTH / max(span[1] - span[0], 1))


def _y(value: int, bounds: tuple[int, int]) -> int:
    """Top and bottom leave room for the width of lines."""
    return round(_HEIGHT - 6 - (value - bounds[0]) * (_HEIGHT - 12) / (bounds[1] - bounds[0]))


def _committer(row: Mapping[str, object]) -> str:
    if row["producer_id"] is not None:
        return f"producer {row['producer_id']}"
    return "" if row["member_id"] is None else str(row["member_id"])
