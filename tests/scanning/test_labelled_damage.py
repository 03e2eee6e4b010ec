"""Damage of a known kind at a random place of a random log: found with its code at its byte, everything beside it read.

The kinds are those of the torn-writes capture. What must be found follows from what was done, not from running kaudit.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data

EACH = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
GARBAGE = bytes((number * 37 + 11) % 251 + 3 for number in range(700))


@dataclass
class Segments:
    """A log in segments: of each its bytes, and where its batches lie."""

    bases: list[int] = field(default_factory=list)
    contents: list[bytearray] = field(default_factory=list)
    batches: list[list[tuple[int, int, int, int]]] = field(default_factory=list)  # position, size, first, last offset

    @property
    def count(self) -> int:
        return sum(map(len, self.batches))

    def inner(self, draw, *, after=1, before=2):
        """A segment, and one of its batches that has `after` batches before it and `before` behind it."""
        able = [number for number, own in enumerate(self.batches) if len(own) > after + before]
        segment = draw(st.sampled_from(able))
        return segment, draw(st.integers(after, len(self.batches[segment]) - 1 - before))


@st.composite
def logs(draw):
    """Three producers, one to three segments of at least six batches."""
    log, sequences = Log(), [0, 0, 0]
    found = Segments()
    for _ in range(draw(st.integers(1, 3))):
        found.bases.append(log.next_offset)
        found.contents.append(bytearray())
        found.batches.append([])
        for _ in range(draw(st.integers(6, 14))):
            who, count = draw(st.integers(0, 2)), draw(st.integers(1, 4))
            payload = draw(st.binary(min_size=1, max_size=200))
            batch = log.append(data(who, 0, sequences[who], count, payload=payload, leader_epoch=5))
            sequences[who] += count
            raw = batch.encode()
            found.batches[-1].append((len(found.contents[-1]), len(raw), batch.base_offset, batch.last_offset))
            found.contents[-1] += raw
    return found


def audited(log, tmp_path_factory):
    directory = tmp_path_factory.mktemp("labelled") / "orders-0"
    directory.mkdir()
    for base, content in zip(log.bases, log.contents, strict=True):
        (directory / f"{base:020d}.log").write_bytes(content)
    result = local.scan(ScanOptions([str(directory)], jobs=1), SilentProgress())
    findings = [finding for finding in result.findings if finding.code != "KA405"]
    return result, [
        (finding.code, finding.severity.value, finding.segment, finding.position, finding.offset)
        for finding in findings
    ]


def name(log, segment):
    return f"{log.bases[segment]:020d}.log"


def flip(log, segment, at, bit):
    log.contents[segment][at] ^= 1 << bit


def flipped_body(log, draw):
    segment, index = log.inner(draw, after=0, before=0)
    position, size, first, _ = log.batches[segment][index]
    # from the CRC on, all but the magic: the CRC and what it covers, but for the delta of the last offset at byte 23:
    # offsets that the header does not claim are a gap of their own
    at = draw(st.one_of(st.integers(17, 22), st.integers(27, size - 1)))
    flip(log, segment, position + at, draw(st.integers(0, 7)))
    return ("KA001", "error", name(log, segment), position, first), 1


def flipped_base_offset(log, draw):
    segment, index = log.inner(draw)
    position, _, first, _ = log.batches[segment][index]
    bit = draw(st.integers(3, 50))  # further than to its neighbours: those overlap instead
    flip(log, segment, position + 7 - bit // 8, bit % 8)
    return ("KA006", "error", name(log, segment), position, first ^ (1 << bit)), 1


def flipped_leader_epoch(log, draw):
    segment, index = log.inner(draw)
    position, _, first, _ = log.batches[segment][index]
    bit = draw(st.integers(0, 30))
    flip(log, segment, position + 15 - bit // 8, bit % 8)
    return ("KA009", "error", name(log, segment), position, first), 0


def flipped_magic(log, draw):
    segment, index = log.inner(draw, before=1)
    position, _, first, _ = log.batches[segment][index]
    flip(log, segment, position + 16, draw(st.integers(0, 7)))
    return ("KA003", "error", name(log, segment), position, first), 1


def flipped_length(log, draw):
    segment, index = log.inner(draw)
    position, _, first, _ = log.batches[segment][index]
    bit = draw(st.integers(0, 31))
    flip(log, segment, position + 11 - bit // 8, bit % 8)
    return ("KA003", "error", name(log, segment), position, first), 1


def removed(log, draw):
    segment, index = log.inner(draw, before=1)
    position, size, first, _ = log.batches[segment][index]
    del log.contents[segment][position : position + size]
    return ("KA007", "error", name(log, segment), position, first), 1


def doubled(log, draw):
    segment, index = log.inner(draw, before=1)
    position, size, first, _ = log.batches[segment][index]
    content = log.contents[segment]
    content[position + size : position + size] = content[position : position + size]
    return ("KA006", "error", name(log, segment), position + size, first), 0


def swapped(log, draw):
    segment, index = log.inner(draw)
    position, size, _, _ = log.batches[segment][index]
    _, other, first, _ = log.batches[segment][index + 1]
    content = log.contents[segment]
    whole = content[position : position + size + other]
    content[position : position + size + other] = whole[size:] + whole[:size]
    return ("KA006", "error", name(log, segment), position, first), 0


def zero_hole(log, draw):
    segment, index = log.inner(draw, before=3)
    position, _, first, _ = log.batches[segment][index]
    lost = draw(st.integers(1, 2))
    last_position, last_size, _, _ = log.batches[segment][index + lost - 1]
    end = last_position + last_size
    log.contents[segment][position:end] = bytes(end - position)
    return ("KA004", "error", name(log, segment), position, first), lost


def garbage(log, draw):
    segment, index = log.inner(draw, before=1)
    position, _, _, _ = log.batches[segment][index]
    log.contents[segment][position:position] = GARBAGE[: draw(st.integers(1, len(GARBAGE)))]
    return ("KA003", "error", name(log, segment), position, None), 0


def preallocated_tail(log, draw):
    content = log.contents[-1]
    size = len(content)
    content += bytes(draw(st.integers(12, 5000)))
    return ("KA004", "note", name(log, -1), size, None), 0


def torn_tail(log, draw):
    position, size, _, _ = log.batches[-1][-1]
    del log.contents[-1][position + draw(st.integers(17, size - 1)) :]
    return ("KA002", "warning", name(log, -1), position, None), 1


def garbage_tail(log, draw):
    content = log.contents[-1]
    size = len(content)
    content += GARBAGE[: draw(st.integers(20, len(GARBAGE)))]
    return ("KA003", "error", name(log, -1), size, None), 0


KINDS = (
    flipped_body,
    flipped_base_offset,
    flipped_leader_epoch,
    flipped_magic,
    flipped_length,
    removed,
    doubled,
    swapped,
    zero_hole,
    garbage,
    preallocated_tail,
    torn_tail,
    garbage_tail,
)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_damage_anywhere_is_found_where_it_is(kind, tmp_path_factory):
    @EACH
    @given(logs(), st.data())
    def check(log, data):
        expected, lost = kind(log, data.draw)
        result, found = audited(log, tmp_path_factory)
        assert found == [expected]
        assert result.summary.batches == log.count - lost

    check()


@EACH
@given(logs(), st.data())
def test_a_missing_segment(tmp_path_factory, log, data):
    if len(log.bases) < 3:
        return
    base, following = log.bases[1], log.bases[2]
    lost = len(log.batches[1])
    for part in (log.bases, log.contents):
        del part[1]
    result, found = audited(log, tmp_path_factory)
    assert [(code, severity, offset) for code, severity, _, _, offset in found] == [("KA008", "error", base)]
    assert result.findings[-1].last_offset == following - 1
    assert result.summary.batches == log.count - lost


@EACH
@given(logs(), st.data())
def test_a_closed_segment_cut_off(tmp_path_factory, log, data):
    if len(log.bases) < 2:
        return
    position, size, first, _ = log.batches[0][-1]
    del log.contents[0][position + data.draw(st.integers(17, size - 1)) :]
    result, found = audited(log, tmp_path_factory)
    assert found == [("KA002", "error", name(log, 0), position, first)]
    assert result.summary.batches == log.count - 1


@EACH
@given(logs())
def test_without_damage_there_is_silence(tmp_path_factory, log):
    result, found = audited(log, tmp_path_factory)
    assert found == []
    assert result.summary.batches == log.count
