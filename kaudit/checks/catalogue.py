"""Checks that have not moved into a module of their own yet."""

from collections.abc import Mapping

from kaudit.checks.check import Check
from kaudit.model.finding import Confidence, Severity
from kaudit.model.observation import ObservationKind

# code, name, gravest severity, when it is less, one line, since
_ROWS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        "KA101",
        "duplicate-batch",
        "error",
        "warning when the CRC differs",
        "a batch within the duplicate window is in the log twice",
        "0.1.0",
    ),
    ("KA102", "old-duplicate", "error", "", "a batch from behind the duplicate window is in the log again", "0.1.0"),
    ("KA103", "overlapping-batch", "error", "", "a batch repeats part of the sequences before it", "0.1.0"),
    (
        "KA104",
        "sequence-gap",
        "error",
        "warning when the leader epoch changes at the joint",
        "sequences are missing between two batches of a producer",
        "0.1.0",
    ),
    (
        "KA105",
        "sequence-restart",
        "warning",
        "note if the broker may be older than 2.4",
        "a producer starts again at sequence 0 in the same epoch",
        "0.1.0",
    ),
    (
        "KA106",
        "unknown-start",
        "warning",
        "note when the broker may be 2.5 or later",
        "a producer's first sequence is not 0 and nothing explains it",
        "0.1.0",
    ),
    (
        "KA107",
        "sequence-step-mismatch",
        "error",
        "",
        "a client does not advance its sequence by the number of records",
        "0.1.0",
    ),
    ("KA201", "stale-epoch", "error", "", "a batch or marker of a fenced, older epoch was appended", "0.1.0"),
    ("KA202", "epoch-bump-nonzero", "error", "", "a new epoch starts at a sequence other than 0", "0.1.0"),
    ("KA203", "fencing", "note", "", "a producer's epoch was raised", "0.1.0"),
    (
        "KA204",
        "epoch-nearly-exhausted",
        "warning",
        "note for a transactional producer",
        "a producer's epoch is 32000 or more of 32767",
        "0.1.0",
    ),
    (
        "KA205",
        "coordinator-epoch-regression",
        "warning",
        "",
        "a marker carries a lower coordinator epoch than one before it",
        "0.1.0",
    ),
    (
        "KA301",
        "hanging-transaction",
        "error",
        "",
        "a transaction is open in the log and no coordinator will end it",
        "0.1.0",
    ),
    (
        "KA302",
        "open-transaction",
        "warning",
        "note when the coordinator says Ongoing within its timeout",
        "a transaction is open at the end of the log",
        "0.1.0",
    ),
    (
        "KA303",
        "nontransactional-in-transaction",
        "error",
        "",
        "a producer wrote outside its open transaction; brokers crash loading this",
        "0.1.0",
    ),
    (
        "KA304",
        "late-transactional-write",
        "error",
        "warning without the coordinator's log",
        "transactional data arrived after its transaction had ended",
        "0.1.0",
    ),
    (
        "KA306",
        "coordinator-disagrees",
        "error",
        "",
        "a partition's marker is not what __transaction_state decided",
        "0.1.0",
    ),
    (
        "KA307",
        "illegal-state-transition",
        "warning",
        "",
        "two states of a transactional id that cannot follow one another",
        "0.1.0",
    ),
    (
        "KA308",
        "torn-transaction",
        "error",
        "",
        "partitions of one transaction ended differently",
        "0.1.0",
    ),
    (
        "KA401",
        "unallocated-producer-id",
        "error",
        "warning when the block history is incomplete or older than the id",
        "a producer id that no block of the cluster's history holds",
        "0.1.0",
    ),
    ("KA402", "block-overlap", "error", "", "producer ids that were granted twice", "0.1.0"),
    ("KA403", "block-malformed", "warning", "", "a block of producer ids that no broker writes", "0.1.0"),
    ("KA404", "producer-id-shared", "error", "", "two writers woven into one under one producer id", "0.1.0"),
    ("KA405", "producer-id-flood", "note", "", "producer ids by the hundreds an hour, a few batches each", "0.1.0"),
    ("KA406", "block-range-near-end", "warning", "", "the range of producer ids is nearly used up", "0.1.0"),
    (
        "KA801",
        "state-expired",
        "warning",
        "note when nothing in the log shows an effect",
        "timestamps make the broker forget a producer",
        "0.1.0",
    ),
    (
        "KA802",
        "state-evicted",
        "warning",
        "note when nothing in the log shows an effect",
        "a producer is forgotten because its data was deleted (brokers before 2.4)",
        "0.1.0",
    ),
    (
        "KA803",
        "recovery-fatal",
        "error",
        "note when only some of the versions in question fail",
        "a broker that reads this log to rebuild its state fails",
        "0.1.0",
    ),
)

_OBSERVES: Mapping[str, tuple[ObservationKind, ...]] = {
    "KA101": (ObservationKind.EXACT_DUPLICATE, ObservationKind.SAME_SEQUENCES),
    "KA102": (ObservationKind.BEHIND_WINDOW,),
    "KA103": (ObservationKind.OVERLAP, ObservationKind.INSIDE),
    "KA104": (ObservationKind.GAP,),
    "KA105": (ObservationKind.SEQUENCE_RESTART,),
    "KA106": (ObservationKind.UNKNOWN_START, ObservationKind.AFTER_MARKER),
    "KA201": (ObservationKind.STALE_BATCH, ObservationKind.STALE_MARKER),
    "KA202": (ObservationKind.BUMP_NONZERO,),
    "KA203": (ObservationKind.CLIENT_BUMP, ObservationKind.RESTART_BUMP, ObservationKind.TIMEOUT_ABORT),
    "KA204": (ObservationKind.NEARLY_EXHAUSTED,),
    "KA205": (ObservationKind.COORDINATOR_EPOCH_REGRESSION,),
    "KA303": (ObservationKind.OUTSIDE_TRANSACTION,),
    "KA801": (ObservationKind.CONTINUED_AFTER_SILENCE,),
}
OBSERVERS = {kind: code for code, kinds in _OBSERVES.items() for kind in kinds}

CATALOGUE = [
    Check(
        code=code,
        name=name,
        severity=Severity(severity),
        confidence=Confidence.CERTAIN,
        severity_note=severity_note,
        summary=summary,
        since=since,
        needs=(),
        observes=_OBSERVES.get(code, ()),
        run=lambda _context, _evidence: (),
        package="kaudit.checks",
    )
    for code, name, severity, severity_note, summary, since in _ROWS
]
