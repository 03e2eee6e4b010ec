"""Batches as rows of the table `batches`: columns as they were read, no Python object a row."""

from typing import Any

import numpy as np

from kaudit.analysis.scan.segment_batches import SegmentTask
from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from kaudit.report.parquet import columns_to_ipc

_CODECS = np.array(["none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7"])


def tell_batches(task: SegmentTask, batches: Batches) -> tuple[str, bytes]:
    """Pack some of a segment's batches; fields of batches without a producer are null."""
    attributes, count = batches["attributes"], len(batches)
    nobody = batches["producer_id"] <= NO_PRODUCER_ID
    unsequenced = nobody | (batches["base_sequence"] < 0)
    columns: dict[str, Any] = {
        "topic": np.full(count, task.topic),
        "partition": np.full(count, task.partition),
        "replica": np.full(count, task.replica),
        "segment": np.full(count, task.spec.file.name),
        "position": batches["position"],
        "bytes": batches["size"],
        "base_offset": batches["base_offset"],
        "last_offset": last_offsets(batches),
        "magic": batches["magic"],
        "leader_epoch": batches["leader_epoch"],
        "crc": batches["crc"].astype(np.int64),
        "codec": _CODECS[attributes & CODEC_MASK],
        "is_transactional": attributes & TRANSACTIONAL_FLAG != 0,
        "is_control": attributes & CONTROL_FLAG != 0,
        "is_log_append_time": attributes & LOG_APPEND_TIME_FLAG != 0,
        "max_timestamp": np.ma.array(batches["max_timestamp"], mask=batches["max_timestamp"] < 0),
        "producer_id": np.ma.array(batches["producer_id"], mask=nobody),
        "producer_epoch": np.ma.array(batches["producer_epoch"], mask=nobody),
        "first_sequence": np.ma.array(batches["base_sequence"], mask=unsequenced),
        "last_sequence": np.ma.array(last_sequences(batches), mask=unsequenced),
        "records": np.ma.array(batches["record_count"], mask=batches["record_count"] < 0),
    }
    return "batches", columns_to_ipc("batches", columns)
