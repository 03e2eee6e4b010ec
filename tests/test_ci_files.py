"""The files that other services read: workflows, the GitLab job, the container file. Valid, pinned, and played where that can be done."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATE = (ROOT / ".gitlab" / "kaudit.yml").read_text(encoding="utf-8")
SAMPLES = ROOT / "samples"


def check_schema(name, *files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", name, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_and_action_are_valid():
    check_schema("vendor.github-workflows", *WORKFLOWS)
    check_schema("vendor.github-actions", ROOT / "action.yml")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_actions_by_their_hash_and_name_the_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_and_a_job_says_what_else_it_may(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, name
        # no input of others becomes part of a script
        assert not any("${{" in step.get("run", "") for step in job["steps"]), name
        if "pypi" in str(job.get("environment")):
            assert job["permissions"] == {"id-token": "write"}


def test_the_release_tests_before_it_builds_and_builds_before_it_publishes():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "test": None, "build": "test", "release": "build", "publish": "release",
    }  # fmt: skip


def rendered(**inputs):
    """The GitLab job with its inputs filled in, as GitLab does: in the text of every value."""
    about, job = yaml.safe_load_all(TEMPLATE)
    given = {name: spec.get("default") for name, spec in about["spec"]["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    assert None not in given.values()

    def fill(value):
        if isinstance(value, str):
            return re.sub(r"\$\[\[ inputs\.([a-z-]+) \]\]", lambda match: given[match[1]], value)
        if isinstance(value, dict):
            return {fill(key): fill(each) for key, each in value.items()}
        return [fill(each) for each in value] if isinstance(value, list) else value

    return fill(job)


@pytest.fixture
def play(tmp_path):
    """Run the job's script as a runner does; returns the finished process and the working directory."""
    program = tmp_path / "bin" / "kaudit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kaudit "$@"\n')
    program.chmod(0o755)
    (tmp_path / "work").mkdir()

    def run(shell="bash", **inputs):
        (job,) = rendered(install="true", **inputs).values()
        script = "\n".join(["set -e", *job["before_script"], *job["script"]])
        environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), **job["variables"]}
        done = subprocess.run(
            [shell, "-c", script], cwd=tmp_path / "work", env=environment, capture_output=True, text=True, check=False
        )
        return done, tmp_path / "work"

    return run


def test_the_gitlab_job_is_valid(tmp_path):
    file = tmp_path / "gitlab.yml"
    file.write_text(yaml.safe_dump(rendered(paths="capture", install="pip install kaudit.whl")))
    check_schema("vendor.gitlab-ci", file)


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_gitlab_job_fails_on_findings_and_leaves_its_reports(play, shell):
    done, place = play(shell, paths=f"{SAMPLES / 'damaged' / 'flip-body'}\n{SAMPLES / 'clean'}")
    assert done.returncode == 1, done.stderr
    assert "error[KA001]" in done.stdout
    assert {issue["check_name"] for issue in json.loads((place / "kaudit-codequality.json").read_text())} >= {"KA001"}
    assert (place / "kaudit-junit.xml").read_text().startswith("<?xml")


def test_the_gitlab_job_passes_on_options_and_takes_no_path_for_a_command(play):
    damaged = str(SAMPLES / "damaged" / "flip-body")
    assert play(paths=damaged, options="--ignore=KA001\n--ignore=KA7")[0].returncode == 0
    assert play(paths=damaged, fail_on="never")[0].returncode == 0
    (place := play(paths=damaged, baseline="none.json")[1] / "kaudit-junit.xml").write_text("old")
    done, _ = play(paths="$(touch pwned)\n-q; touch pwned")
    assert done.returncode == 2
    assert not place.exists()
    assert not place.with_name("pwned").exists()
    assert "baseline none.json: no such file" in play(paths=damaged, baseline="none.json")[0].stderr


def test_the_gitlab_example_gives_the_job_inputs_it_has():
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"<!-- file: gitlab.yml -->\n```yaml\n(.*?)```", text, re.DOTALL)
    (include,) = yaml.safe_load(example)["include"]
    assert (ROOT / include["file"].lstrip("/")).is_file()
    inputs = next(yaml.safe_load_all(TEMPLATE))["spec"]["inputs"]
    assert {name for name, spec in inputs.items() if "default" not in spec} <= set(include["inputs"]) <= set(inputs)


def test_the_container_file_is_sound():
    file = ROOT / ".container" / "Containerfile"
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    text = file.read_text(encoding="utf-8")
    stages = text.split("\nFROM ")
    assert len(stages) == 3
    assert re.findall(r"^(?:USER|ENTRYPOINT) .*$", stages[-1], re.MULTILINE) == [
        "USER 10001:10001",
        'ENTRYPOINT ["kaudit"]',
    ]
    assert "--require-hashes" in stages[1]
