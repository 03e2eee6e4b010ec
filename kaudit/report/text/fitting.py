"""Which columns of a table a terminal has room for."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

GAP = "  "


class Fitted(Struct, frozen=True):
    """The columns to show, in order; the text of columns that are the same in all rows; and the columns that had no room."""

    shown: Sequence[str]
    common: Mapping[str, str]
    left_out: Sequence[str]


def fit(
    cells: Mapping[str, Sequence[str]], same: Sequence[str], dispensable: Sequence[str], room: int | None
) -> Fitted:
    """Choose among the columns (cells by heading) for a line of `room` characters, None for any length.

    Columns of `same` are removed first, in order, where all rows have the same text; then those of `dispensable`, in order.
    """
    widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
    shown = list(cells)
    common: dict[str, str] = {}
    left_out: list[str] = []

    def fits() -> bool:
        return room is None or sum(widths[name] + len(GAP) for name in shown) - len(GAP) <= room

    for name in [name for name in same if name in cells and len(set(cells[name])) == 1]:
        if fits():
            break
        shown.remove(name)
        common[name] = cells[name][0]
    for name in [name for name in dispensable if name in shown]:
        if fits():
            break
        shown.remove(name)
        left_out.append(name)
    return Fitted(shown, common, left_out)


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of the table: its cells side by side."""
    return GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def notice(fitted: Fitted, room: int | None) -> str:
    """Return the line above the table that names the columns left out of it; empty if there are none."""
    parts = []
    common = [f"{name} {text}" for name, text in fitted.common.items() if text != "-"]
    if common:
        parts.append(f"in every row: {', '.join(common)}")
    if fitted.left_out:
        parts.append(f"no room at {room} columns for: {', '.join(fitted.left_out)}")
    return "; ".join(parts)
