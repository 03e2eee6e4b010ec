"""action.yml does what it says: its script is run here as a runner would run it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SCAN = ACTION["runs"]["steps"][1]


@pytest.fixture
def step(tmp_path):
    program = tmp_path / "bin" / "kaudit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kaudit "$@"\n')
    program.chmod(0o755)

    def run(**inputs):
        given = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        environment = {name: _filled(value, given) for name, value in SCAN["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCAN["run"]],
            cwd=tmp_path,
            env={
                "PATH": f"{program.parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "GITHUB_OUTPUT": str(tmp_path / "output"),
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
                "GITHUB_ACTIONS": "true",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
        return done, outputs, tmp_path

    return run


def _filled(value, given):
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda match: given[match[1]], value)


def test_a_finding_is_annotated_summarised_and_uploaded(step):
    done, outputs, place = step(paths=str(ROOT / "samples" / "damaged" / "flip-body"))
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=kaudit KA001 crc-mismatch,file=explosion-0/")
    assert outputs == {"exit-code": "1", "sarif": "kaudit.sarif"}
    assert (place / "summary").read_text().startswith("## kaudit\n\n**1 error")
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


def test_every_input_is_used_and_every_output_set():
    used = set(re.findall(r"inputs\.([a-z-]+)", " ".join(SCAN["env"].values())))
    assert used == set(ACTION["inputs"])
    assert "${{" not in SCAN["run"]
    for output in ACTION["outputs"].values():
        (name,) = re.findall(r"steps\.scan\.outputs\.([a-z-]+)", output["value"])
        assert f"{name}=" in SCAN["run"]


def test_the_workflow_of_the_docs_gives_it_inputs_it_has():
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"<!-- file: workflow.yml -->\n```yaml\n(.*?)```", text, re.DOTALL)
    workflow = yaml.safe_load(example)
    steps = workflow["jobs"]["audit"]["steps"]
    action = next(step for step in steps if step.get("id") == "kaudit")
    assert set(action["with"]) <= set(ACTION["inputs"])
    required = {name for name, spec in ACTION["inputs"].items() if spec.get("required")}
    assert required <= set(action["with"])
