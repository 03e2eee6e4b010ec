"""The topics that Kafka keeps for itself (org.apache.kafka.common.internals.Topic)."""

from typing import Final

GROUPS: Final = "__consumer_offsets"
SHARE_STATE: Final = "__share_group_state"
REMOTE_LOG: Final = "__remote_log_metadata"
CLUSTER: Final = "__cluster_metadata"
TRANSACTIONS: Final = "__transaction_state"
