"""What a browser reads of a page, without one: the model, and the packed columns as numbers. Independent of the encoder."""

import base64
import json
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any


class _Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.metas: list[dict[str, str | None]] = []
        self._open = False

    def handle_starttag(self, tag, attrs) -> None:
        self._open = tag in ("script", "style")
        if self._open:
            self.elements.append((tag, dict(attrs), ""))
        elif tag == "meta":
            self.metas.append(dict(attrs))

    def handle_endtag(self, tag) -> None:
        self._open = False

    def handle_data(self, data) -> None:
        if self._open:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = tag, attributes, text + data


class Page:
    """A parsed page: `model` as JSON has it, the policy, and what it holds by element."""

    def __init__(self, text: str) -> None:
        parsed = _Scripts()
        parsed.feed(text)
        self.elements = parsed.elements
        self.by_id = {attributes["id"]: body for _, attributes, body in self.elements if "id" in attributes}
        self.policy = next(
            str(meta["content"]) for meta in parsed.metas if meta.get("http-equiv") == "Content-Security-Policy"
        )
        self.model: dict[str, Any] = json.loads(self.by_id["page"])

    def executed(self, tag: str) -> list[str]:
        """The texts of the styles, or of the scripts that are run."""
        return [body for name, attributes, body in self.elements if name == tag and "type" not in attributes]

    def columns(self, index: int) -> dict[str, dict[str, list[int]]]:
        """The tables of a partition, its origins added."""
        packed = self.model["partitions"][index]["columns"]
        data = zlib.decompress(base64.b64decode(self.by_id[packed["id"]]))
        assert len(base64.b64decode(self.by_id[packed["id"]])) == packed["bytes"]
        origins = {
            "offset": int(packed["offset_origin"]),
            "timestamp": int(packed["timestamp_origin"]),
            "producer_id": int(packed["producer_id_origin"]),
        }
        tables = decode(packed["tables"], data)
        for columns in tables.values():
            for name in columns:
                origin = next((value for end, value in origins.items() if name.endswith(end)), 0)
                columns[name] = [value + origin for value in columns[name]]
        return tables


def decode(tables: dict[str, Any], data: bytes) -> dict[str, dict[str, list[int]]]:
    """Decode all tables as the docstring of kaudit/report/html/columns.py says."""
    at = 0
    decoded: dict[str, dict[str, list[int]]] = {}
    for name, table in tables.items():
        rows = table["rows"]
        stored: dict[str, list[int]] = {}
        for field in table["fields"]:
            width = field["width"]
            planes = [data[at + plane * rows : at + (plane + 1) * rows] for plane in range(width)]
            at += width * rows
            numbers = [sum(plane[row] << 8 * place for place, plane in enumerate(planes)) for row in range(rows)]
            stored[field["name"]] = [number >> 1 if not number & 1 else -(number >> 1) - 1 for number in numbers]
        decoded[name] = _added_up(table["fields"], stored, rows)
    assert at == len(data)
    return decoded


def _added_up(fields, stored, rows) -> dict[str, list[int]]:
    values: dict[str, list[int]] = {field["name"]: [0] * rows for field in fields}
    for row in range(rows):
        for field in fields:
            name = field["name"]
            value = stored[name][row] + _prediction(name, field["encoding"], values, row)
            values[name][row] = (value + 2**63) % 2**64 - 2**63
    return values


def _prediction(name, encoding, values, row) -> int:
    length = values["last_offset"][row] - values["first_offset"][row] if encoding == "spans" else 0
    before = row - 1
    if encoding in ("delta", "follows", "continues") and row == 0:
        return 0
    predictions: dict[str, Callable[[], int]] = {
        "plain": lambda: 0,
        "delta": lambda: values[name][before],
        "follows": lambda: values["last_offset"][before],
        "from": lambda: values["first_offset" if name == "last_offset" else "min_timestamp"][row],
        "continues": lambda: values[name][before] + values["last_offset"][before] - values["first_offset"][before] + 1,
        "spans": lambda: length + (values["first_sequence"][row] if name == "last_sequence" else 1),
    }
    return predictions[encoding]()
