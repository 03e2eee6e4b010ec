"""One module per command: its `app`, with the signature typer reads and a thin body.

A command's module is imported when the command, or its help, is asked for; what it runs is imported by `kaudit.cli.loading`.
"""

from importlib import import_module
from types import ModuleType

COMMANDS = {
    "scan": "Audit broker logs.",
    "timeline": "Show what each producer id did.",
    "producers": "List the producer ids.",
    "inspect": "Decode batches, records and side files.",
    "replay": "Say what a broker would have answered.",
    "attempts": "Make an attempts file from segments and server logs.",
    "diff": "Compare replicas batch by batch.",
    "dedup": "List the records that a consumer reads twice.",
    "transactions": "List transactions from input to output.",
    "groups": "List consumer groups and what they committed.",
    "capture": "Copy a live cluster's batches into segment files.",
    "watch": "Audit logs while they are written.",
    "simulate": "Play a scenario: producers, brokers, faults.",
    "report": "Render a saved scan.",
    "explain": "Explain a check, a known bug, or a broker version's rules.",
    "checks": "List the checks.",
    "bugs": "List the known bugs that findings may show.",
    "spark-bundle": "Pack what Spark's workers need.",
    "baseline": "Keep known findings in a file.",
    "config": "Show the configuration.",
}
"""The summary of each command, in the order of --help."""


def module_of(name: str) -> ModuleType:
    """Return the module of a command."""
    return import_module(f"{__name__}.{name.replace('-', '_')}")
