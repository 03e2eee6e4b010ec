"""KA504: time indexes of a real partition, edited."""

from tests.checks.sidefiles.findings import edited_index, side_file_reports


def test_time_indexes_never_fall_back(explosion):
    def change(rows):
        rows[1][0] = rows[0][0]
        return rows

    path = edited_index(explosion, "timeindex", ">qi", change)
    assert side_file_reports(explosion) == [("KA504", "warning", path.name, 12)]


def test_time_index_rows_belong_to_the_segment(explosion):
    def change(rows):
        rows[-1][1] += 10**6
        return rows

    path = edited_index(explosion, "timeindex", ">qi", change)
    assert [entry[:3] for entry in side_file_reports(explosion)] == [("KA504", "warning", path.name)]
