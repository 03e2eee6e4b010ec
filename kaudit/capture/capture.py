"""A capture: the batches of some partitions of a live cluster, written into one log directory."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from kaudit.capture.account import MOST_RUNS, Account, Origin, PartitionAccount, Run, parse_account
from kaudit.capture.directory import ACCOUNT, CaptureDirectory, OccupiedError
from kaudit.capture.partition import CaptureError, PartitionCapture
from kaudit.formats.sidefiles.checkpoint_text import meta_properties, offset_checkpoint, partition_metadata
from kaudit.formats.sidefiles.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
)
from kaudit.model.rfc3339 import rfc3339
from kaudit.source.kafka.answers import TopicMetadata
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import BrokerError, RetriableError, UnknownTopicError

_SAVE_SECONDS: Final = 5.0
"""Between two accounts while the capture runs, as a broker writes its checkpoints."""
_IDLE_SECONDS: Final = 0.2
"""Between two rounds of --follow that found nothing."""
_REPLICA_SECONDS: Final = 10.0
"""How long a follower may take to have what its leader had when the capture began."""
_KEPT_CONFIGS: Final = (
    *("cleanup.policy", "compression.type", "message.timestamp.type", "min.insync.replicas"),
    *("retention.bytes", "retention.ms", "segment.bytes", "segment.ms"),
)
RECOVERY_POINT, LOG_START, CLEANER = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
