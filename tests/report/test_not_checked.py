"""The end of a report, to the letter: what was not checked, the baseline, and whose rules were applied."""

import pytest

from kaudit.model.result import BaselineComparison, BrokerVersions, Expected, NotAudited
from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.not_checked import closing_sections, rules_text, unchecked_sections
from tests.scan_results import scan_result


def rules(requested, at_least=None, at_most=None, *, profile=None, because=()):
    return BrokerVersions(requested, profile, at_least, at_most, because)


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        (rules("auto"), "broker version unknown"),
        (rules("2.8"), "broker version 2.8"),
        (rules("auto", profile="strict"), "broker version strict"),
        (rules("auto", "2.8.0", "2.8.0"), "broker 2.8.0"),
        (rules("auto", "2.0.0", "2.4.1"), "brokers 2.0.0 to 2.4.1"),
        (rules("auto", "2.0.0", None), "brokers 2.0.0 to any"),
        (rules("auto", None, "2.4.1"), "brokers any to 2.4.1"),
    ],
)
def test_whose_rules(versions, text):
    assert rules_text(versions) == text


@pytest.mark.parametrize(
    ("versions", "verbose", "lines"),
    [
        (rules("auto", "2.0.0", "2.4.1"), False, ["Rules of brokers 2.0.0 to 2.4.1 (--broker-version: stricter)"]),
        (rules("auto", "2.8.0", "2.8.0"), False, ["Rules of broker 2.8.0"]),
        (rules("2.0..2.4", "2.0.0", "2.4.1"), False, ["Rules of brokers 2.0.0 to 2.4.1"]),
        (
            rules("auto", "2.0.0", "2.4.1", because=["a", "b"]), False,
            ["Rules of brokers 2.0.0 to 2.4.1 (-v: why, --broker-version: stricter)"],
        ),
        (
            rules("auto", "2.8.0", "2.8.0", because=["a", "b"]), True,
            ["Rules of broker 2.8.0", "  - a", "  - b"],
        ),
    ],
)  # fmt: skip
def test_how_to_know_better(versions, verbose, lines):
    result = scan_result(broker_version=versions)
    assert closing_sections(result, RenderOptions(verbose=verbose))[-1] == lines


def sections(**changes):
    return [
        section for section in unchecked_sections(scan_result(**{"not_audited": [], **changes}), Console()) if section
    ]


def test_what_could_not_be_read_or_was_not_checked():
    """By reason, three paths of each."""
    items = [NotAudited(f"p{number}", "compacted") for number in range(5)]
    items += [NotAudited(f"q{number}", "no znode") for number in range(3)]
    items.append(NotAudited("r", "Permission denied", unreadable=True))
    assert sections(not_audited=items) == [
        ["Could not be read:", "  - r: Permission denied"],
        ["Not checked:", "  - p0, p1, p2 and 2 more (json lists all): compacted", "  - q0, q1, q2: no znode"],
    ]


def entries(count):
    return [Expected(f"f{number}", "KA101", f"s{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("compared", "lines"),
    [
        ({"known": 1234}, ["Baseline b.toml: 1,234 known"]),
        ({"known": 2, "out_of_scope": entries(3)}, ["Baseline b.toml: 2 known, 3 not seen because out of scope"]),
        (
            {"known": 0, "stale": entries(3)},
            [
                "Baseline b.toml: 0 known",
                *(f"  - f{number} stale, no longer found: s{number}" for number in range(3)),
                "  kaudit baseline prune removes the stale entries",
            ],
        ),
        (
            {"known": 0, "expired": entries(5)},
            [
                "Baseline b.toml: 0 known",
                *(f"  - f{number} expired, counted as new again: s{number}" for number in range(3)),
                "  - 2 more expired (json lists all)",
            ],
        ),
    ],
)
def test_what_the_baseline_knows(compared, lines):
    assert sections(baseline=BaselineComparison("b.toml", **compared)) == [lines]


def test_replicas_of_a_partition_are_named_once():
    copies = [NotAudited(name, "cut") for name in ("a-0", "b-0", "a-0", "c-0", "d-0")]
    (section, *_) = [lines for lines in unchecked_sections(scan_result(not_audited=copies), Console()) if lines]
    assert section == ["Not checked:", "  - a-0 (2 copies), b-0, c-0 and 1 more (json lists all): cut"]
