"""Special values of the fields of a record batch: sentinels, bits of the attributes, control types."""

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

ABORT_MARKER = 0
COMMIT_MARKER = 1
NO_CONTROL_TYPE = -1
UNDECODED_CONTROL = -2
"""A control batch whose record could not be decoded."""
UNREPORTED_CONTROL = -3
"""A control batch that is known only from a text, which does not say what its record is."""
