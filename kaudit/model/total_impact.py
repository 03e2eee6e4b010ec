"""The total cost of several findings, without counting anything twice."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.impact import NO_IMPACT, Impact

_Place = tuple[object, ...]
_Bounds = tuple[int, int | None]
"""Records lost, or written twice: at least, and at most (None: not known)."""
_NO_CHANGE: _Place = (-1,)


def total_impact(findings: Iterable[Finding]) -> Impact:
    """Add up what findings of one cause cost: `added` of what they cost in each partition.

    Findings about overlapping offsets of a log share what they count. Replicas of a partition that say so of the same
    offsets lost it once, but each broker truncates its own log. `last_stable_offset` is that of the partition, None for
    several.
    """
    return added(list(impacts_by_partition(findings).values()))


def added(partitions: Sequence[Impact]) -> Impact:
    """Add up what different partitions cost."""
    least, most = _all_added((part.records_lost_at_least, part.records_lost_at_most) for part in partitions)
    copied = _all_added((part.records_duplicated, part.records_duplicated_at_most) for part in partitions)
    again = _delivered_again(partitions)
    stable = [part.last_stable_offset for part in partitions if part.last_stable_offset is not None]
    return Impact(
        records_lost_at_least=least,
        records_lost_at_most=most,
        records_duplicated=copied[0],
        records_duplicated_at_most=copied[1],
        records_delivered_again=again[0],
        records_delivered_again_at_most=again[1],
        records_skipped_at_most=_sum(part.records_skipped_at_most for part in partitions),
        records_failed_but_written=_sum(part.records_failed_but_written for part in partitions),
        records_failed_but_written_at_most=_sum(part.records_failed_but_written_at_most for part in partitions),
        records_failed_not_written=_sum(part.records_failed_not_written for part in partitions),
        commits_went_back=_sum(part.commits_went_back for part in partitions),
        offsets_invisible=_sum(part.offsets_invisible for part in partitions),
        last_stable_offset=stable[0] if len(stable) == 1 else None,
        invisible_since_timestamp=_least(part.invisible_since_timestamp for part in partitions),
        bytes_truncated=_sum(part.bytes_truncated for part in partitions),
        cannot_start=tuple(sentence for part in partitions for sentence in part.cannot_start),
        cautions=tuple(caution for part in partitions for caution in part.cautions),
    )


def impacts_by_partition(findings: Iterable[Finding]) -> Mapping[tuple[str, int], Impact]:
    """Return what findings cost in each partition, by topic and number (`""` and -1 for findings about none), in order."""
    costly = [finding for finding in findings if finding.impact != NO_IMPACT]
    return {group[0].partition_key: _of_partition(group) for group in _grouped(costly, attrgetter("partition_key"))}


def _of_partition(findings: Sequence[Finding]) -> Impact:
    impacts = [finding.impact for finding in findings]
    logs = [[finding.impact for finding in log] for log in _grouped(findings, _replica)]
    lossy = [finding for finding in findings if finding.impact.is_lossy]
    copied = [finding for finding in findings if finding.impact.records_duplicated is not None]
    least, most = _in_partition(lossy, _lost_by, _lost)
    again = _delivered_again(impacts)
    copied_at_least, copied_at_most = _in_partition(copied, _copied, lambda same: _greatest(map(_copied, same)))
    return Impact(
        records_lost_at_least=least if lossy else None,
        records_lost_at_most=most if lossy else None,
        records_duplicated=copied_at_least if copied else None,
        records_duplicated_at_most=copied_at_most if copied else None,
        records_delivered_again=again[0],
        records_delivered_again_at_most=again[1],
        records_skipped_at_most=_sum(impact.records_skipped_at_most for impact in impacts),
        records_failed_but_written=_on_one_replica(logs, "records_failed_but_written"),
        records_failed_but_written_at_most=_on_one_replica(logs, "records_failed_but_written_at_most"),
        records_failed_not_written=_on_one_replica(logs, "records_failed_not_written"),
        commits_went_back=_sum(impact.commits_went_back for impact in impacts),
        offsets_invisible=_most(impact.offsets_invisible for impact in impacts),
        last_stable_offset=_least(impact.last_stable_offset for impact in impacts),
        invisible_since_timestamp=_least(impact.invisible_since_timestamp for impact in impacts),
        # what is cut off at the first damage of a log includes what would be cut off at a later one
        bytes_truncated=_sum(_most(impact.bytes_truncated for impact in log) for log in logs),
        cannot_start=tuple(dict.fromkeys(sentence for impact in impacts for sentence in impact.cannot_start)),
        cautions=tuple(dict.fromkeys(caution for impact in impacts for caution in impact.cautions)),
    )


def _on_one_replica(logs: Sequence[Sequence[Impact]], name: str) -> int | None:
    """Add up what findings about one replica count; of several replicas, which have the same records, the most."""
    return _most(_sum(map(attrgetter(name), log)) for log in logs)


def _delivered_again(impacts: Iterable[Impact]) -> tuple[int | None, int | None]:
    """Add up what consumers were given again: at least (None: no impact says), and at most (None: of one it is not known)."""
    bounds = map(attrgetter("records_delivered_again", "records_delivered_again_at_most"), impacts)
    known = [each for each in bounds if each != (None, None)]
    return _sum(least for least, _ in known), None if None in (most := [each for _, each in known]) else _sum(most)


def _in_partition(
    findings: Sequence[Finding], alone: Callable[[Finding], _Bounds], in_log: Callable[[Sequence[Finding]], _Bounds]
) -> _Bounds:
    """Add up what findings about a partition cost; replicas that say so of the same offsets share it.

    `alone` bounds it for one finding, `in_log` for findings about overlapping offsets of one replica.
    """

    def of(same: Sequence[Finding]) -> _Bounds:
        if len(same) == 1:
            return alone(same[0])
        return _greatest(_added(list(map(in_log, _overlapping(log)))) for log in _grouped(same, _replica))

    return _added(list(map(of, _overlapping(findings))))


def _lost_by(finding: Finding) -> _Bounds:
    return finding.impact.records_lost_at_least or 0, finding.impact.records_lost_at_most


def _copied(finding: Finding) -> _Bounds:
    return finding.impact.records_duplicated or 0, finding.impact.records_duplicated_at_most


def _lost(cluster: Sequence[Finding]) -> _Bounds:
    """Bound what findings about overlapping offsets lost.

    Sequences of two producers are different records. Missing offsets may have held those records, or others.
    """
    producers: list[_Bounds] = []
    offsets: _Bounds = 0, 0
    for group in _grouped(cluster, _producer):
        if group[0].producer_id is None:
            offsets = _lost_of_changes(group)
        else:
            producers.append(_lost_once(group))
    _, most = _added([*producers, offsets])
    return max(_added(producers)[0], offsets[0]), most


def _lost_of_changes(findings: Sequence[Finding]) -> _Bounds:
    """Bound the loss at overlapping offsets: what was cut off there when one leader epoch began is not what was when another did."""
    changes = [
        _lost_once(group) for group in _grouped(findings, _leader_epoch) if _leader_epoch(group[0]) != _NO_CHANGE
    ]
    if len(changes) < 2:
        return _lost_once(findings)
    others = [finding for finding in findings if _leader_epoch(finding) == _NO_CHANGE]
    cut, other = _added(changes), _lost_once(others) if others else (0, 0)
    return max(cut[0], other[0]), _added([cut, other])[1]


def _lost_once(findings: Sequence[Finding]) -> _Bounds:
    """Bound the loss of findings that may be about the same records: of one producer, or of one range of offsets."""
    at_least, claimed = zip(*map(_lost_by, findings), strict=True)
    least = max(at_least)
    if None in claimed or findings[0].producer_id is not None:
        return least, None if None in claimed else _most(claimed)
    most = _sum(claimed)
    within_offsets = all(
        (finding.impact.records_lost_at_most or 0) <= _length(*_range(finding)) for finding in findings
    )
    return least, min(most or 0, _covered(findings)) if within_offsets else most


def _covered(findings: Sequence[Finding]) -> int:
    """Return how many offsets are in one of the findings' ranges."""
    covered, end = 0, -1
    for first, last in sorted(_range(finding) for finding in findings):
        covered += _length(max(first, end + 1), last)
        end = max(end, last)
    return covered


def _length(first: int, last: int) -> int:
    return max(last - first + 1, 0)


def _overlapping(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Yield the findings in groups whose offsets touch no other group's; one without an offset is a group of its own."""
    placed = [(*_range(finding), number) for number, finding in enumerate(findings) if finding.offset is not None]
    cluster: list[Finding] = []
    end = -1
    for first, last, number in sorted(placed):
        if cluster and first > end:
            yield cluster
            cluster = []
        cluster.append(findings[number])
        end = max(end, last)
    if cluster:
        yield cluster
    yield from ([finding] for finding in findings if finding.offset is None)


def _range(finding: Finding) -> tuple[int, int]:
    first = -1 if finding.offset is None else finding.offset
    return first, first if finding.last_offset is None else finding.last_offset


def _grouped(findings: Iterable[Finding], place: Callable[[Finding], _Place]) -> list[list[Finding]]:
    groups = grouped((place(finding), finding) for finding in findings)
    return [groups[key] for key in sorted(groups)]


def _replica(finding: Finding) -> _Place:
    return finding.replica or "", finding.log_dir or ""


def _producer(finding: Finding) -> _Place:
    return (-1 if finding.producer_id is None else finding.producer_id,)


def _leader_epoch(finding: Finding) -> _Place:
    epoch = finding.evidence.leader_epoch
    return _NO_CHANGE if epoch is None else (epoch,)


def _added(bounds: Sequence[_Bounds]) -> _Bounds:
    at_most = [most for _, most in bounds]
    return sum(least for least, _ in bounds), None if None in at_most else _sum(at_most)


def _all_added(bounds: Iterable[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    """Add the bounds of those whose lower one is known; nothing of none."""
    known = [(least, most) for least, most in bounds if least is not None]
    return _added(known) if known else (None, None)


def _greatest(bounds: Iterable[_Bounds]) -> _Bounds:
    at_least, at_most = zip(*bounds, strict=True)
    return max(at_least), None if None in at_most else _most(at_most)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
