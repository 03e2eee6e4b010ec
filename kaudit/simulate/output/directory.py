"""Everything a run leaves in its output directory."""

from pathlib import Path

from kaudit.simulate.output.log_directory import write_log_directory
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.simulation import Simulation


class OccupiedError(ValueError):
    """The output directory holds something already."""


def write_run(directory: Path, simulation: Simulation, truth: Truth) -> None:
    """Write broker-N/ per broker, attempts.jsonl, answers.jsonl, blocks.jsonl and truth.json.

    Raises OccupiedError if `directory` is not empty, and OSError.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise OccupiedError(f"{directory} exists and is not an empty directory")
    directory.mkdir(parents=True, exist_ok=True)
    cluster = simulation.cluster
    for number, broker in cluster.brokers.items():
        write_log_directory(directory / f"broker-{number}", broker, cluster.partitions.values(), cluster.profile)
    recorder = simulation.recorder
    (directory / "attempts.jsonl").write_text(recorder.attempts_text(), encoding="utf-8")
    (directory / "answers.jsonl").write_text(recorder.answers_text(), encoding="utf-8")
    (directory / "blocks.jsonl").write_text(cluster.granted_blocks.text(), encoding="utf-8")
    with (directory / "truth.json").open("w", encoding="utf-8") as out:
        out.writelines(truth.text())
