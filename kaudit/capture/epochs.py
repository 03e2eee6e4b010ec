"""The leader epochs of a captured partition, as the broker's LeaderEpochFileCache holds them."""

from collections.abc import Iterable
from typing import Final

from kaudit.capture.directory import CaptureDirectory
from kaudit.formats.sidefiles.checkpoint_text import leader_epoch_checkpoint
from kaudit.formats.sidefiles.checkpoints import LEADER_EPOCH_CHECKPOINT, parse_leader_epoch_checkpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.kafka.answers import TopicPartition
from kaudit.source.kafka.client import KafkaClient

MOST_ASKED: Final = 1000
"""Epochs a broker is asked for; those before are known by their batches."""


class LeaderEpochs:
    """The start offsets of epochs, those of earlier runs first. Epochs ascend, and so do their offsets."""

    def __init__(self, directory: CaptureDirectory, partition: str) -> None:
        """Take up what an earlier run wrote."""
        self._directory = directory
        self._partition = partition
        data = directory.read(partition, LEADER_EPOCH_CHECKPOINT)
        rows = () if data is None else parse_leader_epoch_checkpoint(data).rows
        self._starts = {row.epoch: row.start_offset for row in rows}
        self._earlier = frozenset(self._starts)
        self._written: str | None = None

    @property
    def latest(self) -> int:
        """The newest epoch, -1 where none is known."""
        return max(self._starts, default=-1)

    def add(self, epoch: int, offset: int) -> None:
        """Take the epoch of a batch at `offset`, as a follower does when it appends the batch."""
        if epoch > self.latest:
            self._starts[epoch] = offset

    def merge(self, entries: Iterable[EpochEntry]) -> None:
        """Take what the leader knows: epochs without batches too. What earlier runs found stays: the leader forgets."""
        self._starts |= {entry.epoch: entry.start_offset for entry in entries if entry.epoch not in self._earlier}

    def write(self, end_offset: int) -> None:
        """Write those that begin at `end_offset` or before it, unless they are written already."""
        rows = [EpochEntry(epoch, start) for epoch, start in sorted(self._starts.items()) if start <= end_offset]
        text = leader_epoch_checkpoint(rows)
        if text != self._written:
            self._directory.write(text, self._partition, LEADER_EPOCH_CHECKPOINT)
            self._written = text


def epochs_of_leader(
    client: KafkaClient, partition: TopicPartition, current_epoch: int, log_start_offset: int
) -> list[EpochEntry]:
    """Ask a partition's leader for its epochs, newest first, and where they begin.

    The answer for an epoch is the end offset of the greatest epoch up to it, which is where the next one begins
    (LeaderEpochFileCache.endOffsetFor). Below the oldest epoch a broker answers the epoch asked for, and the oldest's start.
    """
    found: list[EpochEntry] = []
    epoch, _ = client.epoch_end_offset(partition, current_epoch)
    while epoch >= 0 and len(found) < MOST_ASKED:
        before, start = client.epoch_end_offset(partition, epoch - 1) if epoch else (-1, -1)
        if found and start == found[-1].start_offset:
            break  # the epoch asked for is not in the cache, nor any before it
        if before < 0:
            found.append(EpochEntry(epoch, log_start_offset))
            break
        found.append(EpochEntry(epoch, start))
        epoch = before
    return found
