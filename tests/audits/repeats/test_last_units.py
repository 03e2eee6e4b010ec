"""The last equal before a unit is found wherever the chunks are cut, and no further back than the window."""

import numpy as np
import pytest

from kaudit.audits.repeats.suspects import LastUnits
from kaudit.model.columns import Columns
from kaudit.reading.content_rows import CONTENT


def units(offsets, contents):
    columns = dict.fromkeys(CONTENT.names or (), 0)
    return Columns(CONTENT, len(offsets), {**columns, "offset": offsets, "content": contents})


@pytest.mark.parametrize("seed", range(40))
def test_as_a_dictionary_finds_them(seed):
    rng = np.random.default_rng(seed)
    window = int(rng.integers(5, 200))
    total, kinds = int(rng.integers(1, 2000)), int(rng.integers(2, 400))
    # values at both ends of int64, and 0, which has no equals
    values = rng.choice(np.append(rng.integers(-(2**63), 2**63 - 1, kinds), 0), total)
    last: dict[int, int] = {}
    expected = []
    for offset, value in enumerate(values.tolist()):
        if value and offset - last.get(value, -(10**9)) <= window:
            expected.append((offset, last[value]))
        last[value] = offset
    searched = LastUnits(("content",), window)
    found: list[tuple[int, int]] = []
    start = 0
    while start < total:
        stop = min(start + int(rng.integers(1, 300)), total)
        matches = searched.feed(units(np.arange(start, stop), values[start:stop]))["content"]
        found += zip((matches.found + start).tolist(), matches.earlier["offset"].tolist(), strict=True)
        start = stop
    assert found == expected
