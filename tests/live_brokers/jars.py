"""A release's jars from Maven Central, kept below the user's cache directory."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kaudit.broker.releases.version import Version

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kaudit-recorder"
_FIRST_WITH_SCALA_213 = Version.parse("2.4.0")
_FIRST_WITHOUT_LOG4J = Version.parse("2.4.0")
_FIRST_WITH_LOG4J2 = Version.parse("4.0.0")
_RELOAD4J = (("org.slf4j", "slf4j-reload4j", "1.7.36"),)
_LOG4J2 = (
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.3"),
)
_LATE_ZOOKEEPER_3_4 = (Version.parse("2.0.0"), Version.parse("2.4.0"))
_FIRST_FOR_JAVA_9 = Version.parse("1.0.0")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kaudit</groupId><artifactId>recorder</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def jars_of(version: str) -> Path:
    """The folder with the jars of a broker of `version`, fetched with Maven when it is not there yet.

    Raises subprocess.CalledProcessError where Maven fails, for instance for a release that does not exist.
    """
    return _fetched(version, pom(version))


def tiered_jars_of(version: str) -> Path:
    """As `jars_of`, with the classes of Kafka's own tests that keep remote segments in a local directory (LocalTieredStorage)."""
    storage = _DEPENDENCY.format("org.apache.kafka", "kafka-storage", version).replace(
        "</dependency>", "<classifier>test</classifier></dependency>"
    )
    return _fetched(f"tiered-{version}", pom(version).replace("<dependencies>", f"<dependencies>{storage}"))


def tool_jars_of(version: str) -> Path:
    """The folder with the jars of Kafka's command line tools of `version`; as `jars_of`."""
    dependency = _DEPENDENCY.format("org.apache.kafka", "kafka-tools", version)
    return _fetched(f"tools-{version}", _POM.format(dependencies=dependency))


def fetched_jars(name: str, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """The folder, called `name`, with the jars of artifacts (group, name, version) and what they need; as `jars_of`."""
    return _fetched(name, _POM.format(dependencies="".join(_DEPENDENCY.format(*each) for each in artifacts)))


def logging_jars_of(version: str) -> Path | None:
    """The folder with what `version` logs with, as its distribution has it; None where `jars_of` holds it."""
    release = Version.parse(version)
    if release < _FIRST_WITHOUT_LOG4J:
        return None
    bound = _LOG4J2 if release >= _FIRST_WITH_LOG4J2 else _RELOAD4J
    dependencies = "".join(_DEPENDENCY.format(*each) for each in bound)
    return _fetched(f"logging-{bound[0][1]}", _POM.format(dependencies=dependencies))


def _fetched(name: str, wanted: str) -> Path:
    folder = CACHE / name
    fetched = folder / "fetched.xml"
    if fetched.exists() and fetched.read_text() == wanted:
        return folder / "lib"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(wanted)
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    subprocess.run(command, check=True, cwd=folder)
    fetched.write_text(wanted)
    return folder / "lib"


def pom(version: str) -> str:
    """A Maven project that needs nothing but a broker of `version`."""
    release = Version.parse(version)
    scala = "2.13" if release >= _FIRST_WITH_SCALA_213 else "2.12"
    needed = [("org.apache.kafka", f"kafka_{scala}", version)]
    if release < _FIRST_WITHOUT_LOG4J:
        needed.append(("org.slf4j", "slf4j-log4j12", "1.7.25"))  # ZooKeeper 3.4 does not start without log4j
    if _LATE_ZOOKEEPER_3_4[0] <= release < _LATE_ZOOKEEPER_3_4[1]:
        needed.append(("org.apache.zookeeper", "zookeeper", "3.4.12"))  # later ones find no host from Java 14 on
    if release < _FIRST_FOR_JAVA_9:
        needed.append(("javax.xml.bind", "jaxb-api", "2.3.0"))  # Java 11 dropped it
    return _POM.format(dependencies="".join(_DEPENDENCY.format(*each) for each in needed))
