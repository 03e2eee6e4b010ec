"""The verdict over a result: three lines and their numbers, from what findings cost, whatever checks they are of."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product

from msgspec.structs import replace

from kaudit.checks.texts import counted, listed, time_text
from kaudit.model.finding import Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.result import OUTSIDE_TIME, BlockedPartition, PartitionBounds, ScanResult, UnlistedFindings, Verdict
from kaudit.model.severity import Severity, Status
from kaudit.model.total_impact import added, impacts_by_partition
from kaudit.model.transactional_ids import parse_name
from kaudit.results.costs import between, consumed, failed, since_text
from kaudit.results.incidents import members
from kaudit.results.scope import coverage_sentence, extent
from kaudit.results.selection import count

_NAMED = 2
"""Partitions and ids that a line names; of more it says how many."""
_BLOCKED_LISTED = 100
_ROWS, _COLUMNS = 3, 80
"""What the lines take on a terminal, where their wording can be made to fit."""
_Place = tuple[str, int]
_ACTS = {
    Act.RESTART: "restart the broker of {}",
    Act.DELETE: "delete {}",
    Act.ELECT: "let {} become leader",
    Act.ABORT: "abort {}",
    Act.ATTACH: "attach {} to one cluster",
}
_OF_THE_COPIED = {
    Act.RESTART: ("restart its broker", "restart their brokers"),
    Act.DELETE: ("delete it", "delete them"),
}
"""Acts on the one target, or on all targets, that the sentence has just named."""
COMMAND = "first: "
"""What comes before a command, which is a line of its own."""
_COUNTED = {(Status.NEW, Severity.ERROR), (Status.NEW, Severity.WARNING)}
_ELSEWHERE = " to another place"
_SAVED_FIRST = (Act.RESTART, Act.DELETE)
"""Acts that destroy what their target holds: a copy of it makes them harmless."""


def verdict_of(result: ScanResult) -> Verdict:
    """Return the verdict that a result has, or that its findings give."""
    return result.verdict or made_verdict(result)


def with_verdict(result: ScanResult) -> ScanResult:
    """Return the result with the verdict that its findings give now."""
    return replace(result, verdict=made_verdict(result))


def made_verdict(result: ScanResult) -> Verdict:
    """Return the verdict that the new findings give.

    Errors and warnings say what was lost or written twice; what is blocked counts whatever its severity.
    """
    new = [finding for finding in result.findings if finding.status is Status.NEW]
    serious = [finding for finding in new if finding.severity is not Severity.NOTE]
    all_serious: list[Finding | UnlistedFindings] = [*serious]
    all_serious += [each for each in result.unlisted if (each.status, each.severity) in _COUNTED]
    impacts = impacts_by_partition(serious)
    lost = {
        place: (each.records_lost_at_least or 0, each.records_lost_at_most)
        for place, each in impacts.items()
        if each.is_lossy
    }
    doubled = {
        place: (each.records_duplicated, each.records_duplicated_at_most)
        for place, each in impacts.items()
        if each.records_duplicated is not None
    }
    blocked = sorted(_blocked(new), key=lambda each: -(each.offsets_invisible or 0))
    # what is open may be aborted whatever its severity
    held = [
        finding for finding in new if finding.severity is Severity.NOTE and finding.evidence.coordinator is not None
    ]
    worst_first = sorted([*serious, *held], key=lambda finding: finding.severity.rank, reverse=True)
    cautions = list(dict.fromkeys([*_given(worst_first), *_recoveries(worst_first)]))
    incidents = len({finding.incident or id(finding) for finding in serious})
    first = _first(serious, cautions)
    found = _found_text(all_serious, incidents if incidents < len(serious) else 0)
    costs = [_costs_text(list(impacts.values()), lost, doubled, most) for most in (_NAMED, 1)]
    return Verdict(
        lines=_fitted(
            list(_cost_line(result, costs, found, missing_evidence(serious), is_blocked=bool(blocked))),
            list(_blocked_line(blocked, serious)),
            list(_advice_line(first, cautions)),
        ),
        severity=max({each.severity for each in all_serious}, default=None),
        records_lost=_bounds(lost),
        records_duplicated=_bounds(doubled),
        blocked=blocked[:_BLOCKED_LISTED],
        blocked_partitions=len(blocked),
        first=first,
        cautions=cautions,
    )


def _fitted(*parts: Sequence[str]) -> list[str]:
    """Return a line for each part, in the longest wordings that fit into _ROWS; else the first parts joined in one line.

    Each part has its wordings, the longest first; details of what is blocked are left out first, then those of the advice.
    """
    cost, blocked, advice = (wordings or ("",) for wordings in parts)
    for joined in (1, 2, 3):
        for first, last, middle in product(cost, advice, blocked):
            lines = [first, *filter(None, (middle, last))]
            together = min(joined, len(lines) - last.startswith(COMMAND))
            lines = ["; ".join(lines[:together]), *lines[together:]]
            if sum(map(_rows, lines)) <= _ROWS:
                return lines
    return [wordings[-1] for wordings in parts if wordings]


def _rows(line: str) -> int:
    """Return how many rows a line takes; commands are not wrapped, so that they can be copied."""
    if line.startswith(COMMAND):
        return 1
    return len(textwrap.wrap(line, _COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


def missing_evidence(findings: Iterable[Finding]) -> list[str]:
    """Return what evidence would bound a loss, of the findings whose loss may be none or has no upper bound."""
    fetches = (
        fetch
        for finding in findings
        if (fetch := finding.evidence.to_be_certain) and finding.impact.is_lossy
        if finding.impact.records_lost_at_most != 0
        if not finding.impact.records_lost_at_least or finding.impact.records_lost_at_most is None
    )
    return list(dict.fromkeys(each.partition(": ")[0] for fetch in fetches for each in fetch.split("; ")))


_Bounds = tuple[int, int | None]
"""At least, and at most (None: not known)."""


def _bounds(partitions: Mapping[_Place, _Bounds]) -> PartitionBounds:
    """Add up the bounds of partitions. What is at least lost where no upper bound is known counts in both."""
    costly = [bounds for bounds in partitions.values() if bounds != (0, 0)]
    unknown = sum(most is None for _, most in costly)
    return PartitionBounds(
        at_least=sum(least for least, _ in costly),
        at_most=sum(least if most is None else most for least, most in costly),
        partitions=len(costly) - unknown,
        unknown_in=unknown,
    )


def _costs_text(
    impacts: Sequence[Impact], lost: Mapping[_Place, _Bounds], doubled: Mapping[_Place, _Bounds], most_named: int
) -> list[str]:
    total = added(impacts)
    texts = [*_records_text(lost, "lost", most_named), *_records_text(doubled, "written twice", most_named)]
    return [*texts, *failed(total), *consumed(total)]


def _records_text(partitions: Mapping[_Place, _Bounds], became: str, most_named: int) -> Iterator[str]:
    bounds = _bounds(partitions)
    where = _where([place for place, own in partitions.items() if own != (0, 0)], most_named)
    if not bounds.nothing and not bounds.at_most:
        yield f"records may be {became}{where}: how many is not known"
    elif not bounds.nothing:
        yield f"{_bounds_text(bounds)} {became}{_extent_of(bounds, where)}"


def _bounds_text(bounds: PartitionBounds) -> str:
    is_open = not bounds.partitions or (bounds.unknown_in and bounds.at_least == bounds.at_most)
    return between(bounds.at_least, None if is_open else bounds.at_most)


def _extent_of(bounds: PartitionBounds, where: str) -> str:
    """Return in which partitions, and in how many of them no upper bound is known."""
    if not bounds.unknown_in:
        return where
    if not bounds.partitions:
        return f"{where} (no upper bound)"
    return f" in {counted(bounds.partitions, 'partition')}, unknown in {bounds.unknown_in:,}"


def _where(places: Sequence[_Place], most_named: int = _NAMED) -> str:
    """Return ` in orders-0`, ` in 4 partitions` where they are more than `most_named`, or nothing for what is in no partition."""
    named = [f"{topic}-{partition}" if partition >= 0 else topic for topic, partition in places if topic]
    if not named:
        return ""
    return f" in {listed(named)}" if len(named) <= most_named else f" in {counted(len(named), 'partition')}"


def _found_text(serious: Sequence[Finding | UnlistedFindings], incidents: int) -> str:
    """Return `2 errors, 1 warning, 2 incidents`; empty where there is none."""
    counts = count(serious)
    numbers = [(counts["error"], "error"), (counts["warning"], "warning"), (incidents, "incident")]
    return ", ".join(counted(number, name) for number, name in numbers if number)


def _cost_line(
    result: ScanResult, costs: Sequence[Sequence[str]], found: str, missing: Sequence[str], *, is_blocked: bool
) -> Iterator[str]:
    """Yield the line about what was lost or written twice, the longest wording first. `costs` are wordings of the costs."""
    if costs[0]:
        texts = [*(f"{'; '.join(each)} ({found})" for each in costs), "; ".join(costs[-1])]
    elif found:
        text = "no record is known to be lost or written twice"
        texts = [f"{text} ({found})", text]
    else:
        scope = [f"{_nothing(result)} {extent(result)}", coverage_sentence(result)]
        texts = [_nothing(result) if is_blocked else "; ".join(filter(None, scope))]
    ends = [f"missing: {_some(missing)}"] if missing else []
    healthy = not costs[0] and not found
    for most_named in (1, 0):
        unknown = list(_not_known(result, most_named, healthy=healthy))
        yield from ("; ".join([text, *ends, *unknown]) for text in dict.fromkeys(texts))


def _nothing(result: ScanResult) -> str:
    """Return what to say where there is no new error and no new warning."""
    if not result.findings and not result.unlisted:
        return "no findings"
    new = any(Status.NEW in {each.status for each in found} for found in (result.findings, result.unlisted))
    return "no errors, no warnings" if new else "no new findings"


def _not_known(result: ScanResult, most_named: int, *, healthy: bool) -> Iterator[str]:
    """Yield what is not in it: findings that are only counted, not asked for or accepted, what could not be read or checked.

    More paths than `most_named` are counted.
    """
    omitted, left_out = result.summary.omitted, result.left_out
    if omitted and not healthy:
        yield f"without {counted(omitted, 'finding')} that {'is' if omitted == 1 else 'are'} not listed"
    numbers = {
        "left out by --select and --ignore": left_out,
        "in the baseline": _having(result, Status.KNOWN),
        "suppressed by the configuration": _having(result, Status.SUPPRESSED),
    }
    yield from (f"{counted(number, 'finding')} {why}" for why, number in numbers.items() if number)
    yield from (item.reason.partition(";")[0] for item in result.not_audited if item.path == OUTSIDE_TIME)
    unreadable = list(dict.fromkeys(item.path for item in result.not_audited if item.unreadable))
    unchecked = list(
        dict.fromkeys(item.path for item in result.not_audited if not item.unreadable and item.path != OUTSIDE_TIME)
    )
    if unreadable:
        yield f"could not be read: {_only(unreadable, 'path', most_named)}"
    if unchecked and healthy:
        yield f"not checked: {_only(unchecked, 'item', most_named)}"
    if result.incomplete:
        yield "incomplete: the absence of findings proves nothing"


def _having(result: ScanResult, status: Status) -> int:
    return sum(finding.status is status for finding in result.findings) + sum(
        more.count for more in result.unlisted if more.status is status
    )


def _blocked(findings: Iterable[Finding]) -> Iterator[BlockedPartition]:
    """Yield the partitions whose last stable offset an open transaction holds back."""
    holding: dict[_Place, list[Finding]] = {}
    opened: dict[_Place, dict[tuple[object, ...], Finding]] = {}
    for finding in findings:
        stable, hidden = finding.impact.last_stable_offset, finding.impact.offsets_invisible
        holds = (hidden is None and stable is not None) or hidden
        if finding.topic is None or finding.partition is None:
            continue
        place = finding.topic, finding.partition
        if holds:
            holding.setdefault(place, []).append(finding)
        if finding.evidence.coordinator is not None:
            opened.setdefault(place, {})[finding.producer_id, finding.offset] = finding
    for place, total in impacts_by_partition(each for group in holding.values() for each in group).items():
        group = holding[place]
        waiting = [*opened.get(place, {}).values()]
        ends = [each.evidence.aborted_at_timestamp for each in waiting]
        yield BlockedPartition(
            topic=place[0],
            partition=place[1],
            last_stable_offset=total.last_stable_offset,
            offsets_invisible=total.offsets_invisible,
            since_timestamp=total.invisible_since_timestamp,
            severity=max(finding.severity for finding in group),
            transactional_ids=sorted({name for each in [*group, *waiting] if (name := each.evidence.transactional_id)}),
            open_transactions=len(waiting),
            siblings=sorted(
                {
                    name
                    for each in waiting
                    if each.evidence.siblings
                    for name in each.evidence.siblings.transactional_ids
                }
            ),
            aborted_at_timestamp=min((end for end in ends if end is not None), default=None),
        )


def _blocked_line(blocked: Sequence[BlockedPartition], findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the line about partitions and brokers that stand still, the longest wording first."""
    sentences = list(dict.fromkeys(sentence for each in findings for sentence in each.impact.cannot_start))
    texts = list(_stable_offsets(blocked)) if blocked else [""]
    yield from filter(None, ("; ".join(filter(None, (text, *sentences[:_NAMED]))) for text in texts))


def _stable_offsets(blocked: Sequence[BlockedPartition]) -> Iterator[str]:
    known = [each.offsets_invisible for each in blocked if each.offsets_invisible is not None]
    what = counted(sum(known), "offset") if known else "what follows"
    places = [(each.topic, each.partition) for each in blocked]
    since = [each.since_timestamp for each in blocked if each.since_timestamp is not None and each.since_timestamp >= 0]
    since_then = since_text(min(since, default=None))
    text, short = (
        f"read_committed consumers cannot see {what}{_where(places, most)}{since_then}" for most in (_NAMED, 1)
    )
    end = ""
    details = []
    if len(blocked) == 1 and blocked[0].last_stable_offset is not None:
        details.append((3, f"the last stable offset stays at {blocked[0].last_stable_offset}"))
    details += _owners_text(blocked)
    if all(each.severity is Severity.NOTE for each in blocked):
        ends = [each.aborted_at_timestamp for each in blocked if each.aborted_at_timestamp is not None]
        end = f"; coordinators abort what is open from {time_text(min(ends))} on" if ends else ""
        details.append((0, "within the transaction's timeout"))
    for most, last in ((3, end), (3, ""), (2, ""), (1, ""), (0, "")):
        if shown := [detail for rank, detail in details if rank <= most]:
            yield f"{text}: {', '.join(shown)}{last}"
    yield from dict.fromkeys((text, short))


def _owners_text(blocked: Sequence[BlockedPartition]) -> Iterator[tuple[int, str]]:
    """Yield how many transactions are open, of which ids, and which siblings of theirs went on, each with its rank."""
    names = sorted({name for each in blocked for name in each.transactional_ids})
    # one transaction may be open in several partitions
    number = blocked[0].open_transactions if len(blocked) == 1 else len(names)
    several = f"{counted(number, 'open transaction')}, " if number > 1 else ""
    if names:
        # ids of one member are named together: of a subtask of Flink
        groups = sorted({name if (known := parse_name(name)) is None else known.ids for name in names})
        shown = groups if len(groups) < len(names) else names
        siblings = sorted({name for each in blocked for name in each.siblings})
        kind = "sibling" if len(siblings) == 1 else "siblings"
        yield 1, f"{several}transactional {'id' if len(names) == 1 else 'ids'} {_some(shown)}"
        if siblings:
            yield 2, f"whose {kind} {_some(siblings)} went on"
    elif several:
        yield 1, several.removesuffix(", ")


def _given(findings: Iterable[Finding]) -> Iterator[Caution]:
    return (caution for finding in findings for caution in finding.impact.cautions)


def _recoveries(findings: Iterable[Finding]) -> Iterator[Caution]:
    """Yield a caution for each log of which a broker that recovers it cuts off the end."""
    for finding in findings:
        if finding.impact.bytes_truncated and finding.replica is not None:
            lost = counted(finding.impact.bytes_truncated, "byte")
            yield Caution(Act.RESTART, f"replica {finding.replica}", f"recovery cuts off {lost} of {finding.place}")


def _first(findings: Sequence[Finding], cautions: Sequence[Caution]) -> str | None:
    """Return what to do first: save what an act would destroy, otherwise the first command of the costliest incident."""
    saving = _saving(cautions)
    if saving is not None:
        return saving
    return next((command for group in members(findings) for command in _harmless(group[0].next)), None)


def _saving(cautions: Sequence[Caution]) -> str | None:
    targets = list(dict.fromkeys(each.target for each in cautions if each.act in _SAVED_FIRST))
    return f"copy {_some(targets)}{_ELSEWHERE}" if targets else None


def _harmless(commands: Sequence[str]) -> Iterator[str]:
    """Yield the commands without a comment above them, which warns of what they do."""
    for before, command in pairwise(("", *commands)):
        if not command.startswith("#") and not before.startswith("#"):
            yield command


def _advice_line(first: str | None, cautions: Sequence[Caution]) -> Iterator[str]:
    """Yield the line about what to do first and what not to do before, the longest wording first."""
    forbidden, saving = _forbidden(cautions), _saving(cautions)
    if saving is not None:
        text = f"first {saving}; before that do not {forbidden}"
    elif forbidden:
        text = f"do not {forbidden}"
    else:
        yield from [] if first is None else [COMMAND + first]
        return
    reason = cautions[0].reason
    yield f"{text}: {reason}"
    yield f"{text}: {re.split('[,;:] ', reason)[0]}"
    yield text
    if saving is not None:
        yield f"{saving.removesuffix(_ELSEWHERE)} before you {forbidden}"


def _forbidden(cautions: Sequence[Caution]) -> str:
    """Return `restart its broker or delete it or let b2 become leader`; empty without cautions."""
    targets = {act: list(dict.fromkeys(each.target for each in cautions if each.act is act)) for act in _ACTS}
    copied = {target for act in _SAVED_FIRST for target in targets[act]}
    return " or ".join(
        _OF_THE_COPIED[act][len(named) > 1]
        if act in _SAVED_FIRST and copied == {*named}
        else _ACTS[act].format(_some(named, "or"))
        for act, named in targets.items()
        if named
    )


def _only(paths: Sequence[str], noun: str, most_named: int) -> str:
    """Return the one path there is, or how many there are: they may be named together already."""
    return paths[0] if len(paths) <= most_named else counted(len(paths), noun)


def _some(names: Sequence[str], word: str = "and") -> str:
    """Return `b1`, `b1 and b2`, `b1, b2 and 3 more`."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} {word} {len(names) - _NAMED:,} more"
    return f" {word} ".join(names)
