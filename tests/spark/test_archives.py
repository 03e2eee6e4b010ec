"""Tasks of Spark read archives in parts, or not at all."""

import pytest

from kaudit.errors import UsageError
from kaudit.source.discover import discover
from kaudit.spark.plan import require_ranges
from tests.logs import Log, data
from tests.packed import ARCHIVES, pack


@pytest.mark.parametrize("form", ARCHIVES)
def test_only_archives_that_tasks_can_read_in_parts(tmp_path, form):
    log = Log()
    log.append(data(7, 0, 0))
    log.write(tmp_path / "b1/orders-0")
    (tmp_path / "x").write_bytes(pack(tmp_path / "b1", form))
    layout = discover([str(tmp_path / "x")])
    if form in ("tar", "zip"):
        require_ranges(layout)
        return
    with pytest.raises(UsageError, match=r"x!/b1/orders-0/.* in parts: what holds it is compressed as a whole"):
        require_ranges(layout)
