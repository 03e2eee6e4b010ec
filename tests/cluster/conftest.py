"""Clusters, file systems and stores as processes on loopback, each started by a fixture and ended with it."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.cluster import brokers
from tests.live_brokers import security
from tests.live_brokers.jvm import free_port

SPARK_HOME = Path(pyspark.__file__).parent
HERE = Path(__file__).parent
POM = HERE / "minicluster-pom.xml"


def wait_for(what, check, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if check():
                return
        except OSError:
            pass  # not listening yet
        time.sleep(0.3)
    raise TimeoutError(what)


def plain_environment(**more):
    """The environment without what pytest's own Spark may have left in it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", **more}


def kaudit(*arguments, **environment):
    """Run kaudit as its own process."""
    return subprocess.run(
        [sys.executable, "-m", "kaudit", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=900, env=plain_environment(**environment),
    )  # fmt: skip


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    archive = tmp_path_factory.mktemp("bundle") / "kaudit-env.tar.gz"
    done = kaudit("spark-bundle", "-o", archive)
    assert done.returncode == 0, done.stderr
    return archive


def accepts_connections(port):
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


@dataclass
class Standalone:
    """A master and its workers."""

    url: str
    processes: list[subprocess.Popen[str]]


@contextmanager
def standalone_cluster(work, hosts, **of_last):
    """A master, and a worker with one core on each of these loopback addresses; `of_last`: variables of the last one."""
    port, ui = free_port(), free_port()
    environment = plain_environment(SPARK_NO_DAEMONIZE="1", SPARK_HOME=str(SPARK_HOME))
    environment.pop("PYTHONPATH", None)
    log = (work / "standalone.log").open("w")

    def start(name, *arguments, **more):
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, env={**environment, **more}, cwd=work)

    url = f"spark://127.0.0.1:{port}"
    master = start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
    started = [master]
    try:
        wait_for("master", lambda: accepts_connections(port))
        for number, host in enumerate(hosts):
            own = work / f"worker{number}"
            started.append(
                start(
                    "worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--webui-port",
                    str(free_port()), "--work-dir", str(own), url, **(of_last if number == len(hosts) - 1 else {}),
                )
            )  # fmt: skip

        def alive():
            with urllib.request.urlopen(f"http://127.0.0.1:{ui}/json/", timeout=5) as answer:
                return len(re.findall(rb'"state"\s*:\s*"ALIVE"', answer.read())) >= len(hosts)

        wait_for("workers", alive)
        yield Standalone(url, started)
    finally:
        for process in started[::-1]:
            process.terminate()
        for process in started:
            process.wait(30)
        log.close()


@pytest.fixture
def standalone(tmp_path):
    """A standalone master with two workers, whose Python knows nothing of kaudit."""
    with standalone_cluster(tmp_path, ["127.0.0.1", "127.0.0.1"]) as cluster:
        yield cluster


@pytest.fixture
def slow_host(tmp_path):
    """A standalone master with two workers as on two hosts; on the second one every task in Python begins late."""
    slow = {"PYTHONPATH": str(HERE), "TASK_DELAY_SECONDS": "4"}
    with standalone_cluster(tmp_path, ["127.0.0.2", "127.0.0.3"], **slow) as cluster:
        yield cluster


@dataclass
class Hdfs:
    """A running HDFS: its URL for clients, and for WebHDFS."""

    url: str
    web: str


@pytest.fixture(scope="session")
def mini_dfs(tmp_path_factory):
    """Start a name node and two data nodes, from Maven (hadoop-minicluster, unshaded: the shaded one's WebHDFS is broken)."""
    work = tmp_path_factory.mktemp("hdfs")
    shutil.copy(POM, work / "pom.xml")
    classpath = work / "classpath"
    subprocess.run(
        ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"],
        cwd=work, check=True, timeout=900, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    path = classpath.read_text()
    subprocess.run(["javac", "-d", work, "-cp", path, HERE / "MiniDfs.java"], check=True, timeout=120)

    @contextmanager
    def start(name, *arguments):
        address = work / name
        with (work / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                # the REST interface's old libraries reach into java.lang
                ["java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", f"{work}:{path}", "MiniDfs",
                 str(work / f"{name}-dfs"), str(address), *map(str, arguments)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, cwd=work,
            )  # fmt: skip
            try:
                wait_for("HDFS", lambda: address.exists() or process.poll() is not None)
                assert address.exists(), (work / f"{name}.log").read_text()[-2000:]
                yield Hdfs(*address.read_text().split())
            finally:
                process.communicate(timeout=60)

    return start


@pytest.fixture(scope="session")
def hdfs(mini_dfs):
    with mini_dfs("plain") as running:
        yield running


@pytest.fixture(scope="session")
def s3():
    """An S3 server; yields the variables that lead to it."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    try:
        wait_for("moto", lambda: urllib.request.urlopen(variables["AWS_ENDPOINT_URL"], timeout=5).close() is None)
        yield variables
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def zookeeper_broker(tmp_path_factory):
    """A broker of 2.8, beside ZooKeeper."""
    with brokers.live(brokers.WITH_ZOOKEEPER, tmp_path_factory.mktemp("brokers") / "zookeeper") as live:
        yield live


@pytest.fixture(scope="session")
def forgetful_broker(tmp_path_factory):
    """A broker of 3.9 that forgets producers after four seconds."""
    home = tmp_path_factory.mktemp("brokers") / "forgetful"
    with brokers.live(brokers.WITH_EITHER, home, brokers.EXPIRY) as live:
        yield live


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """What the newest broker proves itself with."""
    return security.certificate(tmp_path_factory.mktemp("certificate") / "server")


@pytest.fixture(scope="session")
def newest_broker(tmp_path_factory, certificate):
    """The newest broker, with listeners for SSL and SASL_SSL beside the plain one, users and ACLs."""
    home = tmp_path_factory.mktemp("brokers") / "newest"
    with brokers.live_secured(brokers.NEWEST, home, certificate) as live:
        yield live


@pytest.fixture(scope="session", params=["zookeeper_broker", "forgetful_broker", "newest_broker"])
def each_broker(request):
    """Each of the three releases in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory):
    """Three brokers of the newest release by node id; a test that stops one starts it again."""
    with brokers.live_replicas(brokers.NEWEST, tmp_path_factory.mktemp("brokers") / "three") as nodes:
        yield nodes
