"""A saved state on both engines, and one engine's read by the other: what a full audit finds is found."""

import shutil

import pytest

from kaudit.report.json_documents import scan_document
from kaudit.report.render_options import RenderOptions
from tests.engines.faulty_logs import FAULTS
from tests.properties.histories import build
from tests.watch.growing import GrowingLog

ACTIONS = [
    (action, number % 3, 1 + number % 5, number % 2 == 0)
    for number, action in enumerate(
        ["next", "next", "gap", "marker", "resend", "toggle", "next", "bump", "marker-bump", "no-producer"] * 6
    )
]


@pytest.fixture
def logs(tmp_path):
    """Partitions with faults, and one that changes."""
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


@pytest.fixture
def changing(logs):
    log = GrowingLog(logs / "payments-0")
    batches = build(ACTIONS, [0, 5, 0]).batches
    return log, batches


def changes(log, batches):
    """Yield after each change."""
    third = len(batches) // 3
    for number, batch in enumerate(batches[:third]):
        if number % 5 == 0:
            log.roll(batch.base_offset)
        log.append(batch)
    yield "written"
    for batch in batches[third:-2]:
        log.append(batch)
    yield "grown"
    log.delete_head()
    log.compact(2)
    yield "cleaned"
    log.truncate(3)
    for batch in batches[-2:]:
        log.append(batch)
    yield "cut back"


def test_an_audit_with_a_state_is_a_full_one(engine, local, logs, changing, tmp_path):
    state = str(tmp_path / "state")
    unchanged = []
    for _ in changes(*changing):
        assert engine.documents(logs, state=state) == local.documents(logs)
        unchanged.append(engine.scan(logs, state=state).state.unchanged)
    assert min(unchanged) > len(FAULTS) // 2


@pytest.mark.jvm
def test_engines_go_on_from_one_another(local, spark, logs, changing, tmp_path):
    state = str(tmp_path / "state")
    for number, _ in enumerate(changes(*changing)):
        one, other = (local, spark) if number % 2 else (spark, local)
        one.scan(logs, state=state)
        expected = local.documents(logs)[0]
        used = other.scan(logs, state=state).state
        assert used.unchanged > len(FAULTS) // 2
        assert (used.damaged, used.grown) == (0, 0)
        assert other.documents(logs, state=state)[0] == expected


@pytest.mark.jvm
def test_a_damaged_state_costs_reading(local, spark, logs, tmp_path):
    state = tmp_path / "state"
    spark.scan(logs, state=str(state))
    damaged = 0
    for number, file in enumerate(sorted(state.glob("partitions/*/rows-*"))):
        if number % 3 == 0:
            file.unlink()
            damaged += 1
        elif number % 3 == 1:
            file.write_bytes(file.read_bytes()[:-7])
            damaged += 1
    assert spark.documents(logs, state=str(state))[0] == local.documents(logs)[0]
    assert damaged > 3
    shutil.rmtree(state / "partitions")
    result = spark.scan(logs, state=str(state))
    assert result.state.unchanged == 0


@pytest.mark.jvm
def test_spark_goes_on_from_a_checkpoint(local, spark, logs, tmp_path, monkeypatch):
    state = tmp_path / "state"
    monkeypatch.setattr("kaudit.partition.range_saver.is_less_to_load", lambda checkpoint, rows: True)
    local.scan(logs, state=str(state))
    checkpoints = sorted(state.glob("partitions/*/checkpoint-*"))
    assert len(checkpoints) > len(FAULTS) // 2
    assert scan_document(spark.scan(logs, state=str(state)), RenderOptions(show_notes=True)) == local.documents(logs)[0]
    checkpoints[0].unlink()
    result = spark.scan(logs, state=str(state))
    assert result.state.damaged == 1  # so it was looked for
    assert scan_document(result, RenderOptions(show_notes=True)) == local.documents(logs)[0]
