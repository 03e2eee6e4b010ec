"""What the traits of decided transactions whose markers never come share."""

from kaudit.bugs.bug import Case, Trait

_LONGEST_MS = 20 * 60_000
"""transaction.max.timeout.ms (15 minutes) and what brokers add before they call a transaction late."""


def _decided(case: Case) -> bool:
    return case.value("coordinator_state") in ("PrepareCommit", "PrepareAbort")


def _long_ago(case: Case) -> bool:
    last, now = case.number("last_timestamp"), case.number("now_timestamp")
    return last is not None and now is not None and last >= 0 and now - last >= _LONGEST_MS


DECIDED = Trait("the coordinator has decided, and its marker is not in the log", _decided)
LONG_AGO = Trait("the transaction is idle for longer than any may take", _long_ago)
