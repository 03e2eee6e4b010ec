"""Producer ids under which two writers write: which to look at again, and what a second look shows."""

from kaudit.checks.sharing import Sharing, believable, facts_of_weave, suspects
from kaudit.pipeline.inhabitants import Inhabitants
from kaudit.pipeline.read import OpenSource
from kaudit.pipeline.second_look import Questions, look_again
from kaudit.replay.allocation.interleaving import find_woven


def find_weaves(part: Inhabitants, open_source: OpenSource) -> list[Sharing]:
    """Return the ids of a partition whose batches are two chains; it is read again where its facts let suspect that."""
    chosen = suspects(part.facts)
    if not chosen:
        return []
    seen = look_again(part.directory, open_source, Questions(chains=chosen))
    found: list[Sharing] = []
    for producer_id, epoch in chosen:
        woven = find_woven(seen.chain(producer_id, epoch))
        if woven is None:
            continue
        own = facts_of_weave(part.facts, producer_id, epoch, woven)
        sharing = Sharing(producer_id, epoch, woven, own, log_append_time=part.counts.log_append_time > 0)
        if own and believable(sharing):
            found.append(sharing)
    return found
