"""Runs `kaudit capture` until all is copied or a signal ends it."""

import threading
from collections.abc import Mapping, Sequence

from kaudit.capture.account import Account
from kaudit.capture.capture import Capture, CaptureRequest, require_there
from kaudit.capture.directory import CaptureDirectory, OccupiedError
from kaudit.cli.interruption import ends_on_signals
from kaudit.cli.progress import capture_progress
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.command_config import load_settings
from kaudit.source.kafka.failures import BrokerError, UnknownTopicError
from kaudit.source.uri import UrlError


def run_capture(  # noqa: PLR0913 - the command's options
    servers: str,
    topics: Mapping[str, Sequence[int] | None],
    *,
    output: str,
    command_config: str | None,
    from_replica: int | None,
    follow: bool,
    max_bytes_per_second: int | None,
    quiet: bool,
    verbose: bool,
) -> Account:
    """Copy partitions, None for all, by topic, into `output`, a directory or URL; return the account of it.

    Raises UsageError for a topic or partition that is not there and a place that cannot be written, UnreadableInputError for a
    broker that cannot be read from.
    """
    request = CaptureRequest(topics, from_replica, follow, max_bytes_per_second)
    try:
        with (
            KafkaClient(servers, load_settings(command_config)) as client,
            ends_on_signals(stop := threading.Event()),
            capture_progress(quiet=quiet, verbose=verbose) as progress,
        ):
            there = require_there(client, request)  # before there is a directory
            directory = CaptureDirectory(output)
            try:
                work = Capture(client, directory, request, there, progress)
                work.run(stop)
            finally:
                directory.close()
    except (UrlError, OccupiedError) as error:
        raise UsageError(str(error)) from None
    except UnknownTopicError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    except BrokerError as error:
        raise UnreadableInputError(f"{error.filename}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from error
    return work.account
