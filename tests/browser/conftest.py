"""One browser for all tests, and pages that kaudit wrote. What a test opened must have been silent and offline."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kaudit.cli.app import run
from tests.browser.opening import Opened, Theme, chromium, opened


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """`open_page(file, fragment, viewport=, theme=)`: at the end no page may have logged, thrown or requested anything."""
    pages: list[Opened] = []
    with ExitStack() as stack:

        def open_one(file: Path, fragment: str = "", *, viewport: str = "laptop", theme: Theme = "light") -> Opened:
            pages.append(stack.enter_context(opened(browser, file, fragment, viewport=viewport, theme=theme)))
            return pages[-1]

        yield open_one
    assert [complaint for page in pages for complaint in page.complaints()] == []


@pytest.fixture(scope="session")
def written_page(tmp_path_factory) -> Callable[[str], Path]:
    """`written_page(command)`: the page that `kaudit COMMAND --output-format html` writes; each is written once."""
    directory = tmp_path_factory.mktemp("pages")
    written: dict[str, Path] = {}

    def write(command: str) -> Path:
        if command not in written:
            file = directory / f"{len(written)}.html"
            run([*command.split(), "-q", "--output-format", f"html:{file}"])
            written[command] = file
        return written[command]

    return write
