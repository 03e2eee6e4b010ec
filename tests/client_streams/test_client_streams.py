"""The model of the producer sends what real Java clients sent, scenario by scenario."""

import pytest

from tests.client_streams import page
from tests.client_streams.model_client import played_by_model
from tests.client_streams.recordings import recorded
from tests.client_streams.scenario import scenarios

SCENARIOS = scenarios()


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
    clients = page.clients()
    for name, scenario in SCENARIOS.items():
        assert set(recorded(name)) == {version for version in clients if scenario.suits(version)}, name


def test_the_page_is_current():
    assert page.PATH.read_text() == page.rendered(), "python -m tests.client_streams.page"
