"""Pictures of the pages for docs/ and README.md.

uv run python -m tests.browser.screenshots                  # writes docs/images anew
uv run python -m tests.browser.screenshots --all DIRECTORY  # every view at every size, light and dark, to look at

"""

import argparse
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from kaudit.cli.app import run
from tests.browser.opening import THEMES, VIEWPORTS, Theme, chromium, opened

IMAGES = Path(__file__).parents[2] / "docs" / "images"
VIEWS = {
    "overview": ("scan samples/duplicates", ""),
    "partition": ("scan samples/open-transaction", "topic=tx-a&partition=1"),
    "finding": ("scan samples/crafted", "topic=evicted&partition=0&finding=e646112ff03e7ef5"),
    "sequence": ("simulate six-in-flight", "step=20"),
}
"""The command that writes a page, and the part of it that is shown."""
SHOWN: dict[str, Theme] = {"overview": "light", "partition": "light", "finding": "dark", "sequence": "light"}
_COLOURS = 256


def picture(browser: Browser, page: Path, fragment: str, viewport: str, theme: Theme) -> bytes:
    """Return a PNG with few colours: text and bars need no more."""
    with opened(browser, page, fragment, viewport=viewport, theme=theme) as watched:
        watched.page.wait_for_timeout(500)
        shot = Image.open(BytesIO(watched.page.screenshot()))
    small = BytesIO()
    shot.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY")
    directory = parser.parse_args().all
    with tempfile.TemporaryDirectory() as pages, chromium() as browser:
        for name, (command, fragment) in VIEWS.items():
            page = Path(pages) / f"{name}.html"
            run([*command.split(), "-q", "--output-format", f"html:{page}"])
            if directory is None:
                IMAGES.mkdir(exist_ok=True)
                (IMAGES / f"{name}.png").write_bytes(picture(browser, page, fragment, "laptop", SHOWN[name]))
                continue
            for viewport in VIEWPORTS:
                for theme in THEMES:
                    shot = picture(browser, page, fragment, viewport, theme)
                    (directory / f"{name}-{viewport}-{theme}.png").write_bytes(shot)


if __name__ == "__main__":
    main()
