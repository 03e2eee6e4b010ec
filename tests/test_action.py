"""action.yml does what it says: its script is run here as a runner would run it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, SCAN = ACTION["runs"]["steps"]


class Runner:
    """Plays a step of the action in a workspace of its own, with a `kaudit` that is this checkout's."""

    def __init__(self, directory):
        self.workspace = directory / "workspace"
        self.temporary = directory / "temp"
        self.programs = directory / "bin"
        for folder in (self.workspace, self.temporary, self.programs):
            folder.mkdir()
        self.python_path = str(ROOT)
        self.program("kaudit", f'exec "{sys.executable}" -m kaudit "$@"')
        # what the runner gives beside the inputs; a step's outputs are added to it
        self.known = {"github.server_url": "https://github.com", "steps.install.outputs.program": "kaudit"}
        self.known["github.action_repository || github.repository"] = "team/kaudit"

    def program(self, name, text):
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def play(self, step, **inputs):
        given = {f"inputs.{name}": str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        given |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        environment = {name: _filled(value, given | self.known) for name, value in step["env"].items()}
        output = self.temporary / f"output-{step['id']}"
        output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "HOME": os.environ["HOME"],
                "PYTHONPATH": self.python_path if step is SCAN else "",
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.workspace / "summary"),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_ACTIONS": "true",
                "RUNNER_TEMP": str(self.temporary),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        self.known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in outputs.items()}
        return done, outputs


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.fixture
def step(runner):
    def run(**inputs):
        done, outputs = runner.play(SCAN, **inputs)
        return done, outputs, runner.workspace

    return run


def _filled(value, given):
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda match: given[match[1]], value)


def test_a_finding_is_annotated_summarised_and_uploaded(step):
    done, outputs, place = step(paths=str(ROOT / "samples" / "damaged" / "flip-body"))
    assert done.returncode == 1
    damaged = ROOT / "samples" / "damaged" / "flip-body" / "explosion-0"
    assert done.stdout.startswith(f"::error title=kaudit KA001 crc-mismatch,file={damaged}/")
    assert outputs == {"exit-code": "1", "sarif": "kaudit.sarif"}
    summary = (place / "summary").read_text()
    assert summary.startswith("## kaudit\n\n- **at most 2 records lost in explosion-0 (1 error)**\n")
    run = json.loads((place / "kaudit.sarif").read_text())["runs"][0]
    (broken,) = [entry for entry in run["results"] if entry["ruleId"] == "KA001"]
    assert broken["locations"][0]["physicalLocation"]["region"] == {"byteOffset": 16297, "startLine": 1}
    assert all("physicalLocation" in entry["locations"][0] for entry in run["results"])
    assert run["invocations"][0]["exitCode"] == 1


def test_inputs_are_arguments_and_never_commands(step):
    paths = f"{ROOT / 'samples' / 'damaged' / 'flip-body'}\n$(touch pwned)\n\n"
    done, outputs, place = step(paths=paths, options="--ignore=KA001\n-q", sarif="a b.sarif")
    assert (done.returncode, outputs["exit-code"]) == (2, "2")
    assert "no such file or directory: $(touch pwned)" in done.stderr
    assert not (place / "pwned").exists()


def test_options_baseline_and_severity_reach_kaudit(step):
    damaged = str(ROOT / "samples" / "damaged" / "flip-body")
    assert step(paths=damaged, options="--ignore=KA001")[0].returncode == 0
    assert step(paths=damaged, fail_on="never")[0].returncode == 0
    done, _, _ = step(paths=damaged, baseline="none.json")
    assert (done.returncode, "baseline none.json: no such file" in done.stderr) == (2, True)


def test_paths_in_the_workspace_are_the_repositorys(runner):
    shutil.copytree(ROOT / "samples" / "damaged" / "flip-body", runner.workspace / "tests" / "capture")
    (runner.workspace / ".git").mkdir()
    done, _ = runner.play(SCAN, paths="tests/capture")
    assert ",file=tests/capture/explosion-0/00000000000000000662.log::" in done.stdout
    (result, *_) = json.loads((runner.workspace / "kaudit.sarif").read_text())["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (runner.workspace / artifact["uri"]).exists()


def test_an_old_result_is_not_this_runs(step, runner):
    (runner.workspace / "kaudit.sarif").write_text("{}")
    done, outputs, place = step(paths="nowhere")
    assert (done.returncode, outputs) == (2, {"exit-code": "2"})
    assert not (place / "kaudit.sarif").exists()


def test_an_old_result_that_stays_fails_the_step(step, runner):
    (runner.workspace / "kaudit.sarif").mkdir()
    done, outputs, _ = step(paths=str(ROOT / "samples" / "clean"))
    assert (done.returncode, outputs) == (2, {})
    assert "::error title=kaudit::an old kaudit.sarif cannot be removed" in done.stdout


def test_a_scan_that_wrote_no_result_fails_the_step(step, runner):
    runner.program("kaudit", "exit 0")
    done, outputs, _ = step(paths="capture")
    assert (done.returncode, outputs) == (70, {"exit-code": "0"})


@pytest.mark.parametrize("sarif", ["", "a\nsarif=b"])
def test_the_result_is_one_path(step, sarif):
    done, outputs, _ = step(paths=str(ROOT / "samples" / "clean"), sarif=sarif)
    assert (done.returncode, outputs) == (2, {})


RECORDER = r"""
if [ "$2" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; printf '#!/bin/sh\necho kaudit 9.9.9' >"$4/bin/kaudit"
chmod +x "$4/bin/kaudit"; else for word do printf '%s\n' "$word"; done >"$RUNNER_TEMP/installed"; fi
"""


@pytest.mark.parametrize(
    ("inputs", "source"),
    [
        ({}, str(ROOT)),
        ({"ref": "release/1.x"}, "kaudit @ git+https://github.com/team/kaudit@release/1.x"),
        (
            {"version": "0.1.0"},
            "kaudit @ https://github.com/team/kaudit/releases/download/v0.1.0/kaudit-0.1.0-py3-none-any.whl",
        ),
    ],
)
def test_what_is_installed(runner, inputs, source):
    runner.program("python", RECORDER)
    done, outputs = runner.play(INSTALL, **inputs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runner.temporary / "installed").read_text().splitlines()[-1] == source
    environment = runner.temporary / "kaudit-environment"
    assert outputs == {"program": f"{environment}/bin/kaudit", "version": "kaudit 9.9.9"}


@pytest.mark.parametrize(
    "inputs",
    [
        {"ref": "a b"},
        {"ref": "--index-url=x"},
        {"version": "1; id"},
        {"version": "$(id)"},
        {"version": "1", "ref": "a"},
    ],
)
def test_what_is_neither_version_nor_ref_installs_nothing(runner, inputs):
    runner.program("python", RECORDER)
    done, outputs = runner.play(INSTALL, **inputs)
    assert (done.returncode, outputs, done.stdout.startswith("::error title=kaudit::")) == (2, {}, True)
    assert not (runner.temporary / "installed").exists()


def test_every_input_is_used_and_every_output_set():
    steps = {step["id"]: step for step in (INSTALL, SCAN)}
    used = {
        name
        for step in steps.values()
        for value in step["env"].values()
        for name in re.findall(r"inputs\.([a-z-]+)", value)
    }
    assert used == set(ACTION["inputs"])
    assert not any("${{" in step["run"] for step in steps.values())
    for output in ACTION["outputs"].values():
        ((step, name),) = re.findall(r"steps\.([a-z]+)\.outputs\.([a-z-]+)", output["value"])
        assert f"{name}=" in steps[step]["run"]


def _workflow_of_the_docs():
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"<!-- file: workflow.yml -->\n```yaml\n(.*?)```", text, re.DOTALL)
    return yaml.safe_load(example)


def test_the_workflow_of_the_docs_is_valid_and_gives_the_action_inputs_it_has(tmp_path):
    workflow = _workflow_of_the_docs()
    file = tmp_path / "workflow.yml"
    file.write_text(yaml.safe_dump({("on" if key is True else key): value for key, value in workflow.items()}))
    checked = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (action,) = [step for step in workflow["jobs"]["audit"]["steps"] if step.get("id") == "kaudit"]
    assert set(action["with"]) <= set(ACTION["inputs"])
    required = {name for name, spec in ACTION["inputs"].items() if spec.get("required")}
    assert required <= set(action["with"])


NEEDS = {
    "actions/checkout": {"contents": "read"},
    "actions/setup-python": {},
    "OWNER/kaudit": {},
    "github/codeql-action/upload-sarif": {"security-events": "write", "actions": "read", "contents": "read"},
}
"""Permissions that actions' own README files ask for; a job that lists any has no others."""


def test_the_workflow_of_the_docs_grants_what_its_actions_need_and_no_more():
    job = _workflow_of_the_docs()["jobs"]["audit"]
    used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
    assert job["permissions"] == {name: right for action in used for name, right in NEEDS[action].items()}


@pytest.mark.parametrize(
    ("sample", "code", "uploads"),
    [("clean", 0, True), ("damaged/flip-body", 1, True), ("nothing", 2, False)],
)
def test_the_workflow_of_the_docs_played_step_by_step(runner, sample, code, uploads):
    """A checkout has no capture and the job's own script makes it; a step runs unless one before it failed or it says always()."""
    runner.program("python", RECORDER)
    (runner.workspace / "kaudit-baseline.json").write_text('{"schema": "kaudit.baseline/1", "entries": []}')
    script = runner.workspace / "run-client-tests.sh"
    source = ROOT / "samples" / sample
    script.write_text(f"#!/bin/sh\n{f'cp -r {source} capture' if source.exists() else 'true'}\n")
    script.chmod(0o755)
    failed, uploaded = 0, []
    for step in _workflow_of_the_docs()["jobs"]["audit"]["steps"]:
        always = step.get("if", "").startswith("always()")
        if failed and not always:
            continue
        if "run" in step:
            failed = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=runner.workspace, check=False).returncode
        elif step["uses"].startswith("OWNER/kaudit@"):
            inputs = {name.replace("-", "_"): value for name, value in step["with"].items()}
            installed, _ = runner.play(INSTALL, **inputs)
            assert installed.returncode == 0, installed.stderr
            runner.known["steps.install.outputs.program"] = "kaudit"  # the recorder installs none
            done, outputs = runner.play(SCAN, **inputs)
            failed = done.returncode
            runner.known |= {f"steps.kaudit.outputs.{name}": "" for name in ACTION["outputs"]}
            runner.known |= {f"steps.kaudit.outputs.{name}": value for name, value in outputs.items()}
        elif "upload-sarif" in step["uses"]:
            assert step["if"] == "always() && steps.kaudit.outputs.sarif != ''"
            file = _filled(step["with"]["sarif_file"], runner.known)
            uploaded += [runner.workspace / file] if file else []
    assert (failed, [file.is_file() for file in uploaded]) == (code, [True] if uploads else [])
