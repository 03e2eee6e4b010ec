"""HDFS that wants Kerberos: a KDC, a name node and data nodes as processes; tickets, keytabs and delegation tokens as clients have them."""

import json
import os
import subprocess
import sys

import pytest

from tests.cluster.conftest import HERE, SPARK_HOME, kaudit, plain_environment, standalone_cluster
from tests.cluster.test_stores import put_on_hdfs

pytestmark = pytest.mark.cluster
SAMPLE = HERE.parents[1] / "samples" / "zombie"
LOGS = "/user/auditor/logs"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("kerberos")


@pytest.fixture(scope="module")
def auditor(place):
    """What a user who may read has, by the way that names it: each is enough."""
    tickets = {"KRB5_CONFIG": f"{place}/krb5.conf", "KRB5CCNAME": f"{place}/none", "HADOOP_CONF_DIR": str(place)}
    return {
        "ticket": tickets | {"KRB5CCNAME": f"{place}/auditor.ccache"},
        "keytab": tickets | {"KRB5CCNAME": "MEMORY:", "KRB5_CLIENT_KTNAME": f"{place}/auditor.keytab"},
        "tokens": tickets | {"HADOOP_TOKEN_FILE_LOCATION": f"{place}/auditor.tokens"},
        "nothing": tickets,
    }


@pytest.fixture(scope="module")
def secured(mini_dfs, place, auditor):
    """A secured HDFS with a sample."""
    with mini_dfs("secured", place) as running:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in auditor["ticket"].items():
                patched.setenv(name, value)
            put_on_hdfs(running, SAMPLE, LOGS)
        yield running


@pytest.fixture(scope="module")
def expected():
    return findings(kaudit("scan", SAMPLE, "--output-format", "json"))


def findings(done):
    assert done.returncode == 1, done.stderr
    found = [finding["fingerprint"] for finding in json.loads(done.stdout)["findings"]]
    assert len(found) == 5
    return found


@pytest.mark.parametrize("way", ["ticket", "keytab", "tokens"])
def test_each_way_to_prove_who_one_is(secured, auditor, way, expected):
    done = kaudit("scan", f"{secured.url}{LOGS}", "--output-format", "json", **auditor[way])
    assert findings(done) == expected


def test_spark_submit_hands_the_keytab_to_a_standalone_cluster(secured, auditor, place, tmp_path, expected):
    """The executors were started without any of it. The driver's JVM logs in by Spark's options, the processes that read by KRB5_CLIENT_KTNAME."""
    script = HERE.parents[1] / "kaudit" / "spark_submit.py"
    with standalone_cluster(tmp_path, ["127.0.0.1"]) as cluster:
        command = [
            SPARK_HOME / "bin" / "spark-submit", "--master", cluster.url, "--principal", "auditor@EXAMPLE.COM",
            "--keytab", f"{place}/auditor.keytab", "--driver-java-options", f"-Djava.security.krb5.conf={place}/krb5.conf",
            script, "scan", f"{secured.url}{LOGS}", "--output-format", "json",
        ]  # fmt: skip
        environment = plain_environment(**auditor["keytab"], PYSPARK_PYTHON=sys.executable)
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=False, timeout=300, env=environment
        )
    assert findings(done) == expected


def test_who_proves_nothing_is_refused_in_one_line(secured, auditor):
    done = kaudit("scan", f"{secured.url}{LOGS}", **auditor["nothing"])
    assert (done.returncode, done.stderr.count("\n")) == (4, 1), done.stderr
    assert done.stderr.startswith(
        f"kaudit: nothing to audit under {secured.url}{LOGS}: HDFS: No credentials were supplied"
    )


def test_without_a_configuration_kerberos_is_named_as_what_may_be_missing(secured, auditor):
    ticket = auditor["ticket"] | {"HADOOP_CONF_DIR": os.devnull, "KAUDIT_ANSWER_SECONDS": "2"}
    done = kaudit("scan", f"{secured.url}{LOGS}", **ticket)
    assert done.returncode == 4
    assert done.stderr == (
        f"kaudit: nothing to audit under {secured.url}{LOGS}: no answer within 2 s; "
        "if it wants Kerberos, HADOOP_CONF_DIR must lead to a core-site.xml that says so\n"
    )


def test_what_the_user_may_not_read_is_named_in_one_line(secured, auditor):
    done = kaudit("scan", f"{secured.url}/private", **auditor["tokens"])
    assert done.returncode == 4
    assert done.stderr.startswith(
        f"kaudit: nothing to audit under {secured.url}/private: HDFS: Permission denied: user=auditor"
    )
    assert done.stderr.count("\n") == 1
    assert "\\" not in done.stderr
