"""The checks' pages: complete, true to the contract, and naming nothing that does not exist."""

import re
import sys
from pathlib import Path

import pytest

from kaudit.checks.listed import HEADINGS, LISTED, find
from kaudit.checks.pages import pages, write
from kaudit.checks.registry import CHECKS
from kaudit.cli.command_tree import command_tree
from kaudit.model.severity import Severity

SOURCES = Path(__file__).parents[2] / "kaudit" / "checks"
DOCS = Path(__file__).parents[2] / "docs"

# Code, name and severities that users rely on: they do not change.
CONTRACT = {
    "KA001": ("crc-mismatch", {"error"}),
    "KA002": ("truncated-tail", {"warning", "error"}),
    "KA003": ("unparsable-bytes", {"error"}),
    "KA004": ("zero-filled", {"note", "error"}),
    "KA005": ("malformed-batch", {"error"}),
    "KA006": ("offset-regression", {"error"}),
    "KA007": ("offset-gap", {"error"}),
    "KA008": ("missing-segment", {"error"}),
    "KA009": ("leader-epoch-regression", {"error"}),
    "KA010": ("limit-exceeded", {"error"}),
    "KA011": ("stray-file", {"warning", "note"}),
    "KA012": ("unreadable-segment", {"warning"}),
    "KA013": ("uncleaned-gap", {"error", "warning"}),
    "KA014": ("log-ends-early", {"error"}),
    "KA015": ("index-beyond-log-end", {"note"}),
    "KA016": ("consumed-beyond-log-end", {"error", "note"}),
    "KA101": ("duplicate-batch", {"error", "warning"}),
    "KA102": ("old-duplicate", {"error"}),
    "KA103": ("overlapping-batch", {"error"}),
    "KA104": ("sequence-gap", {"error", "warning"}),
    "KA105": ("sequence-restart", {"note", "warning"}),
    "KA106": ("unknown-start", {"warning", "note"}),
    "KA107": ("sequence-step-mismatch", {"error"}),
    "KA201": ("stale-epoch", {"error"}),
    "KA202": ("epoch-bump-nonzero", {"error"}),
    "KA203": ("fencing", {"note"}),
    "KA204": ("epoch-nearly-exhausted", {"note", "warning"}),
    "KA205": ("coordinator-epoch-regression", {"warning"}),
    "KA206": ("bump-at-leader-change", {"warning"}),
    "KA207": ("failing-sends", {"error", "warning"}),
    "KA208": ("restart-loop", {"warning"}),
    "KA209": ("mutual-fencing", {"warning"}),
    "KA301": ("hanging-transaction", {"error"}),
    "KA302": ("open-transaction", {"warning", "note"}),
    "KA303": ("nontransactional-in-transaction", {"error"}),
    "KA304": ("late-transactional-write", {"error", "warning"}),
    "KA401": ("unallocated-producer-id", {"warning", "error"}),
    "KA402": ("block-overlap", {"error"}),
    "KA403": ("block-malformed", {"warning"}),
    "KA404": ("producer-id-shared", {"error"}),
    "KA405": ("producer-id-flood", {"note"}),
    "KA406": ("block-range-near-end", {"warning"}),
    "KA305": ("txnindex-mismatch", {"error"}),
    "KA306": ("coordinator-disagrees", {"error"}),
    "KA307": ("illegal-state-transition", {"warning"}),
    "KA308": ("torn-transaction", {"error"}),
    "KA501": ("snapshot-corrupt", {"warning"}),
    "KA503": ("index-broken", {"warning", "note"}),
    "KA504": ("timeindex-broken", {"warning", "note"}),
    "KA505": ("checkpoint-disagrees", {"error", "warning"}),
    "KA506": ("leader-epoch-checkpoint-disagrees", {"warning", "error"}),
    "KA502": ("snapshot-disagrees", {"error", "note"}),
    "KA510": ("remote-log-hole", {"error", "warning"}),
    "KA511": ("needed-segment-deleted", {"error", "warning"}),
    "KA512": ("offsets-not-copied", {"warning"}),
    "KA513": ("unfinished-copies", {"warning", "note"}),
    "KA514": ("orphaned-remote-segments", {"warning", "note"}),
    "KA515": ("overlapping-remote-segments", {"note"}),
    "KA516": ("remote-object-damaged", {"error"}),
    "KA517": ("failing-copies", {"warning"}),
    "KA601": ("replicas-diverged", {"error", "warning", "note"}),
    "KA602": ("replica-behind", {"note"}),
    "KA603": ("only-copy", {"error", "warning", "note"}),
    "KA604": ("mixed-clusters", {"warning"}),
    "KA605": ("duplicate-log-directories", {"error"}),
    "KA606": ("several-topic-ids", {"warning"}),
    "KA612": ("records-cut-off", {"error", "warning", "note"}),
    "KA613": ("recreated-topic", {"warning"}),
    "KA615": ("fresh-records-deleted", {"error"}),
    "KA616": ("future-timestamps", {"warning"}),
    "KA617": ("keyless-records-removed", {"error"}),
    "KA701": ("repeated-across-sessions", {"warning"}),
    "KA702": ("retry-duplicate", {"warning", "note"}),
    "KA703": ("reordered-retry", {"warning"}),
    "KA705": ("missing-on-target", {"error"}),
    "KA706": ("doubled-on-target", {"warning"}),
    "KA707": ("reordered-on-target", {"warning"}),
    "KA708": ("only-on-target", {"warning"}),
    "KA801": ("state-expired", {"warning", "note"}),
    "KA802": ("state-evicted", {"warning", "note"}),
    "KA803": ("recovery-fatal", {"error", "note"}),
    "KA810": ("batches-refused", {"error", "warning", "note"}),
    "KA811": ("producer-forgotten", {"error", "note"}),
    "KA812": ("producer-fenced", {"error", "note"}),
    "KA813": ("transaction-rolled-back", {"error", "warning"}),
    "KA814": ("records-given-up", {"error"}),
    "KA815": ("replica-truncated", {"error", "warning", "note"}),
    "KA816": ("unclean-election", {"warning"}),
    "KA817": ("markers-stopped", {"warning", "note"}),
    "KA818": ("state-rebuilt", {"note"}),
    "KA819": ("epochs-exhausted", {"error", "warning", "note"}),
    "KA900": ("committed-offset-went-back", {"warning", "note"}),
    "KA901": ("two-writers-of-one-offset", {"error"}),
    "KA902": ("committed-offset-set", {"note"}),
    "KA903": ("removed-offset-read-again", {"warning"}),
    "KA904": ("committed-below-log-start", {"warning"}),
    "KA905": ("commits-never-decided", {"warning"}),
    "KA910": ("share-records-archived", {"warning"}),
    "KA911": ("share-records-stay-acquired", {"warning"}),
    "KA912": ("share-start-jumped", {"warning", "note"}),
    "KA915": ("inputs-processed-twice", {"error", "warning"}),
    "KA916": ("inputs-skipped", {"error", "warning"}),
    "KA917": ("offsets-outside-transactions", {"warning"}),
    "KA918": ("outputs-without-inputs", {"error", "warning"}),
}
each = pytest.mark.parametrize("code", list(CHECKS))


@pytest.mark.parametrize("code", CONTRACT)
def test_names_and_severities_that_users_rely_on_do_not_change(code):
    name, severities = CONTRACT[code]
    stated = {CHECKS[code].severity.value} | {
        severity.value for severity in Severity if re.search(rf"\b{severity.value}\b", CHECKS[code].severity_note)
    }
    assert (CHECKS[code].name, stated) == (name, severities)
    assert CHECKS[code].severity is max(Severity(severity) for severity in severities)


@each
def test_the_page_has_its_title_and_every_heading_once_in_order_and_filled(code):
    text = CHECKS[code].page()
    assert text.splitlines()[0] == f"# {code} {CHECKS[code].name}"
    assert tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) == HEADINGS
    for heading, body in CHECKS[code].documentation().items():
        assert len(body) > 20, heading


@each
def test_the_page_is_short_enough_to_read_at_night(code):
    lines = CHECKS[code].page().splitlines()
    assert 25 <= len(lines) <= 65
    prose = [line for line in lines if not line.startswith(("$ ", "  = "))]
    assert max(map(len, prose)) <= 140


@each
def test_commands_and_options_of_a_page_exist(code):
    known = set(command_tree().commands)
    options = _option_names()
    text = CHECKS[code].page()
    for command in re.findall(r"`kaudit ([^`]+)`", text):
        name, *rest = command.split()
        assert name in known, command
        assert {word for word in rest if word.startswith("--")} <= options[name], command
    for option in re.findall(r"`(--[a-z-]+)[^`]*`", text):
        assert option in options["scan"] or f"{option} " in KAFKA_OPTIONS, option


# Options of Kafka's own tools that pages quote on their own.
KAFKA_OPTIONS = "--producer-id --producer-epoch --coordinator-epoch "


def _option_names():

    commands = command_tree().commands
    return {name: {opt for param in command.params for opt in param.opts} for name, command in commands.items()}


@each
def test_codes_a_page_points_to_exist(code):
    text = CHECKS[code].page()
    assert set(re.findall(r"\bKA\d{3}\b", text)) <= set(CHECKS)


def test_there_is_no_page_without_a_check():
    pages_there = {path.stem.replace("_", "-") for path in SOURCES.rglob("*.md")}
    assert pages_there == {found.name for found in CHECKS.values()}


def test_every_family_is_one_package_with_a_title_and_the_index_shows_it():
    packages: dict[str, set[str]] = {}
    for found in CHECKS.values():
        packages.setdefault(found.family, set()).add(found.package)
    assert all(len(package) == 1 for package in packages.values()), packages
    index = pages()["README.md"]
    for (package,) in packages.values():
        title = sys.modules[package].__doc__
        assert title
        assert f"## {title.strip().rstrip('.')}\n" in index


def test_docs_are_as_generated():
    current = pages()
    written = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "checks").glob("*.md")}
    assert written == dict(current), "run: python -m kaudit.checks.pages docs/checks"


def test_writing_removes_pages_of_checks_that_are_no_more(tmp_path):
    (tmp_path / "KA999.md").write_text("old")
    write(tmp_path, pages())
    assert {path.name for path in tmp_path.iterdir()} == set(pages())


def test_a_check_is_found_by_code_and_by_name_in_any_case():
    assert {find("ka101"), find("Duplicate-Batch"), find("KA101")} == {LISTED["KA101"]}
    assert find("KA1") is None
