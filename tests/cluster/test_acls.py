"""What docs/managed.md says of ACLs, asked of a broker that has an authorizer."""

import pytest

from tests.cluster.conftest import kaudit
from tests.cluster.test_capture import produce, scenario
from tests.live_brokers.security import USERS, client_properties

pytestmark = pytest.mark.cluster
COMMANDS = {"scan": (), "producers": ("--live",), "capture": ("-o", "copy")}


def test_read_on_the_topic_is_needed_and_enough_and_describe_configs_adds_to_it(newest_broker, certificate, tmp_path):
    newest_broker.play(scenario("granted", produce(3)))
    config = tmp_path / "client.properties"
    config.write_text(client_properties(certificate.pem, "PLAIN", "stranger", USERS["stranger"]))
    url = newest_broker.url("granted", protocol="SASL_SSL")

    def run(command):
        options = [str(tmp_path / each) if each == "copy" else each for each in COMMANDS[command]]
        return kaudit(command, "--command-config", config, *options, url, "-q")

    def grant(operation):
        assert newest_broker.connection.allow("stranger", "topic", "granted", (operation,)) == [0]

    assert [run(command).returncode for command in COMMANDS] == [4, 4, 4]
    grant("READ")
    done = {command: run(command) for command in COMMANDS}
    assert [each.returncode for each in done.values()] == [0, 0, 0]
    assert "not authorised" in done["capture"].stderr
    grant("DESCRIBE_CONFIGS")
    assert (run("capture").returncode, run("capture").stderr) == (0, "")
