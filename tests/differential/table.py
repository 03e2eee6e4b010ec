"""The result of a run as a table in Markdown: detection by damage and place."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from tests.differential.cases import ALL_DRESSINGS, UNDRESSED, Outcome
from tests.differential.damages import CELLS, PLACES

_COLUMNS = (*PLACES, "log")


def _cell(outcomes: Sequence[Outcome]) -> str:
    """`97.5 % of 40, error 30, warning 9; 3 excused`: of the logs whose damage can be proven."""
    required = [each for each in outcomes if each.required]
    excused = len(outcomes) - len(required)
    if not required:
        return f"({excused} excused)" if excused else ""
    found = [each for each in required if each.severity is not None]
    share = 100 * len(found) / len(required)
    text = f"{share:.1f}".removesuffix(".0")
    lowered = sum(each.lowered for each in required)
    return (
        f"{text} % of {len(required)}"
        + (f", {lowered} lowered" if lowered else "")
        + (f" ({excused})" if excused else "")
    )


def _lines(names: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str]) -> list[str]:
    rows = [[name, *(cell(name, column) for column in columns)] for name in names]
    return ["| " + " | ".join(row) + " |" for row in [["", *columns], ["---"] * (len(columns) + 1), *rows]]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the tables: damage by place, then by dressing, then the severities and what was excused."""
    damaged = [each for each in outcomes if not each.is_healthy]
    healthy = [each for each in outcomes if each.is_healthy]
    cells: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    dressed: defaultdict[str, list[Outcome]] = defaultdict(list)
    for each in damaged:
        cells[each.damage, each.place].append(each)
        dressed[each.dressing].append(each)
    damages = list(dict.fromkeys(damage for damage, _ in CELLS))
    required = [each for each in damaged if each.required]
    severities = Counter(each.severity or "silent" for each in required)
    excuses = Counter(excuse for each in damaged if not each.required for excuse in each.excuses)
    alarms = sum(bool(each.codes) for each in healthy)
    lines = [
        f"{len(outcomes)} logs. Undamaged: {len(healthy)}, with an alarm: {alarms}.",
        f"Damaged: {len(damaged)}, so that their bytes prove it: {len(required)}, of these {dict(severities)}.",
        "",
        "Detected, of the logs whose bytes prove the damage; in parentheses the number that an excuse covers:",
        "",
        *_lines(damages, _COLUMNS, lambda damage, place: _cell(cells[damage, place])),
        "",
        *_lines([UNDRESSED, *ALL_DRESSINGS], ["all damages"], lambda name, _: _cell(dressed[name])),
        "",
        *(f"{count:7} excused: {excuse}" for excuse, count in excuses.most_common()),
        "",
    ]
    return "\n".join(lines)
