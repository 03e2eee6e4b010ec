"""KA503: offset indexes of a real partition, edited."""

from tests.checks.sidefiles.findings import edited_index, side_file_reports


def test_an_index_row_that_leads_into_a_batch_is_found(explosion):
    def change(rows):
        rows[2][1] += 7
        return rows

    path = edited_index(explosion, "index", ">ii", change)
    assert side_file_reports(explosion) == [("KA503", "warning", path.name, 16)]


def test_an_index_row_of_a_later_batch_is_found(explosion):
    def change(rows):
        rows[1][1] = rows[2][1]
        return rows

    path = edited_index(explosion, "index", ">ii", change)
    assert side_file_reports(explosion) == [("KA503", "warning", path.name, 8)]


def test_zeros_behind_the_last_row_are_preallocation(explosion):
    edited_index(explosion, "index", ">ii", lambda rows: [*rows, [0, 0], [0, 0]])
    edited_index(explosion, "timeindex", ">qi", lambda rows: [*rows, [0, 0]])
    assert side_file_reports(explosion) == []
