"""Man pages get today's date when they say something else than before, and keep theirs when they do not."""

import datetime as dt

import pytest

from kaudit.cli.reference import dates_of, shared_data, write_shared_data

SCAN, DIFF, OVERVIEW = "man/man1/kaudit-scan.1", "man/man1/kaudit-diff.1", "man/man1/kaudit.1"
LONG_AGO, TODAY = "2001-02-03", "2026-11-24"


@pytest.fixture
def share(tmp_path, monkeypatch):
    class Today(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 24, 23, 59, tzinfo=tz)

    monkeypatch.setattr(dt, "datetime", Today)
    return tmp_path / "share"


def written(directory):
    return {
        str(path.relative_to(directory)): path.read_text(encoding="utf-8")
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_at_first_each_page_is_of_today(share):
    write_shared_data(share)
    pages = [path for path in shared_data({}) if path.startswith("man/")]
    assert len(pages) > 10
    assert dates_of(share) == dict.fromkeys(pages, TODAY)
    assert written(share) == shared_data(dict.fromkeys(pages, TODAY))


def test_a_page_that_says_the_same_keeps_its_date_and_what_is_no_page_of_ours_goes(share):
    pages = {path: LONG_AGO for path in shared_data({}) if path.startswith("man/")}
    for path, text in shared_data(pages).items():
        (share / path).parent.mkdir(parents=True, exist_ok=True)
        (share / path).write_text(text, encoding="utf-8")
    (share / SCAN).write_text((share / SCAN).read_text(encoding="utf-8") + ".PP\nmore\n", encoding="utf-8")
    (share / DIFF).unlink()
    (share / "man/man1/kaudit-gone.1").write_text(f'.TH KAUDIT-GONE 1 {LONG_AGO} "kaudit"\n', encoding="utf-8")
    assert dates_of(share) == {
        **{path: date for path, date in pages.items() if path != DIFF},
        "man/man1/kaudit-gone.1": LONG_AGO,
    }
    write_shared_data(share)
    expected = {**pages, SCAN: TODAY, DIFF: TODAY}
    assert dates_of(share) == expected
    assert written(share) == shared_data(expected)


def test_a_page_without_a_title_has_no_date(share):
    (share / "man/man1").mkdir(parents=True)
    (share / OVERVIEW).write_text("kaudit\n", encoding="utf-8")
    assert dates_of(share) == {}
