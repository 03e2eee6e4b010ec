"""The archive Spark's workers need: kaudit and what it imports, with a `bin/python` that finds them."""

import gzip
import io
import re
import secrets
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

import kaudit

ENTRY = Path(kaudit.__file__).with_name("spark_submit.py")
"""The file to give to spark-submit."""
_EXTRAS = ("pyarrow", "pandas", "hdfs-native")
"""Taken along where installed; Spark brings pyspark itself, and that needs pandas in the driver."""
_LAUNCHER = """\
#!/bin/sh
# Runs this bundle with the machine's Python {version}; KAUDIT_PYTHON names another one.
here=$(cd "${{0%/*}}/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
for python in ${{KAUDIT_PYTHON:-}} python{version} python3 python; do
  if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != {tuple})' 2>/dev/null; then
    exec "$python" "$@"
  fi
done
echo "kaudit: this bundle was made with Python {version}, and there is none here; set KAUDIT_PYTHON" >&2
exit 127
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_bundle(target: Path) -> list[str]:
    """Write the archive, whole or not at all; return the distributions in it, with their versions.

    Raises:
        OSError: it cannot be written.

    """
    partial = target.with_name(f".kaudit-{secrets.token_hex(4)}.partial")
    held: list[str] = []
    try:
        with (
            partial.open("xb") as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as archive,
        ):
            _add(archive, "bin/python", _launcher().encode(), 0o755)
            package = Path(kaudit.__file__).parent
            for file in sorted(package.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    _add(archive, f"lib/kaudit/{file.relative_to(package).as_posix()}", file.read_bytes(), 0o644)
            for distribution in _distributions():
                held.append(f"{distribution.metadata['Name']} {distribution.version}")
                for name, file in _files(distribution):
                    _add(archive, f"lib/{name}", file.read_bytes(), 0o755 if ".so" in name else 0o644)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return held


def _launcher() -> str:
    version = sys.version_info[:2]
    return _LAUNCHER.format(version=f"{version[0]}.{version[1]}", tuple=version)


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)  # no time, no owner: the same environment makes the same archive
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def _distributions() -> list[metadata.Distribution]:
    """Everything installed that kaudit needs, itself left out, by name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [*_requirements(metadata.distribution("kaudit")), *_EXTRAS]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra, or needed on another system only
        found[name] = distribution
        waiting += _requirements(distribution)
    return [found[name] for name in sorted(found)]


def _requirements(distribution: metadata.Distribution) -> Iterator[str]:
    for requirement in distribution.requires or ():
        name = _NAME.match(requirement)
        if name is not None and "extra ==" not in requirement:
            yield name[0]


def _files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Files of a distribution that lie in site-packages: scripts and their like stay behind."""
    for entry in distribution.files or ():
        path = PurePosixPath(entry.as_posix())
        file = Path(str(entry.locate()))
        if ".." not in path.parts and path.suffix != ".pyc" and file.is_file():
            yield str(path), file
