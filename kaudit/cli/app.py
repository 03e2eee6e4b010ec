"""The command tree, and the one place where everything that goes wrong becomes an exit code."""

import io
import os
import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

from kaudit.cli.commands.baseline import baseline
from kaudit.cli.commands.checks import checks
from kaudit.cli.commands.config import config
from kaudit.cli.commands.diff import diff
from kaudit.cli.commands.explain import explain
from kaudit.cli.commands.inspect import inspect
from kaudit.cli.commands.producers import producers
from kaudit.cli.commands.replay import replay
from kaudit.cli.commands.report import report
from kaudit.cli.commands.scan import scan
from kaudit.cli.commands.simulate import simulate
from kaudit.cli.commands.spark_bundle import spark_bundle
from kaudit.cli.commands.timeline import timeline
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import Version
from kaudit.cli.settings.coercion import PlainGroup
from kaudit.cli.settings.command import ConfiguredCommand
from kaudit.pipeline.options import NothingToAuditError, UsageError
from kaudit.report.console import visible

_SHORT_HELP = """\
kaudit audits Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why.

  kaudit scan /var/lib/kafka/data            audit a broker's log directory
  kaudit timeline --producer-id 42 orders-3  one producer's history in a partition

kaudit --help lists all commands, kaudit checks all checks.
"""

_SCAN_EXAMPLES = """\b
Examples:
  kaudit scan /var/lib/kafka/data
  kaudit scan --topic orders --broker-version 2.8.2 /disk1/kafka /disk2/kafka
  kaudit scan --output-format json:report.json --output-format table orders-3
"""
_TIMELINE_EXAMPLES = """\b
Examples:
  kaudit timeline --producer-id 42 /var/lib/kafka/data
  kaudit timeline --topic orders --output-format jsonl /data/kafka
"""
_REPORT_EXAMPLES = """\b
Examples:
  kaudit report scan.json
  kaudit report --output-format sarif --baseline known.json scan.json
"""
_INSPECT_EXAMPLES = """\b
Examples:
  kaudit inspect /var/lib/kafka/data/orders-3
  kaudit inspect --records --around 1200 orders-3/00000000000000001000.log
  kaudit inspect --at 16297 orders-3/00000000000000001000.log
  kaudit inspect --producer-id 42 --output-format jsonl /var/lib/kafka/data
"""

_PRODUCERS_EXAMPLES = """\b
Examples:
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""
_REPLAY_EXAMPLES = """\b
Examples:
  kaudit replay attempts.jsonl
  kaudit replay --broker-version 2.0.1 --explain 17 attempts.jsonl
  kaudit replay --on /data/kafka --topic orders --partition 3 attempts.jsonl
"""
_SIMULATE_EXAMPLES = """\b
Examples:
  kaudit simulate --list
  kaudit simulate six-in-flight
  kaudit simulate acks1-leader-dies -o run && kaudit scan run/broker-2
  kaudit simulate my-cluster.toml --sweep 1000
"""

_DIFF_EXAMPLES = """\b
Examples:
  kaudit diff /backup/broker1 /backup/broker2 /backup/broker3
  kaudit diff --topic orders --name old=/mnt/b1/kafka --name new=/data/kafka \\
      /mnt/b1/kafka /data/kafka
  kaudit diff b1/orders-3 b2/orders-3
"""

# Plain help: rich's boxes cost a quarter of a second.
app = typer.Typer(name="kaudit", cls=PlainGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command(cls=ConfiguredCommand, short_help="Audit broker logs.", epilog=_SCAN_EXAMPLES)(scan)
app.command(cls=ConfiguredCommand, short_help="Show what each producer id did.", epilog=_TIMELINE_EXAMPLES)(timeline)
app.command(cls=ConfiguredCommand, short_help="List the producer ids.", epilog=_PRODUCERS_EXAMPLES)(producers)
app.command(short_help="Decode batches, records and side files.", epilog=_INSPECT_EXAMPLES)(inspect)
app.command(short_help="Say what a broker would have answered.", epilog=_REPLAY_EXAMPLES)(replay)
app.command(cls=ConfiguredCommand, short_help="Compare replicas batch by batch.", epilog=_DIFF_EXAMPLES)(diff)
app.command(short_help="Play a scenario: producers, brokers, faults.", epilog=_SIMULATE_EXAMPLES)(simulate)
app.command(cls=ConfiguredCommand, short_help="Render a saved scan.", epilog=_REPORT_EXAMPLES)(report)
app.add_typer(baseline, short_help="Keep known findings in a file.")
app.add_typer(config, short_help="Look at the configuration.")
app.command(short_help="Explain a check, or a broker version's rules.")(explain)
app.command(short_help="List the checks.")(checks)
app.command("spark-bundle", short_help="Pack what Spark's workers need.")(spark_bundle)


@app.callback(
    invoke_without_command=True,
    epilog="Exit codes: 0 nothing found, 1 findings, 2 usage, 3 nothing to audit, 4 unreadable files, 70 internal error.",
)
def _root(context: typer.Context, version: Version = False) -> None:  # noqa: ARG001 - its callback has answered
    """Audit Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why."""
    if context.invoked_subcommand is None:
        sys.stderr.write(_SHORT_HELP)
        raise typer.Exit(ExitCode.USAGE)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code (CONTRACT.md section 1)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name need not be text
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return ExitCode.BROKEN_PIPE


def _run(arguments: Sequence[str]) -> int:
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except NothingToAuditError as error:
        return _tell(str(error), ExitCode.NOTHING_TO_AUDIT)
    except UsageError as error:
        return _tell(str(error), ExitCode.USAGE)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        return _tell(error.format_message() + hint, ExitCode.USAGE)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer turns it into exit 1
            raise error.__context__ from None
        raise
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: one paragraph instead of a traceback
        return _internal(error)
    return int(code or ExitCode.OK)


def _dispatch(arguments: Sequence[str]) -> int | None:
    match arguments:
        # Nothing to parse here, and typer's parser imports pydantic: half of the time of these two.
        case ["explain", code] if not code.startswith("-"):
            explain(code)
            return None
        case ["checks"]:
            checks()
            return None
    # Not through Typer.__call__, which installs its own exception hook.
    result: int | None = get_command(app)(arguments, prog_name="kaudit", standalone_mode=False)
    return result


def _tell(text: str, code: ExitCode) -> int:
    sys.stderr.write(f"kaudit: {visible(text)}\n")
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("KAUDIT_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    return _tell(
        f"internal error: {type(error).__name__}: {error}. This is a defect of kaudit, not of the log: nothing it "
        "may have printed is complete. KAUDIT_DEBUG=1 shows the traceback for a report.",
        ExitCode.INTERNAL,
    )


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
