"""How fast a browser shows the page of a large log: seconds until its lanes are drawn, frames a second while panning.

    uv run python -m benchmarks.bench_page [--producers 10000] [--runs 1000000] [--page FILE]

Chromium without a window and without a graphics card, a page of 1280 x 800. Prints a Markdown table with the limits; exit 1
when one is not met. Needs `chromium` (CONTRIBUTING.md), and a machine that does nothing else.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.opening import chromium, opened, until

OPEN_LIMIT_S = 3.0
PAN_LIMIT_FPS = 30.0
FRAMES = 90
_DRAWN = """() => {
  const canvas = document.querySelector(".lanes-plot canvas");
  if (!canvas || !canvas.width) return false;
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return pixels.some((pixel) => pixel !== 0);
}"""
_PAN = """async (frames) => {
  const frame = () => new Promise(requestAnimationFrame);
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  await frame();
  const times = [];
  for (let number = 0; number < frames; number++) {
    press(number % 4 < 2 ? "ArrowRight" : "ArrowLeft");
    times.push(await frame());
  }
  return times;
}"""


def opening(browser: Browser, page: Path, fragment: str) -> float:
    """Return the seconds from the navigation until the lanes are on the canvas."""
    with opened(browser, page, fragment) as watched:
        until(watched.page, _DRAWN)
        assert watched.complaints() == []
        return float(watched.page.evaluate("performance.getEntriesByName('lanes')[0].startTime")) / 1000


def panning(browser: Browser, page: Path, fragment: str, zooms: int) -> float:
    """Return frames a second while panning by keys, after zooming in `zooms` times by half: the mean."""
    with opened(browser, page, fragment) as watched:
        until(watched.page, _DRAWN)
        for _ in range(zooms):
            watched.page.keyboard.press("+")
        before = watched.page.locator(".lanes").screenshot()
        watched.page.keyboard.press("ArrowRight")
        assert watched.page.locator(".lanes").screenshot() != before, "nothing moves"
        times = watched.page.evaluate(_PAN, FRAMES)
        return float((len(times) - 1) * 1000 / (times[-1] - times[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--producers", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="this page in place of a made one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        page = options.page or Path(directory) / "page.html"
        if options.page is None:
            sizes = ["--producers", str(options.producers), "--runs", str(options.runs)]
            subprocess.run([sys.executable, "-m", "tests.html.synthetic", *sizes, "-o", str(page)], check=True)
        seconds = min(opening(browser, page, "view=partition") for _ in range(options.rounds))
        rates = {zooms: panning(browser, page, "view=partition", zooms) for zooms in (1, 4, 12)}
    print("| what | measured | limit |\n|---|---|---|")
    print(f"| lanes drawn, least of {options.rounds} | {seconds:.2f} s | {OPEN_LIMIT_S:.0f} s |")
    for zooms, rate in rates.items():
        print(f"| pan at 1/{2**zooms} of the log | {rate:.0f} frames/s | {PAN_LIMIT_FPS:.0f} |")
    return int(seconds > OPEN_LIMIT_S or min(rates.values()) < PAN_LIMIT_FPS)


if __name__ == "__main__":
    sys.exit(main())
