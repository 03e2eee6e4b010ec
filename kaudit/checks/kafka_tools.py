"""Commands of Kafka's own tools: each stands below a comment with the releases that have it, and what to know before."""

from collections.abc import Sequence

from kaudit.broker.releases.version import Version
from kaudit.checks.command_line import quote_text
from kaudit.checks.context import Context

DESCRIBE_PRODUCERS = Version.parse("3.0.0")
"""The first brokers that describe producers and transactions (KIP-664)."""


def transactions_tool(context: Context, arguments: str, releases: str, warning: str = "") -> Sequence[str]:
    """Return a comment with the releases a command of kafka-transactions.sh is for, and the command; a warning comes first."""
    comment = f"# CAREFUL: {warning} ({releases})" if warning else f"# {releases}"
    return comment, f"kafka-transactions.sh {context.bootstrap_arguments} {arguments}"


def describe_transaction(context: Context, transactional_id: str) -> Sequence[str]:
    """Return the command that shows a transactional id's state; before 3.0 only __transaction_state itself does."""
    if context.versions.at_most < DESCRIBE_PRODUCERS:
        return (
            "# brokers before 3.0: read the id's partition of __transaction_state",
            "kafka-dump-log.sh --transaction-log-decoder --files __transaction_state-N/00000000000000000000.log",
        )
    own = f"describe --transactional-id {quote_text(transactional_id)}"
    return transactions_tool(context, own, "Kafka 3.0 or later")


def find_hanging(context: Context) -> Sequence[str]:
    """Return the command that asks the coordinators about a partition's transactions."""
    if context.versions.at_most < DESCRIBE_PRODUCERS:
        return ()
    own = f"find-hanging --topic {context.topic} --partition {context.partition}"
    return transactions_tool(context, own, "Kafka 3.0 or later")


def terminate_transaction(context: Context, transactional_id: str, warning: str) -> Sequence[str]:
    """Return the command that has a coordinator abort an ongoing transaction, and how it is done without that command."""
    own = f"forceTerminateTransaction --transactionalId {quote_text(transactional_id)}"
    return (
        *transactions_tool(context, own, "tool of 4.1 or later, brokers of 2.1 or later", warning),
        "# with older tools: a producer that calls initTransactions() with this transactional id, which does the same",
    )


def abort_transaction(
    context: Context, producer: tuple[int, int], coordinator_epoch: int, first_offset: int, warning: str
) -> Sequence[str]:
    """Return the command that writes an ABORT marker for a producer id and epoch, in each form that a broker may need.

    From 3.0 on a broker describes its producers (KIP-664), so that the first offset is enough.
    """
    place = f"abort --topic {context.topic} --partition {context.partition}"
    producer_id, epoch = producer
    commands: list[str] = []
    if context.versions.at_most >= DESCRIBE_PRODUCERS:
        own = f"{place} --start-offset {first_offset}"
        commands += transactions_tool(context, own, "Kafka 3.0 or later", warning)
    if context.versions.at_least < DESCRIBE_PRODUCERS:
        own = f"{place} --producer-id {producer_id} --producer-epoch {epoch} --coordinator-epoch {max(coordinator_epoch, 0)}"
        commands += transactions_tool(context, own, "brokers before 3.0, tool of 3.0 to 3.9", warning)
    return commands
