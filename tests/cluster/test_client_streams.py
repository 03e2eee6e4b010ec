"""Real Java producers, played live: what was recorded of them is what they do."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.client_streams.java_client import JavaClients
from tests.client_streams.recordings import recorded
from tests.client_streams.scenario import scenarios

pytestmark = pytest.mark.cluster

PLAYED = ("retry-in-order", "out-of-order", "leader-moves", "transaction")
CLIENTS = ("2.0.1", "4.4.0")


def test_clients_do_what_was_recorded(tmp_path):
    def play(version):
        with closing(JavaClients(version, tmp_path / version)) as clients:
            return {name: clients.played(scenarios()[name]) for name in PLAYED}

    with ThreadPoolExecutor() as pool:
        for version, streams in zip(CLIENTS, pool.map(play, CLIENTS), strict=True):
            assert streams == {name: recorded(name)[version] for name in PLAYED}
