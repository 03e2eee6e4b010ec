"""Searching for schedules: every outcome is found and cut down to a few events, and what is written does it again.

Outcomes are those the model wrote down in its truth, and the events are counted in the scenario's own tables.
"""

import io
import json
import tomllib
from typing import Any, cast

import pytest

from kaudit.cli.app import run
from kaudit.cli.commands.simulate import OutcomeChoice
from kaudit.simulate.output.truth import OUTCOMES, SUMMARY, Truth
from kaudit.simulate.scenario.reading import ORDER, parse_document, parse_scenario, scenario_text
from kaudit.simulate.scenario.tables import scenario_toml
from kaudit.simulate.search import search
from kaudit.simulate.search.search import Search
from kaudit.simulate.search.shrinking import ddmin
from kaudit.simulate.simulation import Simulation

MOST_EVENTS = 12


class Counted:
    """A progress that counts, and ends the search after `most` schedules."""

    def __init__(self, most=10**9):
        self.schedules = 0
        self.most = most

    def tried(self, schedules, smallest):
        assert schedules == self.schedules + 1
        self.schedules = schedules

    def stopped(self):
        return self.schedules >= self.most


def searched(name, outcome, tries, seed=0, most=10**9):
    progress = Counted(most)
    return Search(outcome, seed, progress.tried, progress.stopped).run(parse_document(scenario_text(name)), name, tries)


def events(document):
    """Count what happens in a scenario's TOML: records sent, messages lost, faults."""
    return sum(table.get("records", 10) for table in document["producers"]) + sum(
        table.get("times", 1) for table in document.get("faults", ())
    )


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("anything", "acknowledged-lost"),
        ("anything", "duplicate"),
        ("anything", "reordered"),
        ("acks1-leader-dies", "acknowledged-lost"),
        ("unclean-election", "acknowledged-lost"),
        ("six-in-flight", "duplicate"),
        ("forgotten-duplicate", "duplicate"),
        ("retry-dup", "reordered"),
        ("retry-without-idempotence", "reordered"),
        ("hanging-transaction", "hanging"),
    ],
)
def test_an_outcome_is_found_shrunk_and_repeated_by_what_is_written(name, outcome, tmp_path, capsys):
    file = tmp_path / "found.toml"
    assert run(["simulate", name, "--find", outcome, "--tries", "60", "-o", str(file)]) == 1
    assert f"Run it again: kaudit simulate {file}" in capsys.readouterr().out.replace("\n", " ")
    document = tomllib.loads(file.read_text())
    assert "random" not in document
    assert events(document) <= MOST_EVENTS
    counts = []
    for _ in range(2):
        assert run(["simulate", str(file), "--output-format", "json"]) == 0
        counts.append(json.loads(capsys.readouterr().out)["summary"])
    assert counts[0] == counts[1]
    assert counts[0][OUTCOMES[outcome]] > 0


def test_the_same_seed_finds_the_same_and_another_one_may_not():
    first, again, other = (searched("anything", "reordered", 60, seed) for seed in (0, 0, 1))
    assert first.schedule is not None
    assert again.schedule is not None
    assert other.schedule is not None
    assert first.schedule.document == again.schedule.document
    assert (first.tried, first.shrinking_tried) == (again.tried, again.shrinking_tried)
    assert other.schedule.document != first.schedule.document


def test_every_event_of_what_was_found_is_needed():
    """Leave out each fault, and each record: it does not happen any more."""
    found = searched("acks1-leader-dies", "acknowledged-lost", 10).schedule
    assert found is not None
    document = dict(found.document)
    for index in range(len(document["faults"])):
        faults = [fault for number, fault in enumerate(document["faults"]) if number != index]
        scenario = parse_scenario(scenario_toml({**document, "faults": faults}), "less")
        assert Truth(Simulation(scenario, scenario.seed, 0).run()).summary()["acknowledged_but_lost"] == 0


def test_what_was_not_found_is_no_proof(capsys):
    assert run(["simulate", "five-in-flight", "--find", "reordered", "--tries", "40"]) == 0
    assert capsys.readouterr().out.replace("\n", " ") == (
        "reordered: 40 schedules of five-in-flight tried; in none was a record written out of order. "
        "That is no proof that it cannot happen. "
    )


def test_json_says_what_was_found_or_that_nothing_was(capsys):
    assert run(["simulate", "six-in-flight", "--find", "duplicate", "--output-format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["found"]
    assert found["event_count"] == events(tomllib.loads(found["toml"]))
    assert run(["simulate", "six-in-flight", "--find", "hanging", "--tries", "3", "--output-format", "json"]) == 0
    nothing = json.loads(capsys.readouterr().out)
    assert (nothing["found"], nothing["toml"], nothing["schedules_tried"]) == (False, None, 3)


def test_an_interrupted_search_has_the_smallest_so_far():
    found = searched("unclean-election", "acknowledged-lost", 10, most=20)
    assert found.interrupted
    assert found.schedule is not None
    assert found.schedule.events < found.shrunk_from


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tries", "5"], "--tries is for"),
        (["--find", "duplicate", "--output-format", "html"], "--find shows what it found as terminal or json"),
        (["--find", "twice"], "twice"),
    ],
)
def test_usage(arguments, expected, capsys):
    assert run(["simulate", "six-in-flight", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_the_choices_are_the_outcomes_of_the_truth():
    assert {choice.value for choice in OutcomeChoice} == set(OUTCOMES)
    assert set(OUTCOMES.values()) <= set(SUMMARY)


@pytest.mark.parametrize("name", ORDER)
def test_a_scenario_written_again_is_the_same_scenario(name):
    text = scenario_text(name)
    again = scenario_toml(parse_document(text))
    assert tomllib.loads(again) == tomllib.loads(text)
    assert parse_scenario(again, name) == parse_scenario(text, name)


def test_odd_strings_and_dates_are_written_as_toml():
    document = {
        "a b": 'x"\\\n\x7f\x00é😀',
        "starts_at": tomllib.loads("a = 2026-01-31T08:00:00Z")["a"],
        "t": {"k.v": [1, 2.5], "none": [], "inner": {}, "list": [{"a": 1}, {}]},
        "tables": [{"b": True}, {"c": []}],
        "mixed": [{"b": 1}, 2],
        "nothing": [],
    }
    assert tomllib.load(io.BytesIO(scenario_toml(document).encode())) == document


def test_ddmin_keeps_what_is_needed():
    tried = []

    def needed(items):
        tried.append(items)
        return {3, 17} <= set(items)

    assert ddmin(list(range(20)), needed) == [3, 17]
    assert len(tried) < 80


class Numbered:
    """A schedule that counts as so many events, and is cut down to `small` ones."""

    def __init__(self, name, events, small):
        self.name, self.events, self.small = name, events, small

    def play(self):
        return self.name


@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        # (events, after shrinking): name of the smallest, events it had before, schedules tried
        ([(30, 20), (40, 20), (50, 19), (60, 25)], ("2", 50, 4)),
        ([(30, 20), (40, 20)], ("0", 30, 2)),  # of equals the first
        ([(30, 20), (40, 12), (50, 1)], ("1", 40, 2)),  # small enough
        ([(30, 13), (40, 12)], ("1", 40, 2)),
    ],
)
def test_the_smallest_schedule_is_kept_and_a_small_one_ends_the_search(monkeypatch, schedules, expected):
    numbered = [Numbered(str(number), *each) for number, each in enumerate(schedules)]
    monkeypatch.setattr(search, "Candidates", lambda *_: numbered)
    monkeypatch.setattr(search, "does", lambda played, outcome: outcome == "duplicate" and played in "0123")
    monkeypatch.setattr(Search, "_shrink", lambda _, schedule: Numbered(schedule.name, schedule.small, 0))
    progress = Counted()
    found = Search("duplicate", 0, progress.tried, progress.stopped).run({}, "any", 100)
    smallest = cast("Any", found.schedule)
    assert (smallest.name, found.shrunk_from, found.tried) == expected
    assert (progress.schedules, found.interrupted) == (found.tried, False)
