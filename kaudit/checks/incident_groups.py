"""Builds incidents in two steps: within each topic partition, then across partitions.

The second step needs no finding, only numbers that stand for the subjects of groups of findings: 24 bytes for each
subject that other partitions may share. So the findings of many processes become incidents without being collected in
one.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.incident_rules import REPLICAS, RULES, Near, Part, Rule, windows
from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped


class Reach(NamedTuple):
    """A subject of a group that other partitions may share, as a number.

    `at_ms` and `span_ms` are 0 where time does not matter.
    """

    group: int
    subject: int
    at_ms: int
    span_ms: int


class Group(NamedTuple):
    """Findings of one topic partition with one cause: rank of the first among all findings, its fingerprint, and their number."""

    rank: int
    fingerprint: str
    findings: int


class PartitionIncidents(Struct, frozen=True):
    """The findings of one topic partition, replicas included, in groups.

    `group_of` is the group of each finding; `reaches` are the subjects by which groups may belong to groups of other
    partitions.
    """

    group_of: Sequence[int]
    groups: Sequence[Group]
    reaches: Sequence[Reach]

    def own_ids(self) -> list[str | None]:
        """Return the id of each group's incident as far as the partition alone shows it."""
        return [group.fingerprint if group.findings > 1 else None for group in self.groups]


def with_incidents(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, in their order, with the id of their incident; None for one that stands alone."""
    by_partition = grouped((finding.partition_key, index) for index, finding in enumerate(findings))
    places = [sorted(by_partition[key], key=lambda index: findings[index].sort_key()) for key in sorted(by_partition)]
    parts = [[findings[index] for index in own] for own in places]
    partitions = list(map(partition_incidents, parts))
    across = ids_across(
        [dict(enumerate(partition.groups)) for partition in partitions],
        [partition.reaches for partition in partitions],
    )
    marked = list(findings)
    for number, (own, part, partition) in enumerate(zip(places, parts, partitions, strict=True)):
        for index, finding in zip(own, marked_with(part, partition, across.get(number, {})), strict=True):
            marked[index] = finding
    return marked


def parts_of(rule: Rule, codes: Iterable[str]) -> Mapping[str, Part]:
    """Return the part of those of these checks that have one in incidents of the rule, by code in order."""
    return {code: part for code in sorted(codes) if (part := _parts(code).get(rule.cause)) is not None}


@functools.cache
def _parts(code: str) -> Mapping[str, Part]:
    """The parts of a check, by the causes of the rules."""
    return {member.rule.cause: member.part for member in CHECKS[code].memberships} if code in CHECKS else {}


def subjects_of(rule: Rule, findings: Sequence[Finding]) -> Iterable[tuple[Finding, Hashable]]:
    """Return the subjects of the findings whose checks take part in the rule."""
    parts = parts_of(rule, {finding.code for finding in findings})
    return rule.subjects([finding for finding in findings if finding.code in parts or rule is REPLICAS], parts)


def rule_of(findings: Sequence[Finding]) -> Rule | None:
    """Return the first rule by which two findings of an incident belong together, None where there is none."""
    distinct = list({finding.fingerprint: finding for finding in findings}.values())
    if len(distinct) < len(findings) and len(distinct) == 1:
        return REPLICAS
    return next((rule for rule in RULES if _links(rule, distinct)), None)


def _links(rule: Rule, findings: Sequence[Finding]) -> bool:
    subjects = [subject for _, subject in subjects_of(rule, findings)]
    starts = windows(subject for subject in subjects if isinstance(subject, Near))
    resolved = [
        (subject.key, starts[subject]) if isinstance(subject, Near) else (subject, None) for subject in subjects
    ]
    return len(set(resolved)) < len(resolved)


def marked_with(findings: Sequence[Finding], incidents: PartitionIncidents, across: Mapping[int, str]) -> list[Finding]:
    """Return a topic partition's findings with the ids of their incidents; `across`: ids of groups that span partitions."""
    ids = [across.get(group, own) for group, own in enumerate(incidents.own_ids())]
    return [
        finding if finding.incident == ids[group] else replace(finding, incident=ids[group])
        for finding, group in zip(findings, incidents.group_of, strict=True)
    ]


def partition_incidents(findings: Sequence[Finding]) -> PartitionIncidents:
    """Group the findings of one topic partition, which are in the order of Finding.sort_key."""
    places = {id(finding): index for index, finding in enumerate(findings)}
    leads = _Leads(len(findings))
    reached: dict[tuple[int, int, int, int], None] = {}
    by_code = grouped((finding.code, finding) for finding in findings)
    for number, rule in enumerate(RULES):
        parts = parts_of(rule, by_code)
        chosen = findings if rule is REPLICAS else [finding for code in parts for finding in by_code[code]]
        first: dict[Hashable, int] = {}
        for finding, subject in rule.subjects(chosen, parts) if chosen else ():
            index = places[id(finding)]
            if isinstance(subject, Near):
                reached[index, _number(number, subject.key), subject.at_ms, subject.span_ms] = None
                continue
            if rule.across and subject not in first:
                reached[index, _number(number, subject), 0, 0] = None
            lead = first.setdefault(subject, index)
            if lead != index:
                leads.join(index, lead)
    return _grouped(findings, leads, reached)


def _grouped(
    findings: Sequence[Finding], leads: "_Leads", reached: Iterable[tuple[int, int, int, int]]
) -> PartitionIncidents:
    numbers: dict[int, int] = {}
    group_of = [numbers.setdefault(leads.of(index), len(numbers)) for index in range(len(findings))]
    sizes = Counter(group_of)
    groups: dict[int, Group] = {}
    if len(numbers) < len(findings) or reached:
        wanted = {group for group, size in sizes.items() if size > 1} | {group_of[index] for index, *_ in reached}
        ordered = [index for index, group in enumerate(group_of) if group in wanted]
        if len({finding.replica for finding in findings}) > 1:
            ordered.sort(key=lambda index: _order(findings[index]))
        for rank, index in enumerate(ordered):
            group = group_of[index]
            if group not in groups:
                groups[group] = Group(rank, findings[index].fingerprint, sizes[group])
    alone = Group(0, "", 1)
    reaches = dict.fromkeys(Reach(group_of[index], *about) for index, *about in reached)
    return PartitionIncidents(group_of, [groups.get(number, alone) for number in range(len(numbers))], list(reaches))


def ids_across(groups: Sequence[Mapping[int, Group]], reaches: Sequence[Sequence[Reach]]) -> dict[int, dict[int, str]]:
    """Return the ids of incidents that span partitions, by the number of the topic partition and of the group.

    Both sequences go by topic partition, in the order of findings.
    """
    nodes: dict[tuple[int, int], int] = {}
    about: list[tuple[int, Reach]] = []
    for number, own in enumerate(reaches):
        about += [(nodes.setdefault((number, reach.group), len(nodes)), reach) for reach in own]
    starts = windows(Near(reach.subject, reach.span_ms, reach.at_ms) for _, reach in about if reach.span_ms)
    leads = _Leads(len(nodes))
    first: dict[tuple[int, int], int] = {}
    for node, reach in about:
        start = starts[Near(reach.subject, reach.span_ms, reach.at_ms)] if reach.span_ms else -1
        leads.join(node, first.setdefault((reach.subject, start), node))
    places = list(nodes)
    together = grouped((leads.of(node), node) for node in range(len(nodes)))
    found: dict[int, dict[int, str]] = {}
    for same in together.values():
        if len(same) > 1:
            _, _, id_ = min((places[node][0], *groups[places[node][0]][places[node][1]][:2]) for node in same)
            for node in same:
                number, group = places[node]
                found.setdefault(number, {})[group] = id_
    return found


def _order(finding: Finding) -> tuple[object, ...]:
    """Order by place; equal for the copies of a finding on several replicas."""
    topic, partition, _, *rest = finding.sort_key()
    return (topic, partition, *rest)


def _number(rule: int, subject: Hashable) -> int:
    """Return a number for the subject, the same in every process."""
    digest = hashlib.blake2b(repr((rule, subject)).encode(errors="surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class _Leads:
    """Union-find over `count` items."""

    def __init__(self, count: int) -> None:
        self._leads = list(range(count))

    def of(self, index: int) -> int:
        leads = self._leads
        while leads[index] != index:
            leads[index] = index = leads[leads[index]]
        return index

    def join(self, one: int, other: int) -> None:
        self._leads[self.of(one)] = self.of(other)
