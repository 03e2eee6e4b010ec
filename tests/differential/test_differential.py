"""Some logs of the thousands that .ci/run damages and dresses: what is not found is known, and each known thing still happens."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.differential import reference
from tests.differential.cases import ALL_DRESSINGS, UNDRESSED, Case, compared, run
from tests.differential.damages import CELLS
from tests.differential.dressings import EMBEDDED
from tests.differential.known import KNOWN, explained, what_is_wrong
from tests.differential.logs import healthy
from tests.differential.reference import judge

_LOGS = 100
EXCUSES = [value for name, value in vars(reference).items() if name.isupper() and isinstance(value, str)]


@pytest.mark.parametrize("seed", range(1, 3))
def test_what_is_not_found_is_known(tmp_path, seed):
    outcomes = list(run(_LOGS, seed, tmp_path / "logs"))
    assert [
        (what_is_wrong(each), each.seed, each.damage, each.place, each.dressing)
        for each in outcomes
        if not explained(each)
    ] == []
    assert all(each.required or each.excuses for each in outcomes if not each.is_healthy)
    assert len(outcomes) >= _LOGS


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: entry.name)
def test_what_is_known_still_happens(tmp_path, entry):
    seed, damage, place, dressing = entry.example
    shown = compared(Case(seed, damage, place, dressing), tmp_path / "logs")
    assert shown is not None
    assert entry.covers(shown), "it is found now: remove the entry"


def test_entries_name_what_there_is():
    damages, places = ({cell[index] for cell in CELLS} for index in (0, 1))
    for entry in KNOWN:
        assert set(entry.damages) <= damages
        assert set(entry.places) <= places
        assert set(entry.dressings) <= {UNDRESSED, *ALL_DRESSINGS}
        assert entry.reason


@pytest.mark.parametrize("excuse", EXCUSES)
def test_an_excuse_cites_a_class_of_kafka(excuse):
    assert re.match(r"[A-Z]\w+\.[a-z]\w+ ", excuse)


def test_the_reference_finds_nothing_in_undamaged_logs():
    for seed in range(150):
        files = healthy(seed).files()
        assert judge(files, files).proofs == []


def test_a_history_is_the_same_whatever_its_records_hold():
    for seed in range(20):
        plain = healthy(seed)
        for embedded in EMBEDDED.values():
            shown = healthy(seed, embedded)
            assert shown.bases == plain.bases
            assert [[batch.last for batch in some] for some in shown.batches] == [
                [batch.last for batch in some] for some in plain.batches
            ]


def test_nothing_of_kaudit_is_used_by_the_writer_and_the_reference():
    folder = Path(reference.__file__).parent
    users = Counter(path.name for path in folder.glob("*.py") if "kaudit" in _imports(path))
    assert set(users) == {"cases.py"}


def _imports(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return {name.split(".")[0] for name in re.findall(r"^\s*(?:from|import) ([\w.]+)", text, re.MULTILINE)}
