"""Watches in this process, round by round."""

import math

import pytest

from kaudit.watch import log_directories
from kaudit.watch.findings import Due


@pytest.fixture(scope="module", autouse=True)
def at_once():
    """Nothing is put off to save time: the rounds of a test follow one another at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Due, "is_now", lambda due: True)
        patch.setattr(log_directories, "LISTING_SHARE", math.inf)
        yield
