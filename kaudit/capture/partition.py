"""One partition of a live cluster, copied batch by batch into segments, with its leader epochs."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kaudit.broker.config import DEFAULT_SEGMENT_BYTES
from kaudit.capture.account import PartitionAccount
from kaudit.capture.directory import CaptureDirectory
from kaudit.capture.segments import Frame, NotABatchError, SegmentWriter, frames
from kaudit.formats.sidefiles.checkpoints import leader_epoch_checkpoint, parse_leader_epoch_checkpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT
from kaudit.source.kafka.answers import Fetched, PartitionMetadata, TopicMetadata, TopicPartition
from kaudit.source.kafka.client import EARLIEST, LATEST, KafkaClient
from kaudit.source.kafka.failures import AccessDeniedError, OffsetOutOfRangeError, UnsupportedRequestError

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


RETENTION: Final = "the broker deleted them before they were fetched (retention, or kafka-delete-records)"
NOT_IN_LOG: Final = "no batch of the broker's log covers them"


class CaptureError(Exception):
    """This partition cannot be captured any further. The text says why, and what to do."""


class PartitionCapture:
    """Copies one partition. `account` says how far it is; `end_offset` is the high watermark when the run began."""

    def __init__(
        self, client: KafkaClient, directory: CaptureDirectory, account: PartitionAccount, config: Mapping[str, str]
    ) -> None:
        """List what earlier runs captured; nothing is asked yet."""
        self._client = client
        self._directory = directory
        self._partition = TopicPartition(account.topic, account.partition)
        self._compacted = "compact" in config.get("cleanup.policy", "")
        # the default: the topic's configuration may be hidden
        self._writer = SegmentWriter(directory, account.name, int(config.get("segment.bytes", DEFAULT_SEGMENT_BYTES)))
        self.account = account
        self.epochs = LeaderEpochs(directory, account.name)
        self.end_offset = -1
        self._node: int | None = None
        self._current_epoch = -1
        self.whole = False
        """Whether every segment is in its place, and none will grow in this run."""
        self.prepared = False
        self.ended = False
        """Whether it cannot be captured any further."""

    # -- one run -------------------------------------------------------------------------------------------------------
    def prepare(self, topic: TopicMetadata, metadata: PartitionMetadata, from_replica: int | None) -> None:
        """Find where to go on, and up to where; `metadata` is the broker's own.

        Raises CaptureError where it is not the log that was captured before, OSError.
        """
        account, self._node = self.account, from_replica
        if account.topic_id is not None and topic.topic_id is not None and account.topic_id != topic.topic_id:
            raise CaptureError(
                f"the topic was deleted and created again (its id was {account.topic_id}, now it is {topic.topic_id}): "
                "capture it into another directory"
            )
        account.topic_id = account.topic_id or topic.topic_id
        self._current_epoch = metadata.leader_epoch
        self._take_up()
        self.end_offset = self._client.list_offset(self._partition, LATEST)
        account.high_watermark, account.log_start_offset = self.end_offset, self._log_start()
        if account.next_offset < 0:
            account.next_offset = account.first_offset = account.log_start_offset
        else:
            self._refuse_other_log()
        self.prepared = True

    def _take_up(self) -> None:
        account, writer = self.account, self._writer
        try:
            for frame in writer.take_up(account.recovery_point):
                self._account_for(frame)
        except NotABatchError as error:
            raise CaptureError(
                f"a segment holds at byte {error.position} what is not a batch ({error}): it is not as kaudit left it"
            ) from None
        if writer.next_offset is not None:
            account.next_offset = writer.next_offset
        else:
            account.next_offset = account.first_offset = -1
        account.bytes = writer.written

    def _account_for(self, frame: Frame) -> None:
        """Note a batch's epoch, and the offsets missing before it."""
        account = self.account
        if frame.base_offset > account.next_offset:
            self._gap(account.next_offset, frame.base_offset - 1)
        # compaction may have removed the first batches of the first epoch
        self.epochs.add(frame.leader_epoch, frame.base_offset if self.epochs.latest >= 0 else account.first_offset)
        account.leader_epoch = max(account.leader_epoch, frame.leader_epoch)
        account.next_offset = max(account.next_offset, frame.last_offset + 1)

    def _log_start(self) -> int:
        return self._client.list_offset(self._partition, EARLIEST, node=self._node)

    def _refuse_other_log(self) -> None:
        """Raise CaptureError where the log ends before what was captured: an unclean election has truncated it."""
        account = self.account
        if self._node is None and account.leader_epoch >= 0:
            with suppress(UnsupportedRequestError, AccessDeniedError):
                epoch, end = self._client.epoch_end_offset(self._partition, account.leader_epoch)
                if epoch >= 0 and end < account.next_offset:
                    raise self._truncated(end)
        if self.end_offset < account.next_offset:
            self.step()  # a high watermark may lag for a while, a log end may not

    def _truncated(self, end: int) -> CaptureError:
        return CaptureError(
            f"the broker's log was truncated to {end}, and this capture holds offsets up to {self.account.next_offset - 1} "
            "(an unclean leader election): capture it into another directory, and compare both with kaudit diff"
        )

    @property
    def at_end(self) -> bool:
        """Whether everything is captured that was there when the run began."""
        return self.account.next_offset >= self.end_offset

    def step(self, max_wait_ms: int = 0) -> int:
        """Fetch once and write the batches; return their bytes, 0 where there are no more for now.

        Raises CaptureError, OSError.
        """
        account = self.account
        try:
            fetched = self._client.fetch(self._partition, account.next_offset, max_wait_ms=max_wait_ms, node=self._node)
        except OffsetOutOfRangeError:
            self._overtaken()
            return 0
        self._note(fetched)
        data = fetched.records
        damage: NotABatchError | None = None
        batches: list[Frame] = []
        try:
            batches.extend(frame for frame in frames(data) if frame.last_offset >= account.next_offset)
        except NotABatchError as error:
            damage = error  # what came before it is whole
        if batches:
            self._append(data, batches)
        if damage is not None or (data and not batches):
            reason = "no whole batch" if damage is None else f"what is not a batch ({damage})"
            raise CaptureError(
                f"the broker sends {reason} after offset {account.next_offset - 1}: its log is damaged there, and no "
                "consumer reads on"
            )
        return batches[-1].end - batches[0].start if batches else 0

    def _note(self, fetched: Fetched) -> None:
        account = self.account
        account.high_watermark, account.last_stable_offset = fetched.high_watermark, fetched.last_stable_offset
        if fetched.log_start_offset >= 0:
            account.log_start_offset = fetched.log_start_offset
        if fetched.node not in account.brokers:
            account.brokers.append(fetched.node)

    def _append(self, data: bytes, batches: Sequence[Frame]) -> None:
        account, writer = self.account, self._writer
        self.whole = False
        if writer.base_offset is None:
            writer.next_offset = account.next_offset
        writer.grow()
        writer.append(data, batches)
        for frame in batches:
            self._account_for(frame)
        account.bytes = writer.written

    def _gap(self, first: int, last: int) -> None:
        if self._compacted:
            self.account.compacted_offsets += last - first + 1
            self.account.compacted_to = last + 1
        else:
            self.account.miss(first, last, NOT_IN_LOG)

    def _overtaken(self) -> None:
        """Go on at the log start, which has passed what was to be fetched next."""
        account, start = self.account, self._log_start()
        if start <= account.next_offset:
            raise self._truncated(self._client.list_offset(self._partition, LATEST))
        account.miss(account.next_offset, start - 1, RETENTION)
        self._writer.skip_to(start)
        account.next_offset = start

    def publish(self, *, grows_on: bool) -> None:
        """Put what grows in its place. Without `grows_on` that was all for this run."""
        account, writer = self.account, self._writer
        if writer.base_offset is None:
            writer.begin_empty(account.next_offset)
        writer.publish(grows_on=grows_on)
        self.whole = not grows_on

    def checkpoint(self) -> None:
        """Note how far segments are in their places, and write the epochs as far."""
        account, writer = self.account, self._writer
        if self.prepared:
            last = writer.base_offset
            account.recovery_point = account.next_offset if self.whole or last is None else last
            account.first_segment = writer.first_offset
            self.epochs.write(account.recovery_point)

    def ask_epochs(self) -> None:
        """Take the leader's epochs, those without batches too. A follower is not asked: it has those of its batches."""
        current = max(self._current_epoch, self.account.leader_epoch)
        if self._node is None and current >= 0:
            with suppress(UnsupportedRequestError, AccessDeniedError):  # those of the batches are known
                self.epochs.merge(epochs_of_leader(self._client, self._partition, current, self.account.first_offset))

    def close(self) -> None:
        """Let go of the files."""
        self._writer.close()
