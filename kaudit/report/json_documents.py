"""The JSON documents of scan, timeline, producers and diff as plain dicts, shared by json and jsonl (report/schemas)."""

import json
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.json_record import document_head, json_value, rfc3339
from kaudit.model.producer_listing import GrantedBlock, ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.console import COMMAND_START
from kaudit.report.render_options import RenderOptions
from kaudit.results.incidents import incidents_of
from kaudit.results.verdict import verdict_of

_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, default=operator.index).encode  # made once
_TIMESTAMP = re.compile(r'timestamp": (-?[0-9]+)(?=[,}])')
"""The end of a key, and its number. Text in a string cannot match: its quotation marks are escaped."""
_rfc3339 = lru_cache(maxsize=1024)(rfc3339)
"""Cached: neighbouring runs, and the state after them, often have the same time."""
_AT_A_TIME = 32
"""Items of a list that are serialised together."""


def header(result: ScanResult, schema: str, options: RenderOptions) -> dict[str, object]:
    """Return the fields that every document begins with: tool, inputs, versions, and what was not checked."""
    document: dict[str, object] = {
        **document_head(schema),
        "broker_version": result.broker_version.to_dict(),
        "inputs": list(result.inputs),
        "incomplete": result.incomplete,
        "not_audited": [item.to_dict() for item in result.not_audited],
        "summary": result.summary.to_dict(),
        "partitions": [partition.to_dict() for partition in result.partitions],
    }
    document["verdict"] = verdict_of(result).to_dict()
    for name in ("coverage", "suggestions", "digests", "clock", "log_events", "baseline", "configuration"):
        if part := getattr(result, name):
            document[name] = json_value(part)
    if options.run is not None:
        document["run"] = dict(options.run)
    return document


def scan_document(
    result: ScanResult, options: RenderOptions, schema: str = "kaudit.scan/1", **more: object
) -> dict[str, object]:
    """Return the kaudit.scan/1 document, or a document of another `schema` with the fields `more`."""
    return {
        **header(result, schema, options),
        **more,
        "incidents": [incident.to_dict() for incident in incidents_of(result.findings)],
        "findings": [finding.to_dict() for finding in result.findings],
    }


def omitted_timelines(result: TimelineResult) -> dict[str, int]:
    """Return the field that counts the timelines an engine did not list; nothing where it listed all."""
    return {"timelines_omitted": result.omitted} if result.omitted else {}


def producers_document(result: ProducersResult, options: RenderOptions) -> dict[str, object]:
    """Return the kaudit.producers/1 document with an empty list of producers, which `pretty_pieces` fills."""
    more = {
        "producers": [],
        "blocks": [_block(block) for block in result.blocks],
        "expired_transactional_ids": [entry.to_dict() for entry in result.expired],
        "summary": dict(result.summary),
    }
    omitted = {"producers_omitted": result.omitted} if result.omitted else {}
    return scan_document(result.scan, options, "kaudit.producers/1", **more, **omitted)


def with_scan(result: ProducersResult, scan: ScanResult) -> ProducersResult:
    """Return the listing with another form of its scan, and the scan's count of omitted findings."""
    return replace(result, scan=scan, summary={**result.summary, "omitted": scan.summary.omitted})


def diff_document(result: DiffResult, options: RenderOptions) -> dict[str, object]:
    """Return the kaudit.diff/1 document."""
    replicas = [replica.to_dict() for replica in result.replicas]
    partitions = [partition.to_dict() for partition in result.partitions]
    copies = [entry.to_dict() for entry in result.broker_copies]
    return scan_document(
        result.scan, options, "kaudit.diff/1", replicas=replicas, moments=copies, partitions=partitions
    )


def _block(block: GrantedBlock) -> dict[str, object]:
    fields = block.to_dict()
    return fields | {"at": None if block.at_ms is None else rfc3339(block.at_ms) or block.at_ms}


class Listed(Struct, frozen=True):
    """An item that has lists of its own: they are empty in `document`, and `lists` has their items by key."""

    document: Mapping[str, object]
    lists: Mapping[str, Iterable[Mapping[str, object]]]


Item = Mapping[str, object] | Listed | str
"""An item of a list: its document, or the text of some items with what is between them, indented as deep as items are."""


def pretty_pieces(document: Mapping[str, object], lists: Mapping[str, Iterable[Item]], depth: int = 1) -> Iterator[str]:
    """Yield the text that `pretty` would return if the document had these items in its `lists`, which are empty in it.

    The keys of the lists are `depth` levels deep. No other key at that depth has the same name and an empty list.
    """
    yield from _filled(pretty(document), lists, "  " * depth)


def _filled(rest: str, lists: Mapping[str, Iterable[Item]], margin: str) -> Iterator[str]:
    """Yield a text with its empty lists filled; the keys of the lists are indented by `margin`."""
    for key in sorted(lists):
        # no string holds a newline, and keys at other depths are indented differently
        empty = f'\n{margin}"{key}": []'
        before, _, rest = rest.partition(empty)
        yield before
        lead = f'\n{margin}"{key}": [\n{margin}'
        for part in _parts(lists[key]):
            yield lead
            if isinstance(part, str):
                yield f"  {part}"
            elif isinstance(part, Listed):
                text = indented([part.document])[2:-2].replace("\n", f"\n{margin}")
                yield from _filled(text, part.lists, f"{margin}    ")
            else:
                yield indented(part)[2:-2].replace("\n", f"\n{margin}")
            lead = f",\n{margin}"
        yield f"\n{margin}]" if lead.startswith(",") else empty
    yield rest


def _parts(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items in order, documents in groups: a call to serialise costs as much as an item."""
    for kind, same in groupby(items, key=type):
        if kind in {Listed, str}:
            yield from same
        else:
            while some := list(islice(same, _AT_A_TIME)):
                yield some


def found(result: ScanResult, listed: ScanResult) -> dict[str, Iterator[dict[str, object]]]:
    """Return the lists of a scan's document: the incidents of all findings, and the findings of `listed`, made one at a time."""
    return {
        "incidents": (incident.to_dict() for incident in incidents_of(result.findings)),
        "findings": (finding.to_dict() for finding in listed.findings),
    }


def pretty(document: Mapping[str, object]) -> str:
    """Serialise for a file people may open: sorted keys, two spaces, ASCII (so no byte can drive a terminal)."""
    return indented(document) + "\n"


def no_commands(text: str) -> str:
    """Return JSON text in which no string holds what CI systems obey anywhere in a line; it says the same."""
    return text.replace(COMMAND_START, "#\\u0023[")


def line(document: Mapping[str, object]) -> str:
    """Serialise onto one line."""
    return compact(document) + "\n"


def compact(value: object) -> str:
    """Serialise with ms under keys ending in `timestamp` as RFC 3339 and -1 (none) as null; all else stays as it is."""
    text = no_commands(_encoded(value))
    return _TIMESTAMP.sub(_time, text)  # in the text: visiting every value takes longer than serialising


def _time(found: re.Match[str]) -> str:
    milliseconds = int(found[1])
    if milliseconds == NO_TIMESTAMP:
        return 'timestamp": null'
    text = _rfc3339(milliseconds)
    return found[0] if text is None else f'timestamp": "{text}"'


def indented(value: Mapping[str, object] | Sequence[Mapping[str, object]]) -> str:
    """Serialise as `json.dumps(indent=2)` does, in a third of its time."""
    text = compact(value)
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:  # half a surrogate pair: a file name that is not UTF-8
        return no_commands(json.dumps(json.loads(text), indent=2, allow_nan=False))
