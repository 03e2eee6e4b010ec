"""What the account of `kaudit capture` says of the cluster that a copied log directory comes from."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

CAPTURE_ACCOUNT = "capture.json"
"""The account's file name, beside the partitions."""


class _Origin(Struct):
    features: Mapping[str, int] = field(default_factory=dict)


class _Account(Struct):
    origin: _Origin = field(default_factory=_Origin)


def captured_features(data: bytes) -> Mapping[str, int]:
    """Return the levels of the cluster's finalized features (KIP-584) by name; none where the file does not give them."""
    try:
        return msgspec.json.decode(data, type=_Account).origin.features
    except msgspec.MsgspecError:
        return {}
