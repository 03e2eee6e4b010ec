"""The document: exactly its own styles and scripts are allowed, and no text of a log becomes markup."""

import base64
import hashlib

import pytest

from kaudit.report.html.document import REPORT_SCRIPTS, REPORT_STYLES, document
from kaudit.report.html.page_model import json_for_script
from tests.html.page_reader import Page

_HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\u2028\u2029",
    "\ud800 alone",
    "\u202eright to left\u2066",
    "\x00\x1b[31m\x07",
    "{{ 7 * 7 }}{% raw %}",
    "'\"&amp;`",
    "x" * 10_000,
]


def _page(text=""):
    return document(
        "report.html",
        title=text,
        styles=REPORT_STYLES,
        scripts=REPORT_SCRIPTS,
        data={"page": {"name": text, text: 1}},
        context={"verdict": [text], "tables": [{"caption": text, "headings": [text], "rows": [[text]], "more": text}]},
    )


def test_the_policy_allows_the_scripts_and_styles_in_the_file_and_nothing_else():
    page = Page(_page())
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))

    for tag in ("script", "style"):
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in page.executed(tag)]
        assert rules[f"{tag}-src"].split() == [f"'sha256-{digest}'" for digest in hashes]
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in page.policy


@pytest.mark.parametrize("text", _HOSTILE)
def test_no_text_becomes_markup_or_is_hidden(text):
    plain, hostile = Page(_page("plain")), _page(text)
    page = Page(hostile)
    for asset in page.executed("style") + page.executed("script"):
        hostile = hostile.replace(asset, "")

    hostile.encode()  # no lone surrogates
    assert [element[:2] for element in page.elements] == [element[:2] for element in plain.elements]
    assert page.executed("script") == plain.executed("script")
    assert "49" not in page.model["name"]
    assert all(character.isprintable() or character == "\n" for character in hostile)


def test_json_holds_nothing_that_ends_a_script():
    text = json_for_script({"name": "</script><!-- & "})

    assert not set("<>&") & set(text)
