"""Producer ids under which two writers write: which to look at again, and what a second look shows."""

from kaudit.analysis.producer_ids.partition_producer_ids import PartitionProducerIds
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.sequences.rescan import Questions, rescan
from kaudit.broker.producer_ids.interleaved_writers import find_interleaved_writers
from kaudit.checks.sharing import InterleavedWritersFinding, believable, facts_of_weave, suspects


def find_weaves(part: PartitionProducerIds, open_source: OpenSource) -> list[InterleavedWritersFinding]:
    """Return the ids of a partition whose batches are two chains; it is read again where its facts let suspect that."""
    chosen = suspects(part.facts)
    if not chosen:
        return []
    seen = rescan(part.directory, open_source, Questions(chains=chosen))
    found: list[InterleavedWritersFinding] = []
    for producer_id, epoch in chosen:
        woven = find_interleaved_writers(seen.chain(producer_id, epoch))
        if woven is None:
            continue
        own = facts_of_weave(part.facts, producer_id, epoch, woven)
        sharing = InterleavedWritersFinding(
            producer_id, epoch, woven, own, log_append_time=part.counts.log_append_time > 0
        )
        if own and believable(sharing):
            found.append(sharing)
    return found
