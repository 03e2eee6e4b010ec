"""Which library draws a million runs: python -m benchmarks.charts.measure; README.md has the figures.

Needs Chromium (`--chromium`), playwright and npm; echarts and uplot are installed into a temporary directory.
"""

import argparse
import gzip
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

SCRIPTS = {"echarts": "echarts/dist/echarts.min.js", "uPlot": "uplot/dist/uPlot.iife.min.js"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--frames", type=int, default=120)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            ["npm", "install", "--silent", "--prefix", directory, "echarts@6.1.0", "uplot@1.6.32"], check=True
        )
        modules = Path(directory) / "node_modules"
        for name, path in SCRIPTS.items():
            script = (modules / path).read_bytes()
            print(f"{name}: {len(script):,} bytes, {len(gzip.compress(script)):,} compressed")
        page_file = Path(directory) / "page.html"
        page_file.write_text(_page([modules / path for path in SCRIPTS.values()]), encoding="utf-8")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 850})
            page.goto(page_file.as_uri())
            for name in page.evaluate("window.names"):
                page.goto(page_file.as_uri())  # each candidate in a fresh document
                page.set_default_timeout(120_000)
                figures = page.evaluate("([name, frames]) => window.measure(name, frames)", [name, options.frames])
                rates = ", ".join(f"{what} {rate:.1f}/s" for what, rate in figures["rates"].items())
                print(f"{name}: first picture {figures['open']:.0f} ms, {rates}")
            browser.close()


def _page(scripts: list[Path]) -> str:
    own = Path(__file__).with_name("candidates.js")
    style = scripts[-1].with_name("uPlot.min.css").read_text(encoding="utf-8")
    tags = "".join(f"<script>{path.read_text(encoding='utf-8')}</script>" for path in [*scripts, own])
    return f'<!doctype html><meta charset="utf-8"><style>{style}</style><div id="host" style="width:1200px;height:800px"></div>{tags}'


if __name__ == "__main__":
    main()
