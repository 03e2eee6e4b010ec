"""What a broker of a given release does: one switch per change of behaviour.

The table of changes is in releases.py; a profile is that table read up to one release.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.changes import CHANGES, RELEASES, SEVEN_DAYS_MS
from kaudit.broker.releases.version import Version

NEAREST = 3


class UnknownVersionError(ValueError):
    """No profile has this version; `nearest` are the known releases closest to it."""

    def __init__(self, version: str, nearest: tuple[Version, ...]) -> None:
        self.version = version
        self.nearest = nearest
        super().__init__(f"unknown broker version {version!r}; nearest known: {', '.join(map(str, nearest))}")


class Profile(Struct, frozen=True):
    """The switches of one release. The values here are those of 0.11.0.0; releases.py lists what changed since."""

    version: Version
    """The release this profile was read for."""

    # -- what is remembered of a producer ----------------------------------------------------------------------------
    window: int = 1
    """Batches remembered per producer id, hence duplicates recognised: 1, then 5 (KAFKA-5494, 1.0.0)."""
    marker_replaces_last_batch: bool = True
    """A marker of the same epoch overwrites the remembered batch with its own offset (0.11 only)."""
    offset_delta_from_sequences: bool = True
    """A cached batch's length is lastSeq - firstSeq without wrapping, so a duplicate of a batch that wraps is answered
    with an offset 2^31 too high (fixed by KAFKA-7692: 2.1.1, 2.2.0)."""
    marker_sets_timestamp: bool = True
    """A marker's timestamp renews the producer's expiry: not from 1.0.0 to 2.4.0 (KAFKA-9144: 2.4.1)."""
    marker_only_snapshot_loads_a_batch: bool = False
    """A producer known by a marker alone comes back from a snapshot with a batch of sequence -1 (1.0.0 to 2.4.0)."""

    # -- sequences and epochs of client appends ----------------------------------------------------------------------
    accepts_unknown_nonzero: bool = False
    """A producer id without state may start at any sequence (KIP-360: 2.5.0)."""
    unknown_producer_error: KafkaError = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    """Answer to sequence > 0 of a producer id without state where it is refused: 45, from 1.0.0 on 59 (KAFKA-5793)."""
    marker_only_nonzero_error: KafkaError = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    """Answer to sequence > 0 in the current epoch when no batch of it is remembered: 45; 59 from 2.0.1, 2.1.0 to 2.4.x
    (KAFKA-7298)."""
    old_duplicate_error: KafkaError = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    """Answer to a batch that ended before the window: 45; 46 in 1.0.0 and 1.0.1."""
    replicas_validate_like_leaders: bool = True
    """Followers check sequences as a leader does (0.11.0.0 and 0.11.0.1; KAFKA-6003)."""
    tv2_starts_at_zero: bool = False
    """Under transaction version 2 a producer without remembered batches must start at 0 (KAFKA-18202: 4.1.0)."""
    client_epoch_bump: bool = False
    """Idempotent Java clients of this release raise their epoch by themselves and start again at 0 (KIP-360: 2.5.0);
    earlier ones take a new producer id."""

    # -- markers -----------------------------------------------------------------------------------------------------
    marker_checks_bind_replicas: bool = True
    """A marker of a lower epoch or coordinator epoch throws on followers and while loading a log (until 2.4.0;
    KAFKA-9144), which then fails."""
    tv2_marker_must_exceed_epoch: bool = False
    """A marker of transaction version 2 needs an epoch above the current one, except when it repeats a marker of no
    open transaction (KAFKA-19446, KAFKA-19999: 4.2.0)."""
    tv2_marker_may_repeat_last_epoch: bool = False
    """Except at epoch 32767, which a transaction should not have but may: there the marker may be the same (4.3.0)."""
    empty_marker_completes_transaction: bool = True
    """A marker without an open transaction counts as a transaction of its own: an aborted one enters the index (until
    2.7; KAFKA-10702)."""
    empty_control_batch_is_fatal: bool = True
    """A control batch whose record was cleaned away fails the load (until 2.0.0; KAFKA-7467)."""
    index_lso_excludes_own_transaction: bool = False
    """The last stable offset written to the transaction index looks at other transactions only (KAFKA-7866)."""

    # -- forgetting --------------------------------------------------------------------------------------------------
    forgets_on_log_start_advance: bool = True
    """Producers whose last data lies below a new log start are dropped at once (until 2.3; KAFKA-7190: 2.4.0)."""
    expiration_config: str = "transactional.id.expiration.ms"
    """The broker configuration that limits how long an idle producer id is remembered (KIP-854: 3.4.0)."""
    expiration_default_ms: int = SEVEN_DAYS_MS
    """Its default: 7 days, 1 day from 3.4.0 on."""

    # -- transactions ------------------------------------------------------------------------------------------------
    timeout_bumps_epoch: bool = False
    """The coordinator raises the epoch when it aborts a transaction that timed out (KAFKA-6119: 0.11.0.2, 1.0.0)."""
    coordinator_epoch_bump: bool = False
    """InitProducerId takes the caller's producer id and epoch and raises the epoch (KIP-360: 2.5.0)."""
    coordinator_fenced_error: KafkaError = KafkaError.INVALID_PRODUCER_EPOCH
    """What the coordinator answers a fenced producer: 47, from 2.7.0 on 90 (KIP-588)."""
    end_txn_needs_exact_epoch: bool = False
    """EndTxn with an epoch above the coordinator's is refused before anything is written (2.6.0). Until then it was
    refused after the decision had been logged: the transaction then never ends, all else about it answers 51."""
    fence_keeps_last_epoch: bool = False
    """After an open transaction was aborted by InitProducerId, its producer's old epoch still counts as the previous
    one, so a retry with it succeeds (2.5.x, and again from 4.0.1 and 4.1.0 on; KAFKA-19367)."""
    pending_transition_comes_first: bool = False
    """AddPartitionsToTxn answers 51 while markers are under way, whoever asks; before, the owner and epoch were looked
    at first (KIP-890 part 2: 4.0.0)."""
    fence_bumps_twice: bool = False
    """An abort by the coordinator raises the epoch by two (4.0.0 only; KAFKA-19367)."""
    kraft: bool = False
    """Clusters of this release are taken to run without ZooKeeper (KIP-833: 3.3.0). There a clean restart of the only
    replica raises leader epochs, hence coordinator epochs, by two."""
    unclean_restart_raises_leader_epochs: bool = False
    """So does an unclean restart (recorded from 4.0.0 on; eligible leader replicas, KIP-966)."""
    failed_fence_burns_epochs: bool = True
    """A fence that could not be written still used up an epoch (until 2.6; KAFKA-9666)."""
    empty_read_tells_of_aborted: bool = True
    """A read of committed records that finds none, since an open transaction is first, still lists aborted ones (until
    2.5.0; KAFKA-9838)."""
    stable_offset_is_a_batchs: bool = False
    """While the log start lies in a batch and an open transaction below it, the last stable offset is that batch's."""
    verifies_transactions: bool = False
    """The first batch of a transaction is checked with the coordinator (KIP-890 part 1: 3.6.0)."""
    verification_remembers_lowest_sequence: bool = False
    """A verification under way remembers the lowest sequence seen and refuses higher ones (KAFKA-14920: 3.6.0)."""
    verifies_coordinator_appends: bool = False
    """Offset commits within a transaction are verified too (3.7.0)."""
    abortable_error: bool = False
    """Failures to verify are answered with 120 where the request's version knows it (KIP-890: 3.8.0)."""
    transaction_version2: bool = False
    """Every transaction gets an epoch of its own: markers carry the data's epoch + 1 (KIP-890 part 2: 4.0.0)."""
    verification_is_per_epoch: bool = False
    """An open transaction of another epoch does not spare a batch its verification (4.0.0)."""
    verification_survives_tv2_marker: bool = False
    """A marker of transaction version 2 keeps the verification of the transaction that follows it (KAFKA-18654)."""
    stale_epoch_before_verification: bool = False
    """A lower epoch is refused before the verification is looked at (KAFKA-19690: 4.0.1, 4.1.1, 4.2.0)."""

    # -- requests ----------------------------------------------------------------------------------------------------
    invalid_record_error: KafkaError = KafkaError.CORRUPT_MESSAGE
    """Answer to a batch that fails validation: 2, from 2.4 on 87."""
    bad_record_set_closes_connection: bool = True
    """A record set that is not exactly one batch of magic 2 closes the connection; answered from 2.2.0 on."""
    unreadable_records_close_connection: bool = True
    """So does a record set whose first batch cannot be found, until 2.7."""
    needs_transactional_id: bool = False
    """Transactional batches in a request without a transactional id are refused with 53 (2.1.0)."""
    knows_zstd: bool = False
    """Codec 4 is a codec (KIP-110: 2.1.0); before, as for all unknown ones, the answer is -1."""
    delete_policy_comes_first: bool = False
    """DeleteRecords on a topic whose cleanup.policy does not include delete is refused with 44 before anything else;
    until 1.0 the log start had moved by then."""
    validates_offset_range: bool = False
    """lastOffsetDelta + 1 must equal the record count; before 1.1.0 such a batch was written below its offsets."""
    timestamp_after_max_ms: int | None = None
    """How far ahead of the broker's clock a record's timestamp may be, in ms (KIP-1030: one hour from 4.0.0 on)."""
    takes_append_time_from_clients: bool = False
    """A batch that says its timestamp is the broker's own is taken where the topic keeps its clients' times (KIP-937)."""
    fences_stale_leader_append: bool = False
    """A log whose writes failed refuses further appends until it is reloaded (KAFKA-10778: 2.8.0)."""

    # -- files -------------------------------------------------------------------------------------------------------
    snapshot_may_run_ahead: bool = True
    """A producer snapshot may hold state from beyond its own offset (KAFKA-6683: fixed in 1.0.2, 1.1.0)."""
    snapshots_are_synced: bool = False
    """Producer snapshots are flushed to disk when written (KAFKA-9892: 2.8.0)."""
    writes_delete_horizon: bool = False
    """The cleaner stamps markers and tombstones with the time they may be deleted (KAFKA-8522: 3.1.0)."""
    cleaner_keeps_last_batch_by_offset: bool = False
    """The cleaner finds a producer's last batch by offset, not by sequence (KAFKA-8335: 2.2.1, 2.3.0)."""
    migration_repeats_a_block: bool = True
    """A migration from ZooKeeper hands out the current block of producer ids twice (KAFKA-15552: 3.5.2, 3.6.1)."""
    describes_producers: bool = False
    """DescribeProducers shows the state of a partition's producers (KIP-664: 2.8.0)."""

    def has_rules_of(self, other: "Profile") -> bool:
        """Tell whether all switches are set as in `other`."""
        return astuple(self)[1:] == astuple(other)[1:]  # but for the version

    def differences(self, other: "Profile") -> tuple[str, ...]:
        """Names of the switches in which `other` is set differently, in the order of this class."""
        return tuple(
            name for name in self.__struct_fields__ if name != "version" and getattr(self, name) != getattr(other, name)
        )


class VersionRange(Struct, frozen=True):
    """The releases a log may have been written by: at_least <= version <= at_most, both known releases."""

    at_least: Version
    at_most: Version

    def profiles(self) -> tuple[Profile, ...]:
        """Return the distinct sets of rules inside the range, oldest first, each by its first release."""
        return _distinct_profiles(self.at_least, self.at_most)

    def any(self, predicate: Callable[[Profile], bool]) -> bool:
        """Tell whether some release in the range fulfils `predicate`."""
        return any(predicate(profile) for profile in self.profiles())

    def all(self, predicate: Callable[[Profile], bool]) -> bool:
        """Tell whether every release in the range fulfils `predicate`."""
        return all(predicate(profile) for profile in self.profiles())

    @property
    def is_exact(self) -> bool:
        """Whether one set of rules is left."""
        return len(self.profiles()) == 1


def all_releases() -> tuple[Version, ...]:
    """Return every release that has a profile, oldest first."""
    return RELEASES


def profile_for(version: str | Version) -> Profile:
    """Return the rules of a release.

    `4.2` means the newest release of that line; a line or patch newer than the newest one known, of the same major
    version, has the newest rules. Raises UnknownVersionError for every other version, suggesting known ones.
    """
    try:
        parsed = version if isinstance(version, Version) else Version.parse(version)
    except ValueError:
        import difflib  # noqa: PLC0415 - only a typo pays for it

        names = difflib.get_close_matches(str(version), [str(known) for known in RELEASES], NEAREST, cutoff=0.0)
        raise UnknownVersionError(str(version), tuple(sorted(map(Version.parse, names)))) from None
    return replace(_profile(_known(parsed)), version=parsed)


def _known(version: Version) -> Version:
    if version in RELEASES:
        return version
    newest = RELEASES[-1]
    if version.names_a_line:
        in_line = [known for known in RELEASES if known.line == version.line]
        if in_line:
            return in_line[-1]
    if version > newest and version.numbers[0] == newest.numbers[0]:
        return newest
    raise UnknownVersionError(str(version), _nearest(version))


def _nearest(version: Version) -> tuple[Version, ...]:
    below = [known for known in RELEASES if known < version][-NEAREST + 1 :]
    above = [known for known in RELEASES if known > version][: NEAREST - len(below)]
    return tuple(below + above)


@cache
def _switches() -> Mapping[Version, dict[str, Any]]:
    """Return, by release, what was changed up to it."""
    changed: dict[Version, dict[str, Any]] = {version: {} for version in RELEASES}
    for change in CHANGES:
        having: Sequence[Version] = RELEASES[bisect_left(RELEASES, min(change.since)) :]
        if len(change.since) > 1:
            having = [version for version in having if version.includes_fix(*change.since)]
        for version in having:
            changed[version][change.switch] = change.value
    return changed


@cache
def _profile(version: Version) -> Profile:
    return Profile(version, **_switches()[version])


@cache
def _distinct_profiles(at_least: Version, at_most: Version) -> tuple[Profile, ...]:
    found: list[Profile] = []
    for version in RELEASES:
        if at_least <= version <= at_most:
            candidate = _profile(version)
            if not found or not found[-1].has_rules_of(candidate):
                found.append(candidate)
    return tuple(found) or (profile_for(at_most),)


def profile_groups() -> tuple[tuple[Profile, tuple[Version, ...]], ...]:
    """Return neighbouring releases with equal rules as (rules, releases), oldest first."""
    groups: list[tuple[Profile, list[Version]]] = []
    for version in RELEASES:
        candidate = _profile(version)
        if groups and groups[-1][0].has_rules_of(candidate):
            groups[-1][1].append(version)
        else:
            groups.append((candidate, [version]))
    return tuple((profile, tuple(versions)) for profile, versions in groups)
