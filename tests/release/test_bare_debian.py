"""The first command of README.md on Debians that have nothing but their base: no Python, no pip, no certificates."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.release.interpreters import ROOT

pytestmark = pytest.mark.release
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""What this machine trusts beyond Debian's authorities: a mirror beside it may be signed by them."""
ARCHIVE = "http://deb.debian.org/debian"


def first_command():
    """The first indented line below the heading."""
    text = (ROOT / "README.md").read_text().partition("## Set up\n")[2]
    return next(line for line in text.splitlines() if line.startswith("    ")).strip()


@pytest.fixture
def machine(tmp_path, request):
    """A directory that is the root of a Debian, with this checkout in /src; what runs in it is removed with it."""
    root = tmp_path / request.param
    subprocess.run(["debootstrap", "--variant=minbase", request.param, root, ARCHIVE], check=True, capture_output=True)
    shutil.copy("/etc/resolv.conf", root / "etc")
    shutil.copytree(AUTHORITIES, root / AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
    files = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in files:
        if name and (ROOT / name).exists():
            (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / "src" / name)
    yield root
    shutil.rmtree(root)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may change the root directory")
@pytest.mark.parametrize("machine", ["bookworm", "trixie"], indirect=True)
def test_first_command(machine):
    kept = {name: os.environ[name] for name in ("SSL_CERT_FILE", "UV_INDEX_URL", "PIP_INDEX_URL") if name in os.environ}
    here = kept | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    assert subprocess.run(["chroot", machine, "which", "python3"], env=here, check=False).returncode == 1
    for _ in range(2):  # the second time all is there
        done = subprocess.run(
            ["chroot", machine, "sh", "-c", f"cd /src && {first_command()}"],
            env=here, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr  # the sample has findings
        assert "error[KA101] duplicate-batch" in done.stdout
        assert done.stderr.splitlines()[-1].startswith("3 errors, 1 warning")
    assert subprocess.run(["chroot", machine, "/src/.ci/uv", "--version"], env=here, check=False).returncode == 0
