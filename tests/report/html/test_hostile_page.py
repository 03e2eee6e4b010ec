"""Whatever stands in names, ids and messages of a log: it is text in the page, and nobody is misled by it."""

import pytest
from msgspec.structs import replace

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Explanation
from kaudit.model.result import NotAudited
from kaudit.report.html.report_page import render_diff, render_producers, render_scan, render_timeline
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from tests import scan_results as results
from tests.html.page_reader import Page
from tests.logs import Log, data, marker

TEXTS = {
    "markup": "<img src=x onerror=alert(1)>",
    "end of script": "</script><script>alert(1)</script>",
    "comment": "<!--<script>",
    "separators": "a\u2028b\u2029c",
    "lone surrogate": "a\udc80b",  # a byte of a file name that is not UTF-8
    "bidi": "\u202egnp.exe\u2066\u200f",
    "controls": "\x00\x1b[2J\x9b\r\n\t",
    "template": "{{ 7*7 }}{% raw %}",
    "quotes": "\"'&amp;`${1}",
    "long": "x" * 10_000,
}


def scan_of(text):
    finding = results.old_duplicate(
        topic=text,
        message=text,
        file=text,
        log_dir=text,
        replica=text,
        evidence={
            "rule": text,
            "broker": text,
            text: text,
            "offending": {**results.batch(1, 1, 0, 1, 1), "type": text},
        },
        explanations=(Explanation(text, (text,), (text,)), Explanation(text, innocent=True)),
        next=(text,),
        incident=text,
    )
    return results.scan_result(
        finding, results.unknown_start(), inputs=[text], not_audited=[NotAudited(text, text, unreadable=True)]
    )


def structure(page):
    """The elements that a browser would make, and what it would run."""
    kinds = [(tag, sorted((name, value) for name, value in attributes.items())) for tag, attributes, _ in page.elements]
    return kinds, page.executed("script"), page.executed("style"), page.policy


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_findings_cannot_change_the_page(text):
    rendered = render_scan(scan_of(text), RenderOptions(command=text, run={"host": text, "started_at": text}))
    plain = Page(render_scan(scan_of("plain"), RenderOptions(command="plain")))
    page = Page(rendered)

    rendered.encode()
    assert structure(page) == structure(plain)
    assert rendered.count("<noscript>") == rendered.count("</noscript>") == 1
    assert all(character.isprintable() for character in strings(page.model))
    shown = next(found for found in page.model["findings"] if found["code"] == "KA102")["message"]
    assert shown == "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def strings(value):
    """All text in a model, joined."""
    if isinstance(value, dict):
        return "".join(strings(item) for pair in value.items() for item in pair)
    if isinstance(value, list):
        return "".join(map(strings, value))
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_transactional_ids_cannot_change_the_page(tmp_path, text):
    log = Log()
    for batch in (data(7, 0, 0, 2, transactional=True), marker(7, 0), data(8, 0, 0)):
        log.append(batch)
    log.write(tmp_path / "orders-0")
    with local.record(ScanOptions([str(tmp_path)]), SilentProgress()) as recorded:
        named = replace(recorded, transactional_ids=lambda wanted: {7: text})
        rendered = render_scan(recorded.result, RenderOptions(recorded={None: named}))
    page = Page(rendered)
    lanes = page.columns(0)["lanes"]
    names = page.model["partitions"][0]["columns"]["names"]

    rendered.encode()
    assert all(character.isprintable() for character in strings(page.model))
    assert [lanes["producer_id"], lanes["name"], len(names)] == [[7, 8], [0, -1], 1]


def test_names_beyond_all_measure_are_left_out(tmp_path, monkeypatch):
    from kaudit.report.html import report_page

    log = Log()
    for number in range(50):
        log.append(data(number, 0, 0))
    log.write(tmp_path / "orders-0")
    with local.record(ScanOptions([str(tmp_path)]), SilentProgress()) as recorded:
        named = replace(
            recorded, transactional_ids=lambda wanted: {number: f"{number}" * 30_000 for number in range(50)}
        )
        monkeypatch.setattr(report_page, "BUDGET", 700_000)
        rendered = render_scan(recorded.result, RenderOptions(recorded={None: named}))
    page = Page(rendered)

    assert len(rendered) < 700_000
    assert len(page.columns(0)["lanes"]["name"]) == 50
    assert set(page.columns(0)["lanes"]["name"]) == {-1, *range(len(page.model["partitions"][0]["columns"]["names"]))}


def test_other_results_cannot_change_the_page():
    scan = results.hostile()
    pages = {
        "timeline": render_timeline(results.timeline_result([]), RenderOptions()),
        "producers": "".join(render_producers(results.hostile_producers(), RenderOptions())),
        "diff": render_diff(results_of_diff(scan), RenderOptions()),
    }
    for kind, rendered in pages.items():
        page = Page(rendered)
        assert page.model["kind"] == kind
        assert all(character.isprintable() for character in strings(page.model))


def results_of_diff(scan):
    from kaudit.model.replicas import DiffResult, Replica

    return DiffResult(scan, [Replica(results.HOSTILE, results.HOSTILE), Replica("b2", "/b2")])


def test_long_names_keep_the_page_within_its_budget():
    long = "x" * 10_000
    findings = [
        results.old_duplicate(topic=f"{number}{long}", message=long, file=long, evidence={"rule": long}, offset=number)
        for number in range(300)
    ]
    missing = [NotAudited(f"{number}{long}", long) for number in range(300)]
    rendered = render_scan(results.scan_result(*findings, not_audited=missing), RenderOptions())
    model = Page(rendered).model
    left_out = {entry["what"]: entry["count"] for entry in model["overview"]["left_out"]}

    assert len(rendered.encode()) < 5_000_000
    assert left_out["findings"] == 300 - len(model["findings"]) > 0
    assert left_out["incidents"] == 300 - len(model["overview"]["incidents"]) > 0
    assert {found["incident"] for found in model["findings"]} <= {None, *range(len(model["overview"]["incidents"]))}
    assert left_out["paths that were not checked"] == 300 - len(model["overview"]["not_audited"]) > 0
