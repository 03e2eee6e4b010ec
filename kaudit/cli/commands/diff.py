"""`kaudit diff`: replicas compared with one another, or two topics record by record."""

import enum
from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.options import AuditOptions, Compared, TableOutput
from kaudit.cli.settings import settings_of
from kaudit.scanning.comparison_options import LedgerOptions, ReplicaOptions

_EXAMPLES = """
  kaudit diff /backup/broker1 /backup/broker2 /backup/broker3
  kaudit diff --topic orders /backup/broker1 /backup/broker2
  kaudit diff --name old=/mnt/b1 --name new=/mnt/b2 /mnt/b1 /mnt/b2
  kaudit diff before-restart/b1 after-restart/b1
  kaudit diff --fingerprint /data/kafka > site-a.json
  kaudit diff site-a.json /data/kafka
  kaudit diff report.json /data/kafka
  kaudit diff --fingerprint --by records /data/kafka > records-a.json
  kaudit diff --by records records-a.json /data/kafka
  kaudit diff --by records /mnt/cluster-a /mnt/cluster-b
  kaudit diff --by records kafka://a:9092/orders kafka://b:9092/primary.orders
  kaudit diff --by records --identity header:id --map '(.*)=copy.\\1' \\
      cluster-a cluster-b
"""


class Unit(enum.Enum):
    """What is compared."""

    BATCHES = "batches"
    RECORDS = "records"


class UnitOptions(OptionGroup, frozen=True, kw_only=True):
    """What is compared, and where offsets of groups go."""

    heading = LedgerOptions.heading

    by: Annotated[
        Unit,
        typer.Option(
            "--by",
            metavar="UNIT",
            help="batches: DIRs are replicas of the same partitions; records: the first DIR is the source, the second has copies of its "
            "topics, at whatever offsets and under whatever names.",
        ),
    ] = Unit.BATCHES
    offsets_file: Annotated[
        str | None,
        typer.Option(
            "--offsets-file",
            metavar="FILE",
            help="The file that kafka-consumer-groups.sh --reset-offsets --from-file reads.",
        ),
    ] = None


class DiffOptions(AuditOptions, frozen=True, kw_only=True):
    """What `diff` compares, and how."""

    replicas: ReplicaOptions
    fingerprint: Annotated[
        bool,
        typer.Option(
            "--fingerprint",
            help="Write digests of the batches in one DIR, by records of windows of event time, as JSON, for another site to compare "
            "with its own; with a fingerprint besides DIR, narrower ones where the two differ.",
        ),
    ] = False
    unit: UnitOptions
    ledger: LedgerOptions
    audit: Compared
    output: TableOutput


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def diff(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR",
            help="One directory a replica: a broker's log directory, or a partition's; two or more. Or a fingerprint "
            "(.json, or - for stdin) and a directory, or two fingerprints; or a report of 'kaudit scan --digests' and "
            "directories. By records also kafka://HOST:PORT/TOPIC[/PARTITION].",
        ),
    ],
    *,
    options: DiffOptions,
) -> int:
    """Compare replicas of the same partitions batch by batch: which agree, which lag, where they diverge.

    Normal differences are ignored: other segment boundaries, an older log start, compaction. Copies of one broker made at
    different times (by meta.properties) are not replicas: diff shows what the broker appended or truncated in between. With --by
    records topics are compared with their copies in another cluster: which records are missing there, which are there twice.
    Nothing is ever written into DIR.
    """
    if options.unit.by is Unit.RECORDS:
        return on_demand("record_comparison", "run_record_ledger")(settings_of(context), paths, options)
    return on_demand("comparison", "run_diff")(settings_of(context), paths, options)
