"""Pages of kaudit in Debian's Chromium: opened from a file, with everything watched that an offline page must not do."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

VIEWPORTS: dict[str, ViewportSize] = {
    "phone": {"width": 390, "height": 844},
    "laptop": {"width": 1280, "height": 800},
    "desktop": {"width": 1920, "height": 1080},
}
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

_QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


class Opened(Struct):
    """A page in the browser, and what it has said and fetched since: `messages` of the console, `requests` but its own file."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        """Return everything that a correct offline page has none of."""
        return [*self.messages, *(f"request: {url}" for url in self.requests)]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the installed Chromium without a window; playwright's own builds are never downloaded."""
    executable = shutil.which("chromium")
    if executable is None:
        raise RuntimeError("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, chromium_sandbox=False, args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Browser, file: Path, fragment: str = "", *, viewport: str = "laptop", theme: Theme = "light"
) -> Iterator[Opened]:
    """Open a file, in a context of its own, with `#fragment`; scripts have run when it is given out."""
    context = browser.new_context(viewport=VIEWPORTS[viewport], color_scheme=theme, reduced_motion="reduce")
    try:
        url = file.absolute().as_uri()
        watched = Opened(context.new_page())
        page = watched.page
        page.set_default_timeout(10_000)
        page.on("console", lambda message: watched.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: watched.messages.append(f"exception: {error}"))
        page.on("request", lambda request: _note(watched.requests, request.url, url))
        page.goto(url + (f"#{fragment}" if fragment else ""))
        yield watched
    finally:
        context.close()


def _note(requests: list[str], asked_for: str, own: str) -> None:
    if asked_for.partition("#")[0] != own and not asked_for.startswith("data:"):
        requests.append(asked_for)


def until(page: Page, condition: str | Callable[[], object], argument=None) -> None:
    """Wait until a function is true, one of the page or one of Python.

    What playwright itself waits with needs `eval`, which the page's policy forbids.
    """
    end = time.monotonic() + 10
    while not (condition() if callable(condition) else page.evaluate(condition, argument)):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def follow(page: Page, name: str) -> None:
    """Go to a view by its link: the page hears of the new address later than the click, and unpacks a partition later still."""
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name=name, exact=True).click()
    views.locator("[aria-current=page]", has_text=re.compile(f"^{re.escape(name)}$")).wait_for()
    page.evaluate("kaudit.ready()")
