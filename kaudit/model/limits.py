"""Limits of what is held in memory at once, whoever wrote it.

What exceeds a limit is a finding, an entry of what was not audited, or one line. docs/guide.md lists the limits.
"""

from typing import Final

BATCH_BYTES: Final = 256 << 20
"""A batch that is read whole, to decode its records; others are read through a window, however long they are."""
UNPACKED_BYTES: Final = 128 << 20
"""What the records of one batch unpack to: far above max.message.bytes of any sane topic."""
COMPRESSED_FRAMES: Final = 1024
"""Frames, or members, that one batch's records are compressed in."""
SIDE_FILE_BYTES: Final = 256 << 20
"""An index, snapshot or checkpoint that is compared with the log: five million producers."""
MANIFEST_BYTES: Final = 16 << 20
"""The manifest of a segment in remote storage: the sizes of two million chunks."""
INSPECTED_FILE_BYTES: Final = 1 << 30
"""A file other than a segment that `inspect` decodes."""
DIRECTORY_ENTRIES: Final = 1_000_000
"""Names in one directory."""
DIRECTORY_DEPTH: Final = 16
"""Directories inside one another."""
ARCHIVE_MEMBERS: Final = 1_000_000
"""Files and directories in one archive."""
ARCHIVE_HEADER_BYTES: Final = 16 << 20
"""The headers of one file in a tar: its name may be as long as it likes."""
ARCHIVE_DIRECTORY_BYTES: Final = 64 << 20
"""The directory at the end of a zip."""
ARCHIVE_HELD_BYTES: Final = 512 << 20
"""What is held, compressed again, of all files in bzip2, xz, zstd and lz4: more is decoded again."""
ARCHIVE_EXPANDED_BYTES: Final = 64 << 30
"""What an archive or compressed file may expand to, if that is more than a thousand times its size."""
DUMP_LINE_BYTES: Final = 64 << 20
"""A line of a text of kafka-dump-log."""
SERVER_LOG_LINE_BYTES: Final = 1 << 20
"""A line of a server's or client's log."""
ATTEMPT_LINE_BYTES: Final = 64 << 20
"""A line of attempts: a request of 32 MiB in hexadecimal."""
STANDARD_INPUT_BYTES: Final = 2 << 30
"""The largest that a segment can be (log.segment.bytes is an int32): more is refused from a pipe, which has to be copied."""
UNNAMED_FILES: Final = 1_000
"""Files of one directory tree that no broker names so, and whose first bytes are read: someone may give a whole disk."""
DOCUMENT_BYTES: Final = 512 << 20
"""A saved report or a baseline."""
ANSWER_BYTES: Final = 64 << 20
"""An answer of a Kafka server: room for a fetch, a batch of 32 MiB, and the metadata of a few thousand topics."""
OBSERVATIONS: Final = 100_000
"""Batches and markers of one partition that break a rule of sequences, epochs or transactions."""
DAMAGES: Final = 10_000
"""Gaps and damaged ranges of one partition."""
SNAPSHOTS: Final = 1000
"""Producer snapshots of one partition that are compared with the log, the newest: the log is read up to each."""
SARIF_RESULTS: Final = 25_000
"""Findings of one SARIF log: GitHub refuses a run with more."""
FINDINGS_OF_CHECK: Final = 1000
"""Findings of one check and severity that json, jsonl and sarif list of a topic partition, the first; on Spark, of all of them.

Tables have every one.
"""
TIMELINES: Final = 10_000
"""Timelines that `timeline` on Spark lists where no producer ids are asked for, the first of all; tables have every one."""
PRODUCERS: Final = 10_000
"""Producer ids that `producers` on Spark lists where neither ids nor a number are asked for, the first of all; tables have every one.

Of transactional ids that expired, with either engine, the last.
"""
PRODUCER_REPLICAS: Final = 100_000
"""Partition replicas of the ids listed then: the ids that would take more are counted with the rest."""
METADATA_GRANTS: Final = 100_000
"""Blocks of producer ids of one replica of __cluster_metadata, the newest: those of 100,000,000 ids."""
METADATA_PROBLEMS: Final = 1000
"""Damaged places of one replica of __cluster_metadata that are listed one by one."""
CHUNK_ROWS: Final = 1 << 21
"""Rows of one kind that a stored chunk may have: no chunk has as many batches."""
PACKED_CHUNK_BYTES: Final = 1 << 30
"""What a stored chunk unpacks to."""
STATE_INDEX_BYTES: Final = 256 << 20
"""What the index of a partition's saved ranges unpacks to: a million segments."""
