"""The range of releases that can have written a log, with the reason for each bound."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from kaudit.broker.releases.profile import VersionRange, all_releases
from kaudit.broker.releases.switches import switches
from kaudit.broker.releases.version import Version


class VersionEvidence(Struct, frozen=True):
    """Traces of releases in and beside the logs. Absence proves nothing."""

    has_delete_horizon: bool = False
    has_tv2_commit: bool = False
    has_flexible_transaction_value: bool = False
    has_magic_2: bool = False
    meta_properties_versions: Sequence[str] = ()
    has_directory_id: bool = False
    has_bootstrap_checkpoint: bool = False
    has_topic_id: bool = False
    metadata_version: int = 0
    transaction_version: int = 0


# the last level of metadata.version each release has (MetadataVersion): a higher one is of a later release
_METADATA_VERSIONS = (
    (7, "3.3.0"),
    (8, "3.4.0"),
    (11, "3.5.0"),
    (14, "3.6.0"),
    (19, "3.7.0"),
    (20, "3.8.0"),
    (21, "3.9.0"),
    (25, "4.0.0"),
    (27, "4.1.0"),
    (29, "4.2.0"),
)
_LAST_ZOOKEEPER = "3.9"


class _Bound(NamedTuple):
    """A release that something seen sets: `reason` is what was seen."""

    release: Version
    reason: str
    anyone: bool = False
    """Whether clients can write the same, by mistake or by hand: then the brokers' own files count for more."""


@cache
def _lower_bounds() -> tuple[tuple[str, _Bound], ...]:
    """Return, by field of VersionEvidence, the first release that can have left it."""
    return (
        ("has_magic_2", _bound("0.11.0.0", "batches of magic 2")),
        ("has_topic_id", _bound("2.8.0", "partition.metadata with a topic id")),
        (
            "has_delete_horizon",
            _bound(_first_with("writes_delete_horizon"), "a batch with a delete horizon (KAFKA-8522)", anyone=True),
        ),
        ("has_bootstrap_checkpoint", _bound("3.3.0", "bootstrap.checkpoint beside the logs (KRaft)")),
        ("has_directory_id", _bound("3.7.0", "directory.id in meta.properties (KIP-858)")),
        (
            "has_flexible_transaction_value",
            _bound("4.0.0", "a __transaction_state value of version 1 (transaction.version >= 1)"),
        ),
        (
            "has_tv2_commit",
            _bound(
                _first_with("transaction_version2"),
                "a commit marker with the data's epoch + 1 (transaction version 2)",
                anyone=True,
            ),
        ),
    )


def _bound(release: str, reason: str, *, anyone: bool = False) -> _Bound:
    return _Bound(Version.parse(release), reason, anyone)


def _first_with(switch: str) -> str:
    return str(min(switches()[switch].changes[0].since))


def infer_range(evidence: VersionEvidence) -> tuple[VersionRange, tuple[str, ...]]:
    """Return the releases the evidence leaves, and a sentence for each bound it sets or that was not counted.

    What brokers wrote about themselves outweighs what clients may have written. Where brokers contradict each other, as
    in a migrated or mixed cluster, no upper bound is left.
    """
    releases = all_releases()
    at_least, at_most = releases[0], releases[-1]
    lower = [bound for name, bound in _lower_bounds() if getattr(evidence, name)]
    lower += _features(evidence)
    upper = None
    if "1" in evidence.meta_properties_versions:
        lower.append(_bound("2.8.0", "meta.properties version 1 (KRaft)"))
    elif "0" in evidence.meta_properties_versions:
        line = Version.parse(_LAST_ZOOKEEPER).numbers
        newest = max(release for release in releases if release.numbers[: len(line)] <= line)
        upper = _Bound(newest, "meta.properties version 0 (ZooKeeper)")
    against = upper or _without_transaction_version_2(evidence)
    because: list[str] = []
    for bound in lower:
        if bound.anyone and against is not None and bound.release > against.release:
            because.append(
                f"not counted: {bound.reason} would mean >= {bound.release}, but clients can write one; "
                f"{against.reason} means <= {against.release}"
            )
            continue
        at_least = max(at_least, min(bound.release, releases[-1]))
        because.append(f">= {bound.release}: {bound.reason}")
    if upper is not None:
        at_most = upper.release
        because.append(f"<= {upper.release}: {upper.reason}")
    if at_most < at_least:
        at_most = releases[-1]
        because.append("the upper bound was dropped: it contradicts the lower ones (a migrated or mixed cluster)")
    return VersionRange(at_least, at_most), tuple(because)


def _without_transaction_version_2(evidence: VersionEvidence) -> _Bound | None:
    """Return the releases without transaction version 2 where a metadata log says that the cluster runs without it."""
    if not evidence.metadata_version or evidence.transaction_version:
        return None
    newest = max(release for release in all_releases() if release < Version.parse(_first_with("transaction_version2")))
    return _Bound(newest, "a __cluster_metadata without transaction.version")


def _features(evidence: VersionEvidence) -> list[_Bound]:
    """Return the releases that first had the feature levels of the metadata log."""
    found: list[_Bound] = []
    level = evidence.metadata_version
    if level:
        newest = _METADATA_VERSIONS[-1][1]
        since = next((release for last, release in _METADATA_VERSIONS if level <= last), newest)
        found.append(_bound(since, f"metadata.version {level} in __cluster_metadata"))
    if evidence.transaction_version:
        found.append(_bound("4.0.0", f"transaction.version {evidence.transaction_version} in __cluster_metadata"))
    return found
