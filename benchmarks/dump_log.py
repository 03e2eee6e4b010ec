"""kafka-dump-log 3.9 run directly with java; its jars come through Maven."""

import shutil
import subprocess
from pathlib import Path

VERSION = "3.9.1"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>benchmark</groupId><artifactId>benchmark</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""


def dump_log_command(cache: Path) -> list[str] | str:
    """Return the command to which a segment's path is appended to dump it, or the reason why there is none."""
    if shutil.which("java") is None:
        return "no java on the PATH"
    jars = cache / f"kafka-{VERSION}"
    if not any(jars.glob("kafka_2.13-*.jar")):
        if shutil.which("mvn") is None:
            return "no mvn on the PATH to fetch Kafka's jars with"
        jars.mkdir(parents=True, exist_ok=True)
        pom = jars / "pom.xml"
        pom.write_text(POM)
        fetch = ["mvn", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        done = subprocess.run(fetch, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"Maven failed: {done.stdout.strip().splitlines()[-1:] or done.stderr.strip().splitlines()[-1:]}"
    return ["java", "-cp", f"{jars}/*", "kafka.tools.DumpLogSegments", "--files"]
