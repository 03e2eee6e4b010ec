"""`groups` and `transactions` on Spark: the rows, findings and notes of the local engine."""

from pathlib import Path

import pytest

from kaudit.cli.app import run

ROOT = Path(__file__).parents[2]
EXACTLY_ONCE = ROOT / "samples/exactly-once"
GROUPS = ROOT / "samples/committed-offsets"


def told(capsys, engine, *arguments):
    code = run([*map(str, arguments), "--engine", engine, "-q"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("groups", GROUPS),
        ("groups", GROUPS, "--group", "billing"),
        ("groups", EXACTLY_ONCE, "--output-format", "json"),
        ("groups", EXACTLY_ONCE, "--output-format", "html"),
        ("transactions", EXACTLY_ONCE),
        ("transactions", EXACTLY_ONCE, "--output-format", "json"),
        ("transactions", EXACTLY_ONCE, "--group", "zombies", "--limit", "3", "--output-format", "jsonl"),
        ("transactions", EXACTLY_ONCE, "--transactional-id", "forward"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)).replace(str(ROOT), ""),
)
def test_answers_are_those_of_the_local_engine(spark_session, capsys, arguments):
    ours, theirs = (told(capsys, engine, *arguments) for engine in ("local", "spark"))
    assert theirs == ours
    assert ours[0] == 0
    assert ours[1]
