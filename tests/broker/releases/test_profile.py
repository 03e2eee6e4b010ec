"""Releases and the table of switches."""

import ast
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

import kaudit
from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.profile import (
    UnknownVersionError,
    VersionRange,
    all_releases,
    profile_for,
    profile_groups,
)
from kaudit.broker.releases.switches import Switches, switches
from kaudit.broker.releases.version import Version


def v(text: str) -> Version:
    return Version.parse(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.0.1", (2, 0, 1)),
        ("0.11.0.3", (0, 11, 0, 3)),
        ("4.2", (4, 2)),
        ("3.9.1-SNAPSHOT", (3, 9, 1)),
        ("2.8.2.1", (2, 8, 2)),
        ("v3.6.0 ", (3, 6, 0)),
    ],
)
def test_versions_are_read_with_whatever_follows(text, numbers):
    assert v(text).numbers == numbers


@pytest.mark.parametrize("text", ["", "four", "4", "-2.0", "2..1"])
def test_what_is_not_a_version_is_refused(text):
    with pytest.raises(ValueError, match="not a Kafka version"):
        v(text)


def test_versions_are_ordered_by_number():
    assert v("0.11.0.3") < v("1.0.0") < v("2.0.1") < v("2.10.0") < v("4.0.0")


def test_a_line_between_those_that_got_a_fix_has_not_got_it():
    """KAFKA-6003: in 0.11.0.2 and 1.0.0; KAFKA-6683: in 1.0.2 and 1.1.0. Nobody backported to a line that is not named."""
    fixed_in = (v("2.6.3"), v("2.8.1"))
    assert [v(text).includes_fix(*fixed_in) for text in ("2.5.9", "2.6.2", "2.6.3", "2.7.2", "2.8.0", "2.8.1", "3.0.0")] == [
        False, False, True, False, False, True, True,
    ]  # fmt: skip


def test_a_fix_on_an_older_line_does_not_reach_the_first_release_of_a_newer_one():
    fixed_in = (v("4.0.1"), v("4.1.1"), v("4.2.0"))
    assert [v(text).includes_fix(*fixed_in) for text in ("4.0.0", "4.0.1", "4.1.0", "4.1.1", "4.2.0", "4.3.0")] == [
        False, True, False, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("window", {"0.11.0.3": 1, "1.0.0": 5, "4.4.0": 5}),
        ("accepts_unknown_nonzero", {"2.4.1": False, "2.5.0": True}),
        ("forgets_on_log_start_advance", {"2.3.1": True, "2.4.0": False}),
        ("marker_only_nonzero_error", {"2.0.0": 45, "2.0.1": 59, "2.4.1": 59, "2.5.0": 45}),
        ("unknown_producer_error", {"0.11.0.3": 45, "1.0.2": 59}),
        ("old_duplicate_error", {"0.11.0.3": 45, "1.0.1": 46, "1.0.2": 45, "1.1.0": 45}),
        ("offset_delta_from_sequences", {"2.1.0": True, "2.1.1": False, "2.0.1": True, "2.2.0": False}),
        ("marker_checks_bind_replicas", {"2.3.1": True, "2.4.0": True, "2.4.1": False}),
        ("expiration_config", {"3.3.2": "transactional.id.expiration.ms", "3.4.0": "producer.id.expiration.ms"}),
        ("transaction_version2", {"3.9.1": False, "4.0.0": True}),
        ("tv2_starts_at_zero", {"4.0.1": False, "4.1.0": True}),
        ("migration_repeats_a_block", {"3.5.1": True, "3.5.2": False, "3.6.0": True, "3.6.1": False}),
    ],
)
def test_each_switch_turns_where_its_ticket_shipped(switch, expected):
    assert {version: getattr(profile_for(version), switch) for version in expected} == expected


def test_every_switch_has_a_meaning_and_changes_with_known_releases_and_sources():
    for switch in switches().values():
        assert switch.meaning
        assert not switch.meaning.endswith(".")
        assert switch.changes
        for change in switch.changes:
            assert change.source
            assert set(change.since) <= set(all_releases())


def test_every_change_has_a_value_of_the_switchs_type_and_changes_it():
    types = get_type_hints(Switches)
    for switch in switches().values():
        values = [switch.default, *(change.value for change in switch.changes)]
        for before, after in pairwise(values):
            assert before != after
        for value in values:
            msgspec.convert(value, types[switch.name])


def test_changes_are_listed_oldest_first():
    for switch in switches().values():
        first = [min(change.since) for change in switch.changes]
        assert first == sorted(first)


def test_a_switch_is_read_by_some_module_or_marked_informative():
    root = Path(kaudit.__file__).parent
    read = set()
    for module in root.rglob("*.py"):
        if module.name == "switches.py":
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Attribute):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
    informative = {switch.name for switch in switches().values() if switch.informative}
    assert informative == switches().keys() - read


def test_a_line_means_its_newest_release():
    assert profile_for("2.0").marker_only_nonzero_error is KafkaError.UNKNOWN_PRODUCER_ID
    assert profile_for("0.11").timeout_bumps_epoch


def test_releases_newer_than_the_newest_have_its_rules():
    assert not profile_for("4.9.1").differences(profile_for("4.4.0"))


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("0.10.2.1", ["0.11.0.0", "0.11.0.1", "0.11.0.2"]),
        ("2.0.7", ["2.0.0", "2.0.1", "2.1.0"]),
        ("7.6.0", ["4.3.1", "4.4.0"]),
    ],
)
def test_an_unknown_version_names_the_nearest(asked, nearest):
    with pytest.raises(UnknownVersionError) as caught:
        profile_for(asked)
    assert [str(version) for version in caught.value.nearest] == nearest


def test_nonsense_still_gets_suggestions():
    with pytest.raises(UnknownVersionError, match="nearest known"):
        profile_for("latest")


def test_a_range_holds_each_set_of_rules_once():
    profiles = VersionRange(v("2.4.0"), v("2.5.1")).profiles()
    assert [str(profile.version) for profile in profiles] == ["2.4.0", "2.4.1", "2.5.0", "2.5.1"]
    assert VersionRange(v("2.0.0"), v("2.8.2")).any(lambda profile: profile.forgets_on_log_start_advance)
    assert not VersionRange(v("2.4.0"), v("2.8.2")).any(lambda profile: profile.forgets_on_log_start_advance)
    assert VersionRange(v("2.8.0"), v("2.8.2")).is_exact


def test_groups_cover_all_releases_once():
    groups = profile_groups()
    assert [version for _, versions in groups for version in versions] == list(all_releases())
    assert all(profile.has_rules_of(profile_for(version)) for profile, versions in groups for version in versions)
    assert not any(before.has_rules_of(after) for (before, _), (after, _) in pairwise(groups))


def test_the_last_release_of_each_line():
    """The tags of Kafka's repository; of the lines that still get fixes, those that were released when this was written."""
    last = (
        "0.11.0.3 1.0.2 1.1.1 2.0.1 2.1.1 2.2.2 2.3.1 2.4.1 2.5.1 2.6.3 2.7.2 2.8.2 3.0.2 3.1.2 3.2.3 3.3.2 3.4.1 3.5.2"
    )
    newest = {version.line: str(version) for version in all_releases()}
    assert [newest[v(text).line] for text in last.split()] == last.split()
    assert [str(known) for known in all_releases() if known.line in {(3, 6), (3, 7), (3, 8)}] == [
        "3.6.0", "3.6.1", "3.6.2", "3.7.0", "3.7.1", "3.7.2", "3.8.0", "3.8.1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("2.4.2", ["2.4.0", "2.4.1", "2.5.0"]),
        ("0.11.0.4", ["0.11.0.2", "0.11.0.3", "1.0.0"]),
        ("5.0", ["4.3.1", "4.4.0"]),
    ],
)
def test_two_known_releases_below_and_one_above(asked, nearest):
    with pytest.raises(UnknownVersionError) as caught:
        profile_for(asked)
    assert [str(version) for version in caught.value.nearest] == nearest


@pytest.mark.parametrize(("asked", "found"), [("4.2", "4.2"), ("4.9", "4.9"), ("4.4.7", "4.4.7")])
def test_a_profile_has_the_version_that_was_asked_for(asked, found):
    assert str(profile_for(asked).version) == found
