"""Redacts what a command shows (--redact): the result, the histories beside it, and what is said of the run."""

import secrets
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.report.render_options import RenderOptions
from kaudit.results.redaction import IN_CLEAR, Redactor

if TYPE_CHECKING:
    from kaudit.listings.duplicates import DuplicateListing
    from kaudit.listings.producer_histories import RecordedScan
    from kaudit.listings.transactions import TransactionListing

_Result = TypeVar("_Result")


def redactor(secret: str | None, *, redact: bool = True, says: bool = True) -> Redactor | None:
    """Return what redacts with this secret, or with one of this run alone; say on stderr what stays in clear unless that comes later.

    None where nothing is to be redacted. Raises UsageError for a secret without --redact.
    """
    if not redact:
        if secret is not None:
            raise UsageError("--redact-secret needs --redact")
        return None
    if says:
        sys.stderr.write(f"kaudit: redacted; in clear are {IN_CLEAR}\n")
    return Redactor(secrets.token_bytes(32) if secret is None else secret.encode())


def redacted_result(names: Redactor, result: _Result, paths: Sequence[str]) -> _Result:
    """Return the result with hashes in place of names; `paths` are those of the command line."""
    names.learn_paths(paths)
    names.learn(result)
    return names.redacted(result)


def redacted_recordings(
    names: Redactor, recorded: "Mapping[str | None, RecordedScan]"
) -> "dict[str | None, RecordedScan]":
    """Return the recordings with hashes in place of names."""
    if not recorded:
        return {}
    renamed: dict[str | None, RecordedScan] = {}
    for replica, recording in recorded.items():
        names.learn(recording.result)
        key = None if replica is None else names.redacted(replica, "replica")
        renamed[key] = _of_listings().redacted_recording(recording, names)
    return renamed


def redacted_duplicates(names: Redactor, listing: "DuplicateListing") -> "DuplicateListing":
    """Return a list of duplicates with hashes in place of names."""
    shown: DuplicateListing = _of_listings().redacted_duplicates(listing, names)
    return shown


def redacted_transactions(names: Redactor, listing: "TransactionListing") -> "TransactionListing":
    """Return a list of transactions with hashes in place of names."""
    shown: TransactionListing = _of_listings().redacted_transactions(listing, names)
    return shown


def _of_listings() -> ModuleType:
    """Return the module that redacts listings: numpy and the listings come with it."""
    return import_module("kaudit.results.redacted_recording")


def redacted_view(names: Redactor, view: RenderOptions) -> RenderOptions:
    """Return what formats are told of the run without names of this machine, and without its arguments."""
    run = None if view.run is None else {**view.run, "host": names.redacted(str(view.run.get("host", "")), "host")}
    return replace(view, run=run, command="kaudit --redact", repository="/")
