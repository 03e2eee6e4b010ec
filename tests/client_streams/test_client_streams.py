"""The model of the producer sends what real Java clients sent, scenario by scenario."""

import pytest

from tests.client_streams import page
from tests.client_streams.model_client import played_by_model
from tests.client_streams.recordings import recorded
from tests.client_streams.scenario import scenarios

SCENARIOS = scenarios()
PLAYED = [(name, version) for name in SCENARIOS for version in recorded(name)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_model_sends_what_the_client_sent(name):
    scenario = SCENARIOS[name]
    streams = recorded(name)
    assert streams, "recorded with python -m tests.client_streams.record"
    for version, stream in streams.items():
        played = played_by_model(version, scenario)
        if version in scenario.differs:
            assert played.lines != stream.lines, f"{version} differs no more"
        else:
            assert played == stream, version


def test_every_client_was_recorded_in_every_scenario_it_can_play():
    missing = [
        (name, version)
        for name, scenario in SCENARIOS.items()
        for version in page.clients()
        if scenario.suits(version) and version not in recorded(name)
    ]
    assert not missing


def test_the_page_is_current():
    assert page.PATH.read_text() == page.rendered(), "python -m tests.client_streams.page"
