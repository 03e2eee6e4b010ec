"""The harness notices what it is there for: messages, exceptions, requests, unreadable text."""

import pytest

from tests.browser.accessibility import violations
from tests.browser.opening import THEMES, VIEWPORTS, opened, until

pytestmark = pytest.mark.browser

_POLICY = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"


def _page(tmp_path, body: str, policy: str = ""):
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><html lang=en><head>{policy}<title>t</title></head><body>{body}</body></html>")
    return file


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<script>console.log('said')</script>", "log: said"),
        ("<script>nothing()</script>", "exception: nothing is not defined"),
        ("<img alt='' src='http://127.0.0.1:9/a.png'>", "request: http://127.0.0.1:9/a.png"),
        ("<img alt='' src='other.png'>", "other.png"),
    ],
)
def test_what_an_offline_page_must_not_do_is_noticed(browser, tmp_path, body, complaint):
    with opened(browser, _page(tmp_path, body)) as watched:
        until(watched.page, lambda: [line for line in watched.complaints() if complaint in line])


def test_a_script_against_the_policy_is_noticed(browser, tmp_path):
    with opened(browser, _page(tmp_path, "<script>document.title = 'ran'</script>", _POLICY)) as watched:
        assert watched.page.title() == "t"
        assert "Content Security Policy" in " ".join(watched.complaints())


def test_a_quiet_page_is_quiet(open_page, tmp_path):
    image = "<img alt='' src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
    assert open_page(_page(tmp_path, image), "a/b").page.url.endswith("page.html#a/b")


def test_axe_runs_under_a_policy_and_finds_what_cannot_be_read(open_page, tmp_path):
    page = _page(tmp_path, "<main><h1>A</h1><p style='color:#ccc;background:#fff'>faint</p></main>", _POLICY)
    assert [line.partition(" ")[0] for line in violations(open_page(page).page)] == ["color-contrast"]
    assert violations(open_page(_page(tmp_path, "<main><h1>A</h1><p>plain</p></main>", _POLICY)).page) == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("viewport", VIEWPORTS)
def test_size_and_theme_are_the_ones_asked_for(open_page, tmp_path, viewport, theme):
    page = open_page(_page(tmp_path, "", _POLICY), viewport=viewport, theme=theme).page
    assert page.evaluate("innerWidth") == VIEWPORTS[viewport]["width"]
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (theme == "dark")
