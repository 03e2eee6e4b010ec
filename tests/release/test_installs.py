"""The wheel in fresh environments: its commands give what the checkout's give, and what it suggests to install installs."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from kaudit import __version__
from kaudit.checks.registry import CHECKS
from kaudit.installation import build_of
from tests.release.conftest import run
from tests.release.interpreters import REQUIRED, ROOT, interpreters
from tests.test_action import INSTALL, SCAN, Runner

pytestmark = pytest.mark.release
FOUND = interpreters()
SAMPLES = ROOT / "samples"
COMMANDS: dict[str, list[object]] = {  # by what of the package they need
    "findings": ["scan", SAMPLES / "damaged", SAMPLES / "hanging-transaction", SAMPLES / "zombie"],
    "codecs": ["scan", "--depth", "records", SAMPLES / "retries"],
    "records": ["inspect", "--records", SAMPLES / "retries", "--output-format", "jsonl"],
    "rules": ["replay", "--broker-version", "2.8.2", "ATTEMPTS"],
    "templates": ["scan", SAMPLES / "duplicates", "--output-format", "html"],
    "pages": ["scan", SAMPLES / "duplicates", "--output-format", "sarif"],
    "texts": ["explain", "KA102"],
    "scenarios": ["simulate", "six-in-flight"],
    "replicas": ["diff", SAMPLES / "replicas" / "b1", SAMPLES / "replicas" / "b2"],
}
BATCH = {"op": "produce", "topic": "orders", "partition": 0, "producer_id": 1, "producer_epoch": 0, "record_count": 2}
BATCH |= {"acks": -1, "api_version": 9, "is_transactional": False}
ATTEMPTS = "".join(json.dumps({**BATCH, "base_sequence": sequence}) + "\n" for sequence in (0, 5))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the checkout says: exit code and output."""
    return _outcomes([sys.executable, "-m", "kaudit"], tmp_path_factory.mktemp("expected"))


def _outcomes(program: list[object], cwd):
    (cwd / "ATTEMPTS").write_text(ATTEMPTS)
    return {name: _outcome([*program, *map(str, words)], cwd) for name, words in COMMANDS.items()}


def _outcome(command, cwd):
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "100", "KAUDIT_REPRODUCIBLE": "1"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_required_python_is_there():
    assert REQUIRED in FOUND


@pytest.mark.parametrize("python", FOUND.values(), ids=lambda python: python.name)
def test_its_commands_give_what_the_checkouts_give(python, wheel, environment, expected):
    installed = environment(python.path)
    installed.install(wheel)
    assert installed.kaudit("--version").stdout == f"kaudit {__version__} (commit {build_of().commit})\n"
    program = installed.directory / "bin" / "kaudit"
    assert _outcomes([program], installed.outside) == expected
    assert [code for code, _, _ in expected.values()] == [1, 1, 0, 0, 1, 1, 0, 0, 1]
    where = run(
        installed.directory / "bin" / "python", "-c", "import kaudit; print(kaudit.__file__)", cwd=installed.outside
    )
    assert where.stdout.startswith(str(installed.directory))
    # what `kaudit checks` lists are modules and pages of the wheel
    assert all(code in installed.kaudit("checks").stdout for code in CHECKS)


@pytest.mark.parametrize("options", [[], ["--seed"]], ids=["uv", "pip"])
def test_the_command_that_a_message_suggests_installs_the_extra(options, wheel, environment):
    installed = environment(FOUND[REQUIRED].path, *options)
    installed.install(wheel)
    url = "kafka://127.0.0.1:1/orders"
    said = installed.kaudit("scan", url, code=2).stderr
    command = said.partition(" needs an extra: ")[2]
    assert ("-m pip install" if options else "uv pip install") in command
    run(*shlex.split(command), cwd=installed.outside)
    assert "needs an extra" not in installed.kaudit("scan", url, code=4).stderr


def test_the_lines_of_the_readme_install_it(environment):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = [line.strip() for line in text.splitlines() if line.startswith('    pip install "kaudit')]
    installed = environment(FOUND[REQUIRED].path)
    installed.install(*shlex.split(line.replace("$KAUDIT_URL", ROOT.as_uri()))[2:])
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert installed.kaudit("--version").stdout == f"kaudit {__version__} (commit {head[:12]})\n"


def test_the_action_installs_its_release_and_scans(wheel, tmp_path):
    runner = Runner(tmp_path)
    published = tmp_path / "team" / "kaudit" / "releases" / "download" / f"v{__version__}"
    published.mkdir(parents=True)
    shutil.copy(wheel, published)
    runner.known["github.server_url"] = tmp_path.as_uri()
    runner.program("python", f'exec {FOUND[REQUIRED].path} "$@"')
    done, outputs = runner.play(INSTALL, version=__version__)
    assert outputs["version"] == f"kaudit {__version__} (commit {build_of().commit})", done.stderr
    runner.python_path = ""
    done, outputs = runner.play(SCAN, paths=str(SAMPLES / "damaged" / "flip-body"))
    assert outputs == {"exit-code": "1", "sarif": "kaudit.sarif"}, done.stderr
    assert "::error title=kaudit KA001 crc-mismatch,file=" in done.stdout


def test_man_pages_and_completions_are_where_shells_look(wheel, environment):
    installed = environment(FOUND[REQUIRED].path)
    installed.install(wheel)
    share = installed.directory / "share"
    pages = sorted(share.glob("man/man1/*.1"))
    assert len(pages) > 15
    assert run("mandoc", "-Tlint", *pages, cwd=installed.outside).stdout == ""
    shown = run("man", "-M", share / "man", "kaudit-scan", cwd=installed.outside, MANPAGER="cat", MANWIDTH="100").stdout
    assert "kaudit scan [OPTIONS] [PATH...]" in shown
    path = f"{installed.directory / 'bin'}:{os.environ['PATH']}"
    bash = f"source {share}/bash-completion/completions/kaudit; COMP_WORDS=(kaudit produ); COMP_CWORD=1; _kaudit_completion kaudit; echo ${{COMPREPLY[@]}}"
    assert run("bash", "--norc", "-c", bash, cwd=installed.outside, PATH=path).stdout == "producers\n"
    fish = run("fish", "-c", "complete -C 'kaudit produ'", cwd=installed.outside, PATH=path, XDG_DATA_DIRS=str(share))
    assert fish.stdout.startswith("producers\t")
    assert (
        "kaudit producers"
        in run("zsh", "-f", "-c", ZSH.replace("SHARE", str(share)), cwd=installed.outside, PATH=path).stdout
    )


ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=(SHARE/zsh/site-functions \$fpath); autoload -Uz compinit; compinit -u -D; echo REA''DY"
zpty -r -m shell answer '*READY*'
zpty -n -w shell $'kaudit produ\t'
zpty -r -m shell answer '*kaudit producers*'
print -r -- "$answer"
"""
