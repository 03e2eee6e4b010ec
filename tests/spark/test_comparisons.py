"""`diff` on both engines: replicas of real brokers, and two sites by their fingerprints."""

import pytest

from kaudit.cli.app import run
from tests.diff.replicas import history

pytestmark = pytest.mark.jvm


def on_both(capsys, *arguments):
    """What the command prints and returns, which both engines agree on."""
    answers = []
    for engine in ("local", "spark"):
        code = run(["diff", "-q", "--engine", engine, *map(str, arguments)])
        captured = capsys.readouterr()
        answers.append((code, captured.out, captured.err))
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("moment", ["A2-new-leader-old-one-down", "B3-recovered"])
def test_replicas_of_real_brokers(spark_session, evidence, capsys, moment):
    brokers = sorted((evidence.capture("failover-acks1") / moment).iterdir())
    code, out, _ = on_both(capsys, "--output-format", "json", "--reproducible", *brokers)
    assert (code, '"KA601"' in out) == ((1, True) if moment.startswith("A2") else (0, False))


def test_two_sites_by_their_fingerprints(spark_session, tmp_path, capsys):
    one = history((0, 5))
    other = one.copy().append(2, 1, b"other's")
    one.append(2, 0, b"one's")
    paths = [log.write(tmp_path / name) for name, log in (("one", one), ("other", other))]
    sent = tmp_path / "sent.json"
    sent.write_text(on_both(capsys, "--fingerprint", paths[0])[1])
    code, out, _ = on_both(capsys, sent, paths[1])
    assert (code, "diverged" in out) == (1, True)
    sent.write_text(on_both(capsys, "--fingerprint", sent, paths[1])[1])
    assert "holds batch 10..11 (leader epoch 1" in on_both(capsys, sent, paths[0])[1]


def test_workers_that_do_not_see_the_directory(spark_session, tmp_path, capsys, monkeypatch):
    from kaudit.spark import jobs as spark_jobs

    paths = [history((0, 2)).write(tmp_path / name) for name in ("a", "b")]
    monkeypatch.setattr(spark_jobs, "_is_here", lambda _: False)  # as on a cluster
    monkeypatch.setattr(spark_jobs, "why_not_opened", lambda segment, open_source: "No such file or directory")
    assert run(["diff", "-q", "--engine", "spark", *map(str, paths)]) == 4
    assert "on a Spark worker, though the driver can read it" in capsys.readouterr().err
