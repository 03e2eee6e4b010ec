"""Random histories and random replicas of them: what differs is known from how they were made."""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.engines.progress import SilentProgress
from kaudit.engines.replicas import diff, name_replicas
from kaudit.model.replicas import DiffResult, Relation
from kaudit.scanning.options import ScanOptions
from tests.diff.replicas import Copy


def run(*paths: Path, **options: object) -> DiffResult:
    texts = [str(path) for path in paths]
    replicas = name_replicas(texts, {})
    return diff(ScanOptions(texts, jobs=1, **options), replicas, SilentProgress())  # type: ignore[arg-type]


@st.composite
def histories(draw: st.DrawFn) -> Copy:
    """Batches of one to four records under leader epochs that rise now and then."""
    log, epoch = Copy(), draw(st.integers(0, 2))
    for number in range(draw(st.integers(1, 14))):
        epoch += draw(st.sampled_from((0, 0, 0, 1, 3)))
        log.append(draw(st.integers(1, 4)), epoch, b"m%d" % number)
    return log


@st.composite
def replicas(draw: st.DrawFn) -> tuple[list[Copy], list[int | None], list[int]]:
    """A history's replicas; at which offset each leaves the history, and its end; healthy differences mixed in."""
    log = draw(histories())
    copies, leaves, ends = [], [], []
    top = log.batches[-1].leader_epoch
    for number in range(draw(st.integers(2, 4))):
        copy = log.copy()
        kept = draw(st.integers(1, len(copy.batches)))
        copy.batches = copy.batches[:kept]
        left = None
        if draw(st.booleans()):
            # a leader of its own, under an epoch nobody else had
            left = copy.end
            for more in range(draw(st.integers(1, 3))):
                copy.append(draw(st.integers(1, 3)), top + 1 + number, b"own-%d-%d" % (number, more))
        leaves.append(left)
        ends.append(copy.end)
        copies.append(copy)
    # what differs must still be there to be seen: retention ends below it
    differs = min((left for left in leaves if left is not None), default=log.end)
    for copy in copies:
        common = sum(batch.base_offset < differs for batch in copy.batches)
        copy.batches = copy.batches[draw(st.integers(0, max(common - 1, 0))) :]
        bases = [batch.base_offset for batch in copy.batches]
        copy.rolls = tuple(draw(st.sets(st.sampled_from(bases))))
    return copies, leaves, ends


def parting(left: int, leaves: list[int | None], ends: list[int], right: int) -> int | None:
    """The first offset at which two replicas hold something else: None where one only ends before the other."""
    bounds = [leaves[index] for index in (left, right)]
    first = min(bound for bound in [*bounds, ends[left], ends[right]] if bound is not None)
    return first if first < min(ends[left], ends[right]) else None


@settings(max_examples=150, deadline=None)
@given(replicas())
def test_what_is_said_of_replicas_is_what_was_made(made):
    """One comparison of each, with all that it says: comparing takes longer than looking."""
    copies, leaves, ends = made
    with tempfile.TemporaryDirectory() as root:
        paths = [copy.write(Path(root) / f"b{number}") for number, copy in enumerate(copies)]
        result = run(*paths)
    (compared,) = result.partitions
    require_relations(compared, leaves, ends)
    require_truncations(compared, leaves, ends)
    for finding in result.scan.findings:
        if finding.code == "KA601":
            require_cost(compared, finding, copies)


def require_relations(compared, leaves, ends):
    """Relation, difference and end of agreement are those of the making."""
    pairs = [(left, right) for right in range(len(ends)) for left in range(right)]
    visible = {}
    for left, right in pairs:
        offset = parting(left, leaves, ends, right)
        if offset is not None:
            visible[left, right] = offset
    if visible:
        assert compared.relation is Relation.DIVERGED
        assert compared.first_difference is not None
        assert compared.first_difference.offset == min(visible.values())
    else:
        assert compared.first_difference is None
        assert compared.relation is (Relation.IDENTICAL if len(set(ends)) == 1 else Relation.BEHIND)
    assert compared.common_end_offset == min([*visible.values(), *ends])
    assert list(compared.end_offsets.values()) == ends


def require_truncations(compared, leaves, ends):
    """What a replica would be truncated to is where it left its reference."""
    names = list(compared.end_offsets)
    assert compared.reference is not None
    reference = names.index(compared.reference)
    for number, name in enumerate(names):
        if number != reference:
            left = parting(number, leaves, ends, reference)
            # the broker's rule on what each wrote: agreement is kept, whatever follows is cut
            expected = left if left is not None else min(ends[number], ends[reference])
            if leaves[number] is not None:
                expected = min(expected, leaves[number])
            assert compared.truncation_offsets[name] == expected


def require_cost(compared, finding, copies):
    """What a diverged replica costs is what the reference never had."""
    names = list(compared.end_offsets)
    missing = finding.evidence["missing_on_reference"]
    assert isinstance(missing, dict)
    assert compared.reference is not None
    # every batch of the making has a payload of its own
    had = {batch.payload for batch in copies[names.index(compared.reference)].batches}
    from_here = min(finding.offset or 0, compared.end_offsets[compared.reference])
    for name, relation in compared.relations.items():
        if relation is Relation.DIVERGED:
            own = [batch for batch in copies[names.index(name)].batches if batch.base_offset >= from_here]
            assert missing[name]["records"] == sum(batch.count for batch in own if batch.payload not in had)
            assert missing[name]["elsewhere"] == missing[name]["below_high_watermark"] == 0


@settings(max_examples=80, deadline=None)
@given(histories(), st.data())
def test_the_cleaner_makes_no_difference(log, data):
    copies = []
    for _ in range(2):
        copy = log.copy()
        kept = []
        for batch in copy.batches[:-1]:
            left = data.draw(st.integers(0, batch.count))
            if left == batch.count:
                kept.append(replace(batch, key=b"key"))
            elif left or data.draw(st.booleans()):
                kept.append(replace(batch, key=b"key", kept=left))
        copy.batches = [*kept, copy.batches[-1]]
        copies.append(copy)
    with tempfile.TemporaryDirectory() as root:
        paths = [copy.write(Path(root) / f"b{number}") for number, copy in enumerate(copies)]
        result = run(*paths)
    if any(batch.kept is not None for copy in copies for batch in copy.batches):
        assert result.partitions[0].relation is Relation.IDENTICAL
        assert result.scan.findings == []
    # where it took whole batches only, nothing in the logs shows that it was the cleaner
    assert {found.severity.value for found in result.scan.findings} <= {"warning"}
    assert all(gap.may_be_compaction for gap in result.partitions[0].gaps)
