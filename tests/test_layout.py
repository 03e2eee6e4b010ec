"""The tests lie where the code lies: tests/PACKAGE for kaudit/PACKAGE."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "cluster",  # clusters and stores as processes
    "conformance",  # whole logs, beside what real brokers and their tools said
    "data",
    "fuzz",
    "properties",  # laws that several packages keep together
    "schemas",  # of formats that are not ours
}


def test_every_folder_of_tests_is_one_of_the_code():
    folders = [
        path.relative_to(ROOT / "tests")
        for path in (ROOT / "tests").rglob("*")
        if path.is_dir() and path.name not in ("__pycache__", "__snapshots__")
    ]
    assert [
        str(folder)
        for folder in folders
        if folder.parts[0] not in ELSEWHERE and not (ROOT / "kaudit" / folder).is_dir()
    ] == []
