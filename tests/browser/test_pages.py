"""The pages that kaudit writes: silent, offline, and free of what axe-core calls serious."""

import pytest

from tests.browser.accessibility import violations
from tests.browser.opening import THEMES, VIEWPORTS

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("command", ["simulate six-in-flight"])
def test_everyone_can_read_a_page(open_page, written_page, command, viewport, theme):
    page = open_page(written_page(command), viewport=viewport, theme=theme).page
    assert page.locator("h1").count() == 1
    assert violations(page) == []
