"""The tests lie where the code lies: tests/PACKAGE for kaudit/PACKAGE."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "browser",  # pages of several packages, opened in Chromium
    "bugs",  # what known bugs of real programs left in logs
    "client_logs",  # what real clients log when they are refused something
    "client_streams",  # what real clients send, beside what the model of one sends
    "cluster",  # clusters and stores as processes
    "conformance",  # whole logs, beside what real brokers and their tools said
    "data",
    "differential",  # damaged logs of random histories, beside a reference that knows the damage
    "fuzz",
    "html",  # pages as a browser has them: readers, generators, tests in browsers
    "mirrors",  # topics and their mirrors, beside what became of each record
    "mutation",  # whether the tests fail when the code is wrong
    "outbox",  # events of an outbox whose truth a database knows
    "live_brokers",  # brokers as processes, for the recorder and for the tests of clusters
    "properties",  # laws that several packages keep together
    "release",  # the package as it is built and installed
    "schemas",  # of formats that are not ours
}


def test_every_folder_of_tests_is_one_of_the_code():
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")} - {Path()}
    mirrored = [folder for folder in sorted(folders) if folder.parts[0] not in ELSEWHERE]
    assert [str(folder) for folder in mirrored if not (ROOT / "kaudit" / folder).is_dir()] == []
