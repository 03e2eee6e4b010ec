"""The value of ZooKeeper's `/cluster/id`: which Kafka cluster uses the ensemble (ClusterIdZNode, 0.10.1 and later).

{"version":"1","id":"kLc5ZrOkSuWQ3Jc6ek4IvA"}
"""

import json

CLUSTER_ID_ZNODE = "/cluster/id"


def parse_cluster_id(data: bytes | None) -> str | None:
    """Return the cluster's id, None where the value has none. Never raises: it only helps to match files."""
    try:
        fields = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) and found else None
