"""A check declares all that is known of it: its incidents, its causes in logs, and whether simulated schedules leave it."""

import functools
from pathlib import Path

import pytest

from kaudit.checks import listed
from kaudit.checks.check import Check, NoneBecause, Simulated, check
from kaudit.checks.incident_rules import REPLICAS
from kaudit.checks.pages import listing
from kaudit.checks.registry import CHECKS
from kaudit.histories.explain import EXPLAINED, findings_of_leader
from kaudit.model.severity import Severity
from kaudit.simulate.scenario.reading import parse_document, scenario_text
from kaudit.simulate.search.schedule import schedule_of

SCHEDULES = Path(__file__).with_name("schedules")
"""Schedules that leave findings of checks of which no shipped one does, by code; found by random search, then made smaller."""
SIMULATED = {code: found.simulated for code, found in CHECKS.items() if isinstance(found.simulated, Simulated)}


def test_the_list_of_checks_is_what_their_modules_declare() -> None:
    written = Path(listed.__file__).with_name(listed.TABLE).read_text(encoding="utf-8")
    assert written == listing(), "run: python -m kaudit.checks.pages docs/checks"


@pytest.mark.parametrize("silent", ["incident", "caused_by", "simulated"])
def test_a_check_cannot_be_silent(silent: str) -> None:
    declared = {"incident": (), "caused_by": (), "simulated": Simulated()}
    del declared[silent]
    with pytest.raises(TypeError, match=silent):
        check("KA999", severity=Severity.NOTE, summary="", **declared)  # type: ignore[arg-type]


@pytest.mark.parametrize("each", CHECKS.values(), ids=list(CHECKS))
def test_a_check_has_incidents_causes_and_schedules_or_a_reason_why_not(each: Check) -> None:
    for declared in (each.incident, each.caused_by, each.simulated):
        if isinstance(declared, NoneBecause):
            assert len(declared.reason.split()) > 3
    assert isinstance(each.incident, NoneBecause) or each.memberships
    assert isinstance(each.caused_by, NoneBecause) or each.causes
    assert len({id(cause) for cause in each.causes}) == len(each.causes)
    rules = [member.rule for member in each.memberships]
    assert len(set(map(id, rules))) == len(rules)
    assert REPLICAS not in rules


def test_histories_explain_the_checks_that_schedules_leave() -> None:
    assert set(EXPLAINED) == set(SIMULATED)


@functools.cache
def codes_of(scenario: str) -> frozenset[str]:
    """The codes of the findings in the logs of a scenario's brokers; `scenario` is its TOML."""
    schedule = schedule_of(parse_document(scenario), "schedule")
    assert schedule is not None
    truth = schedule.play()
    brokers = truth.simulation.cluster.brokers
    return frozenset(found.code for broker in brokers for found in findings_of_leader(truth, broker))


@pytest.mark.parametrize("code", [code for code, simulated in SIMULATED.items() if simulated.scenario])
def test_the_shipped_schedule_that_a_check_names_leaves_its_finding(code: str) -> None:
    assert code in codes_of(scenario_text(SIMULATED[code].scenario))


@pytest.mark.parametrize("code", [code for code, simulated in SIMULATED.items() if not simulated.scenario])
def test_a_schedule_that_a_search_found_leaves_the_finding_of_a_check_that_no_shipped_one_leaves(code: str) -> None:
    assert code in codes_of((SCHEDULES / f"{code}.toml").read_text())
