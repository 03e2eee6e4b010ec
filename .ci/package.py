"""Makes what a release consists of, in dist/: `python .ci/package.py`.

A wheel and a source distribution, the software bill of materials (CycloneDX) and the dependencies with their hashes, both
of uv.lock, and checksums of it all. The same commit gives the same bytes: every time is the commit's.
"""

import datetime as dt
import hashlib
import json
import os
import subprocess
import uuid
from pathlib import Path

from kaudit import __version__

DIST = Path("dist")
_EXTRAS = ("--all-extras", "--no-default-groups", "--locked", "--quiet")


def main() -> None:
    """Build the checkout in the working directory."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("[!.]*"):
        old.unlink()
    made_at = int(_run("git", "log", "-1", "--format=%ct"))
    os.environ["SOURCE_DATE_EPOCH"] = str(made_at)
    _run("uv", "build", "--quiet", "--out-dir", str(DIST))
    bill = json.loads(_run("uv", "export", *_EXTRAS, "--format", "cyclonedx1.5"))
    bill["metadata"]["timestamp"] = dt.datetime.fromtimestamp(made_at, dt.UTC).isoformat()
    bill["metadata"]["component"] |= {"version": __version__, "purl": f"pkg:pypi/kaudit@{__version__}"}
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill['components']))}"
    _write(f"kaudit-{__version__}.cdx.json", json.dumps(bill, indent=2) + "\n")
    # what a container has: Spark comes with a cluster
    extras = ("--no-extra", "spark")
    _write(
        "requirements.txt", _run("uv", "export", *_EXTRAS, *extras, "--no-emit-project", "--no-header", "--no-annotate")
    )
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.glob("[!.]*"))]
    _write("SHA256SUMS", "".join(f"{line}\n" for line in sums))


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _write(name: str, text: str) -> None:
    (DIST / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
