"""A real partition with side files to damage."""

import shutil

import pytest


@pytest.fixture
def explosion(evidence, tmp_path):
    target = tmp_path / "b1" / "explosion-0"
    shutil.copytree(evidence.capture("cross-session") / "logdirs/b1/explosion-0", target)
    return target
