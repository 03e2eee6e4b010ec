"""axe-core, run in a page: what people with a screen reader, a keyboard or weak eyes would stumble over."""

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).parents[1] / "html" / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Page) -> list[str]:
    """Return axe-core's serious and critical violations, one line for each element."""
    if not AXE.exists():
        raise RuntimeError("axe-core is not installed: npm ci --prefix tests/html")
    # the DevTools protocol may evaluate what the page's own policy would not let in
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['html'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]
