"""Inputs that groups commit in transactions, held against the outputs: what was processed twice, skipped, or committed outside."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.transactions.outputs import TransactionOutputs, WrittenContent, alternate, keys_read
from kaudit.model.batch_fields import ABORT_MARKER
from kaudit.model.exactly_once import (
    CommitsOutside,
    CommitTimes,
    EndOfTransaction,
    GroupInputs,
    OutputsAlone,
    ProcessedTwice,
    SameOffset,
    Skipped,
    WentOn,
)
from kaudit.model.result import NotAudited
from kaudit.model.transactional_ids import CONNECT_LEADER, CONNECT_TASK, FLINK, OLD_FLINK, parse_name
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.group_logs import GroupLog
from kaudit.source.layout import PartitionDirectory

_MOST_COMPARED = 200
"""Pairs of transactions whose outputs are read again."""
_LEAST_WITH_INPUTS = 2
"""Transactions with inputs by which a producer is known to commit them."""
_MOST_LATER = 3
"""Transactions after one without inputs that may have its outputs again: the group reads the same inputs next."""
_MOST_SAMPLED = 20
"""Transactions of a producer whose keys are compared with what a group read."""
_LEAST_KEYS = 20
_MOST_BEFORE = 10_000
"""Records that a group may have read before its first commit."""
_COMMITS_BY_DESIGN = (FLINK, OLD_FLINK, CONNECT_TASK, CONNECT_LEADER)
"""Programs that keep the offsets they go on from elsewhere, and commit them for others to see."""

ExactlyOnceEvidence = ProcessedTwice | Skipped | CommitsOutside | OutputsAlone
Names = Callable[[Collection[int]], Mapping[int, str]]
"""Returns the transactional ids of producer ids, as far as __transaction_state names them."""


class ExactlyOnce(Struct, frozen=True):
    """What was found about one partition of __consumer_offsets; `not_compared`: pairs of transactions that were to be compared."""

    evidence: Sequence[ExactlyOnceEvidence]
    not_compared: int = 0


def decide(
    inputs: Sequence[GroupInputs],
    outputs: TransactionOutputs,
    names: Names,
    open_source: OpenSource,
    directories: Iterable[PartitionDirectory] = (),
) -> list[ExactlyOnce]:
    """Return what is known of each partition of __consumer_offsets once its transactions are held against their outputs."""
    reader = _OutputReader(outputs, directories, open_source)
    in_turn = _in_turn([plain for own in inputs for plain in own.plain], outputs, names, reader)
    found: list[ExactlyOnce] = []
    for own in inputs:
        reader.not_compared = 0
        evidence: list[ExactlyOnceEvidence] = [
            *(replace(twice, outputs=outputs.committed(twice.again, twice.last)) for twice in own.twice),
            *filter(None, map(reader.same_offset, own.same_offset)),
            *own.skipped,
            *filter(None, map(reader.went_on, own.went_on)),
            *own.outside,
            *_alone(own, outputs, reader, names),
            *(in_turn[plain.group] for plain in own.plain if plain.group in in_turn),
        ]
        found.append(ExactlyOnce(evidence, reader.not_compared))
    return _named(found, names)


def _named(found: Sequence[ExactlyOnce], names: Names) -> list[ExactlyOnce]:
    """Return the same with the transactional ids of the producers."""
    ids = {end.producer_id for own in found for each in own.evidence for _, end in _ends(each)}
    known = names(ids) if ids else {}
    return [replace(own, evidence=[_with_names(each, known) for each in own.evidence]) for own in found]


def _ends(evidence: ExactlyOnceEvidence) -> list[tuple[str, EndOfTransaction]]:
    values = ((name, getattr(evidence, name)) for name in evidence.__struct_fields__)
    return [(name, value) for name, value in values if isinstance(value, EndOfTransaction)]


def _with_names(evidence: ExactlyOnceEvidence, names: Mapping[int, str]) -> ExactlyOnceEvidence:
    ends = _ends(evidence)
    named = {name: replace(end, transactional_id=names.get(end.producer_id)) for name, end in ends}
    return replace(evidence, **named) if named else evidence


class _OutputReader:
    """Compares the outputs of transactions, of so many at most; `not_compared`: those beyond, or that cannot be read."""

    def __init__(
        self, outputs: TransactionOutputs, directories: Iterable[PartitionDirectory], open_source: OpenSource
    ) -> None:
        self._outputs, self._open = outputs, open_source
        self._directories = {(directory.topic, directory.partition): directory for directory in directories}
        self._compared = 0
        self.not_compared = 0

    def same_offset(self, same: SameOffset) -> ProcessedTwice | None:
        """Return inputs that were processed twice if the outputs of both transactions are the same."""
        before, again = self._content(same.before), self._content(same.again)
        if before is None or again is None:
            return None
        shared = len(np.intersect1d(before.contents, again.contents))
        if not shared or shared * 2 < min(len(before.contents), len(again.contents)):
            return None
        outputs = self._outputs.committed(same.again, same.again)
        end = same.inputs.end
        return ProcessedTwice(same.inputs, end, same.before, same.again, same.again, compared=True, outputs=outputs)

    def went_on(self, went: WentOn) -> Skipped | None:
        """Return skipped inputs if nothing that the aborted transaction wrote is in the one that went on."""
        aborted, committed = self._content(went.aborted, aborted=True), self._content(went.committed)
        if aborted is None or committed is None or not aborted.keyed:
            return None
        if np.isin(aborted.keys, committed.keys).any() or np.isin(aborted.contents, committed.contents).any():
            return None
        outputs = self._outputs.ranges(self._outputs.between(went.aborted, went.aborted, ABORT_MARKER))
        end = went.committed
        return Skipped(went.inputs, end.marker_offset, end.ended_ms, went.aborted, end, outputs)

    def written_again(self, alone: EndOfTransaction, later: EndOfTransaction) -> int:
        """Return how many distinct records of one transaction are in a later one."""
        before, again = self._content(alone), self._content(later)
        if before is None or again is None:
            return 0
        return len(np.intersect1d(before.contents, again.contents))

    def has_keys_of(self, group: CommitTimes, producer_id: int) -> bool:
        """Whether transactions of a producer, while a group commits, wrote keys that are nearly all among those the group read."""
        found = [
            self._content(end)
            for end in self._outputs.some(producer_id, group.times[0], group.times[-1], _MOST_SAMPLED)
        ]
        written = [content.keys for content in found if content is not None and content.keyed]
        if not written or len(written) < len(found):
            return False
        keys = np.unique(np.concatenate(written))
        if len(keys) < _LEAST_KEYS:
            return False
        read = [np.empty(0, dtype=np.int64)]
        for topic, partition, first, end in group.read:
            directory = self._directories.get((topic, partition))
            try:
                if directory is not None:
                    read.append(keys_read(directory, max(first - _MOST_BEFORE, 0), end, self._open))
            except OSError:  # the files note it
                self.not_compared += 1
        return int(np.isin(keys, np.concatenate(read)).sum()) * 10 >= len(keys) * 9

    def _content(self, end: EndOfTransaction, *, aborted: bool = False) -> WrittenContent | None:
        if self._compared >= 2 * _MOST_COMPARED:
            self.not_compared += 1
            return None
        self._compared += 1
        try:
            return self._outputs.content(end, self._open, aborted=aborted)
        except OSError:  # the files note it
            self.not_compared += 1
            return None


def _alone(
    own: GroupInputs, outputs: TransactionOutputs, reader: _OutputReader, names: Names
) -> Iterator[OutputsAlone]:
    """Yield producers that commit inputs in most of their transactions, and outputs alone in some: not programs that may write so."""
    found = {
        producer_id: outputs.without_inputs(producer_id, own.since_ms)
        for producer_id, groups in own.producers.items()
        if len(groups) == 1
    }
    found = {key: (count, rows) for key, (count, rows) in found.items() if len(rows) and count >= _LEAST_WITH_INPUTS}
    known = names(found) if found else {}
    for producer_id, (count, rows) in found.items():
        name = known.get(producer_id)
        if name is None or parse_name(name) is not None or len(rows) * 2 > count:
            continue
        (group,) = own.producers[producer_id]
        others = [key for key, groups in own.producers.items() if groups == [group]]
        ends = list(map(outputs.end_of, rows.tolist()))
        alone = OutputsAlone(group, count, len(rows), ends[0], ends[-1], outputs.ranges(rows))
        for end in ends:
            for later in outputs.later_commits(others, end.ended_ms, _MOST_LATER):
                written = reader.written_again(end, later) if alone.again is None else 0
                if written:
                    alone = replace(alone, again=later, written_again=written)
        yield alone


def _in_turn(
    plain: Sequence[CommitTimes], outputs: TransactionOutputs, names: Names, reader: _OutputReader
) -> dict[str, CommitsOutside]:
    """Return the groups whose producer, by its transactional id, writes in transactions without offsets what they read.

    That they do is shown by commits in turn with the transactions, or else by keys that are those of the inputs.
    """
    ends = dict(outputs.ends_without_inputs()) if plain else {}
    known = names(ends) if ends else {}
    found: dict[str, CommitsOutside] = {}
    for group in plain:
        for producer_id, name in known.items():
            if producer_id not in ends or not _are_alike(group.group, name):
                continue
            if alternate(group.times, ends[producer_id]) or reader.has_keys_of(group, producer_id):
                places = group.first_offset, group.times[0], group.last_offset, group.times[-1]
                found[group.group] = CommitsOutside(
                    group.group, group.commits, 0, group.topics, *places, producer_id, name
                )
    return found


def _are_alike(group: str, transactional_id: str) -> bool:
    parsed = parse_name(transactional_id)
    if parsed is not None and parsed.format.program in _COMMITS_BY_DESIGN:
        return False
    return group in transactional_id or transactional_id in group


def exactly_once(
    parts: Sequence[PartitionAudit], logs: Sequence[GroupLog], names: Names, open_source: OpenSource
) -> tuple[list[Sequence[ExactlyOnceEvidence]], list[NotAudited]]:
    """Return for each partition of a scan what its commits show of transactions: of the replica that was read; and what is not checked."""
    inputs = [log.inputs for log in logs]
    if not any(own.counts.committed or own.counts.aborted or own.plain for own in inputs):
        return [()] * len(parts), []
    outputs = TransactionOutputs(part.markers for part in parts if part.markers is not None)
    found = decide(inputs, outputs, names, open_source, [part.directory for part in parts])
    read = {log.directory.directory: own.evidence for log, own in zip(logs, found, strict=True)}
    notes = [
        NotAudited(log.directory.name, text)
        for log, own in zip(logs, found, strict=True)
        for text in _unchecked(log, own)
    ]
    return [read.get(part.directory.directory, ()) for part in parts], notes


def _unchecked(log: GroupLog, found: ExactlyOnce) -> Iterator[str]:
    if found.not_compared:
        yield f"the outputs of {found.not_compared:,} transactions were not compared, more than are read again (KA915, KA916)"
    more = sum(log.inputs.more.values())
    if more:
        yield f"{more:,} more inputs that were processed twice, skipped or committed outside are counted, not listed (KA915 to KA917)"
