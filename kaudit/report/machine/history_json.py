"""Histories as JSON: the text of thousands of entries at once, from their columns."""

import json
from collections.abc import Mapping
from itertools import chain

import numpy as np
from msgspec import Struct

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.columns import Columns
from kaudit.model.timeline import MARKER, NONE, OTHER, OUTCOMES, RUN, RUN_FIELDS, STATE, TYPES, Histories
from kaudit.report.json_documents import compact, indented
from kaudit.report.text.history_cells import Numbers, in_calendar, instants
from kaudit.report.text.text_rows import Piece, number, text_of_rows, texts, where

_AT_ONCE = 4096
"""Rows whose text is made together: some MiB, which is less than is mapped anew (engines/memory.py)."""
_OTHER = "\1"
"""Stands for text that few rows have, and may be long; no JSON holds it."""
_OUTCOMES = texts(map(json.dumps, OUTCOMES))
_TYPES = texts(map(json.dumps, TYPES))


_NUMBERS = [name for name in RUN_FIELDS if name != "is_transactional"]


class Form(Struct, frozen=True):
    """How JSON is laid out: on lines of their own by depth, or on one line; `ends` a timeline, but not the last if it only separates."""

    pretty: bool
    ends: str
    kind: Mapping[str, str]
    """Further fields of each timeline."""

    def line(self, depth: int) -> bytes:
        """Return what begins a line at this depth."""
        return b"\n" + b"  " * depth if self.pretty else b""

    def comma(self, depth: int) -> bytes:
        """Return what stands between two fields or items at this depth."""
        return b"," + (self.line(depth) or b" ")

    def text(self, value: Mapping[str, object], depth: int) -> str:
        """Return the text of a document that begins at this depth."""
        return indented(value).replace("\n", self.line(depth).decode()) if self.pretty else compact(value)


PRETTY = Form(pretty=True, ends=",\n    ", kind={})
"""Items of a list in a document that is laid out for people."""
LINES = Form(pretty=False, ends="\n", kind={"type": "timeline"})
"""A line for each timeline."""
_ITEM = 2
"""How deep a timeline lies in its document; entries are two deeper."""


def timelines_json(histories: Histories, form: Form) -> str:
    """Return the documents of all timelines."""
    owners = histories.owners
    begins = np.concatenate([[True], owners[1:] != owners[:-1], [True]])
    parts: list[str] = []
    for first in range(0, len(owners), _AT_ONCE):
        stop = min(first + _AT_ONCE, len(owners))
        last = begins[first + 1 : stop + 1]
        entries = _entries(histories.rows[first:stop], form)
        pieces = [
            *where(begins[first:stop], [b"{", form.line(_ITEM + 1), b'"entries": [', form.line(_ITEM + 2)]),
            *entries,
            *where(~last, [form.comma(_ITEM + 2)]),
            *where(last, _end(histories, owners[first:stop][last], form)),
        ]
        parts.append(text_of_rows(stop - first, pieces))
    text = "".join(parts).removesuffix(form.ends if form.pretty else "")
    rare = _rare(histories, form)
    if not rare:
        return text
    return "".join(chain.from_iterable(zip(text.split(_OTHER), [*rare, ""], strict=True)))


def _rare(histories: Histories, form: Form) -> list[str]:
    """Return what stands for each _OTHER, in their order: entries beside runs and markers, and transactional ids."""
    found = {2 * at: form.text(entry.to_dict(), _ITEM + 2) for at, entry in histories.others.items()}
    if names := histories.transactional_ids:
        for producer_id, stop in zip(histories.producer_ids.tolist(), histories.starts[1:].tolist(), strict=True):
            if producer_id in names:
                found[2 * stop - 1] = compact(names[producer_id])
    return [found[place] for place in sorted(found)]


def _entries(rows: Columns, form: Form) -> list[Piece]:
    """Return the text of each row."""
    kinds = rows["row"]
    is_run, is_marker = kinds == RUN, kinds == MARKER
    return [
        *where(is_run, _object(_run(rows if is_run.all() else rows[is_run], form), _ITEM + 2, form)),
        *where(is_marker, _object(_marker(rows[is_marker]), _ITEM + 2, form)),
        *where(kinds == OTHER, [_OTHER.encode()]),
    ]


def _run(rows: Columns, form: Form) -> dict[str, list[Piece]]:
    within = rows["is_transactional"]
    transaction = {
        "first_offset": number(rows["transaction_first_offset"][within]),
        "outcome": [_OUTCOMES[rows["transaction_outcome"][within]]],
    }
    return {
        **{name: (_times if name.endswith("timestamp") else number)(rows[name]) for name in _NUMBERS},
        "is_transactional": [*where(within, [b"true"]), *where(~within, [b"false"])],
        "kind": [b'"run"'],
        "transaction": [*where(within, _object(transaction, _ITEM + 3, form)), *where(~within, [b"null"])],
    }


def _marker(rows: Columns) -> dict[str, list[Piece]]:
    return {
        "kind": [b'"marker"'],
        "offset": number(rows["first_offset"]),
        "producer_epoch": number(rows["producer_epoch"]),
        "coordinator_epoch": _known(rows["coordinator_epoch"]),
        "type": [_TYPES[rows["type"]]],
        "timestamp": _times(rows["min_timestamp"]),
    }


def _end(histories: Histories, owners: Numbers, form: Form) -> list[Piece]:
    """Return what follows the entries of these producer ids."""
    ids, states = histories.producer_ids[owners], {name: histories.states[name][owners] for name in STATE}
    state = {name: _known(column) for name, column in states.items()}
    seen, times = states["producer_epoch"] != NONE, states["last_timestamp"]
    known = seen | (times != NONE)  # after a batch it is a real time, whatever it is
    state["last_timestamp"] = [*where(known, _times(times[known])), *where(~known, [b"null"])]
    names = histories.transactional_ids
    named = np.array([number in names for number in ids.tolist()]) if names else np.zeros(len(ids), dtype=bool)
    fields: dict[str, list[Piece]] = {
        "partition": [str(histories.partition).encode()],
        "producer_id": number(ids),
        "replica": [compact(histories.replica).encode()],
        "state": _object(state, _ITEM + 1, form),
        "topic": [compact(histories.topic).encode()],
        "transactional_id": [*where(named, [_OTHER.encode()]), *where(~named, [b"null"])],
        **{name: [compact(value).encode()] for name, value in form.kind.items()},
    }
    following = _object(fields, _ITEM, form)[2:]
    return [form.line(_ITEM + 1), b"]", form.comma(_ITEM + 1), *following, form.ends.encode()]


def _object(fields: Mapping[str, list[Piece]], depth: int, form: Form) -> list[Piece]:
    """Return the text of an object in each row; it begins at this depth."""
    pieces: list[Piece] = []
    for name in sorted(fields):
        pieces += [form.comma(depth + 1) if pieces else form.line(depth + 1), f'"{name}": '.encode(), *fields[name]]
    return [b"{", *pieces, form.line(depth), b"}"]


def _known(values: Numbers) -> list[Piece]:
    """Return numbers, null for NONE."""
    known = values != NONE
    return [*where(known, number(values[known])), *where(~known, [b"null"])]


def _times(times: Numbers) -> list[Piece]:
    """Return times as RFC 3339, numbers where no calendar reaches them, null without one."""
    none, dated = times == NO_TIMESTAMP, in_calendar(times)
    beyond = ~none & ~dated
    return [
        *where(none, [b"null"]),
        *where(beyond, number(times[beyond])),
        *where(dated, [b'"', *instants(times[dated]), b'"']),
    ]
