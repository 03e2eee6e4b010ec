"""Outputs shown in docs: the example of each check and the README of each sample, made by running kaudit.

Run `python -m tests.examples` to write them anew, then read the diff. tests/test_examples.py fails when they are stale.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kaudit.checks.registry import CHECKS

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"

_REPLICAS = tuple(f"samples/replicas/{broker}" for broker in ("b1", "b2", "b3"))
# check -> sample directory, more options; for those of `kaudit diff`: diff, its arguments
EXAMPLES = {
    "KA001": ("damaged/flip-body",),
    "KA002": ("damaged/truncate-mid-batch-active",),
    "KA003": ("damaged/flip-length",),
    "KA004": ("damaged/zero-hole-4k",),
    "KA005": ("malformed",),
    "KA006": ("damaged/flip-base-offset",),
    "KA007": ("damaged/batch-removed",),
    "KA008": ("damaged/empty-log",),
    "KA009": ("damaged/flip-leader-epoch",),
    "KA010": ("malformed", "--depth", "records"),
    "KA011": ("damaged/cleaned-leftover",),
    "KA101": ("duplicates", "--topic", "s50-inject-seq-gap"),
    "KA102": ("crafted",),
    "KA103": ("crafted",),
    "KA104": ("duplicates", "--topic", "s50-inject-seq-gap"),
    "KA105": ("zombie", "--topic", "x05-idle-clean-restart-seq0"),
    "KA106": ("duplicates", "--topic", "s08-unknown-pid-nonzero-empty"),
    "KA107": ("crafted",),
    "KA201": ("zombie",),
    "KA202": ("duplicates",),
    "KA203": ("open-transaction", "--topic", "tx-timeout"),
    "KA204": ("zombie",),
    "KA205": ("crafted",),
    "KA301": ("hanging-transaction", "--topic", "s29d-late-write-after-abort"),
    "KA302": ("open-transaction", "--topic", "tx-open"),
    "KA303": ("crafted",),
    "KA304": ("hanging-transaction",),
    "KA305": ("side-files",),
    "KA306": ("coordinator",),
    "KA307": ("coordinator",),
    "KA308": ("coordinator",),
    "KA401": ("producer-ids", "--blocks", "samples/producer-ids/blocks.jsonl"),
    "KA402": ("producer-ids", "--blocks", "samples/producer-ids/blocks.jsonl"),
    "KA403": ("producer-ids", "--blocks", "samples/producer-ids/blocks-near-end.jsonl"),
    "KA404": ("producer-ids",),
    "KA405": ("producer-ids",),
    "KA406": ("producer-ids", "--blocks", "samples/producer-ids/blocks-near-end.jsonl"),
    "KA501": ("side-files",),
    "KA502": ("crafted",),
    "KA503": ("side-files",),
    "KA504": ("side-files",),
    "KA505": ("side-files",),
    "KA506": ("side-files",),
    "KA601": ("diff", *_REPLICAS, "--topic", "orders"),
    "KA602": ("diff", *_REPLICAS, "--topic", "payments"),
    "KA603": ("diff", *_REPLICAS, "--topic", "payments"),
    "KA701": ("retries", "--depth", "records"),
    "KA702": ("retries",),
    "KA703": ("retries",),
    "KA801": ("crafted",),
    "KA802": ("crafted/evicted-0", "--log-start-offset", "3", "--broker-version", "2.0.1"),
    "KA803": ("crafted/outside-transaction-0",),
}
SAMPLE_NAMES = (
    "clean",
    "compacted",
    "coordinator",
    "crafted",
    "damaged",
    "duplicates",
    "hanging-transaction",
    "malformed",
    "open-transaction",
    "producer-ids",
    "replicas",
    "retries",
    "side-files",
    "truncated-head",
    "zombie",
)
_FENCE = re.compile(r"```text\n\$ (?P<command>kaudit [^\n]*)\n(?P<output>.*?)```", re.DOTALL)
WIDTH = "76"


def run(command: str) -> str:
    """What a command given as in the docs prints on both streams, at 76 columns and without colour."""
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    arguments = command.split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "kaudit", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # how long it took is not the same twice
    return re.sub(r", \d+(\.\d+)? s$", "", done.stdout, flags=re.MULTILINE)


def check_example(code: str) -> str:
    """The example of a check: the command, and the first finding it prints."""
    sample, *options = EXAMPLES[code]
    asked = ["diff", *options] if sample == "diff" else ["scan", f"samples/{sample}"]
    more = [] if sample == "diff" else options
    command = " ".join(["kaudit", *asked, "--select", code, *more])
    finding = next(part for part in run(command).split("\n\n") if f"[{code}]" in part).rstrip()
    return f"```text\n$ {command}\n{finding}\n```"


def page_of(code: str) -> Path:
    """The page beside the check's module."""
    return Path(str(CHECKS[code].page_file))


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with generated output, and what it should say."""
    for code in EXAMPLES:
        path = page_of(code)
        text = path.read_text(encoding="utf-8")
        head, rest = text.split("## Example\n", 1)
        _, tail = rest.split("\n## ", 1)
        yield path, f"{head}## Example\n\n{check_example(code)}\n\n## {tail}"
    yield ROOT / "README.md", _readme((ROOT / "README.md").read_text(encoding="utf-8"))
    for name in SAMPLE_NAMES:
        path = SAMPLES / name / "README.md"
        yield path, _FENCE.sub(_renew, path.read_text(encoding="utf-8"))


def _readme(text: str) -> str:
    """README.md with the finding it opens with."""
    head, rest = text.split("<!-- finding -->\n", 1)
    _, tail = rest.split("<!-- /finding -->", 1)
    return f"{head}<!-- finding -->\n{check_example('KA201')}\n<!-- /finding -->{tail}"


def _renew(match: re.Match[str]) -> str:
    command = match["command"]
    return f"```text\n$ {command}\n{run(command)}```"


if __name__ == "__main__":
    for target, content in pages():
        target.write_text(content, encoding="utf-8")
