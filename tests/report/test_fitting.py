from kaudit.report.text.fitting import fit, notice

CELLS = {
    "offset": ["0..14", "15..18"],
    "magic": ["2", "2"],
    "codec": ["none", "lz4"],
    "crc": ["9a51ee25", "9ee655f8"],
    "kind": ["-", "-"],
}


def test_everything_stays_where_there_is_room():
    for room in (None, 6 + 2 + 5 + 2 + 5 + 2 + 8 + 2 + 4):
        fitted = fit(CELLS, ("magic", "kind"), ("crc", "codec"), room)
        assert fitted.shown == list(CELLS)
        assert not notice(fitted, room)


def test_columns_with_one_text_throughout_go_first_and_are_said():
    fitted = fit(CELLS, ("kind", "codec", "magic"), ("crc",), 25)
    assert fitted.shown == ["offset", "codec", "crc"]
    assert notice(fitted, 25) == "in every row: magic 2"


def test_then_what_is_least_needed_and_that_is_said_too():
    fitted = fit(CELLS, ("magic", "kind"), ("crc", "codec"), 14)
    assert fitted.shown == ["offset", "codec"]
    assert notice(fitted, 14) == "in every row: magic 2; no room at 14 columns for: crc"


def test_what_is_needed_stays_whatever_the_room():
    assert fit(CELLS, (), ("codec",), 5).shown == ["offset", "magic", "crc", "kind"]
