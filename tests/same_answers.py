"""Whether two checkouts of kaudit give the same answers, byte for byte:

    python -m tests.same_answers record INPUTS OUT [--engine spark]   # every command on every input, by the kaudit of this folder
    python -m tests.same_answers compare OUT_BEFORE OUT_AFTER         # lists what differs

INPUTS is a directory of log directories, dumps, logs and attempts, archives unpacked. An older checkout records with its
own interpreter and this file: `cd OLD && .venv/bin/python THIS_FILE record INPUTS OUT`.
"""

import argparse
import filecmp
import os
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

SCAN_FORMATS = (  # beside the table
    *("concise", "json", "jsonl", "sarif", "sarif-github", "junit", "github", "gitlab"),
    *("markdown", "chrome-trace", "html"),
)
_BEGUN = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}".encode()


def _now(time: re.Match[bytes]) -> bytes:
    """Stand for times since this process began; earlier ones are in the inputs."""
    return (
        b"NOW" if _BEGUN <= time[1] + b" " + time[2] <= f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}".encode() else time[0]
    )


# what differs from run to run: version and commit, the time of the run, durations
_OWN = (
    (re.compile(rb"0\.1\.0(\+[0-9a-f]+| \(commit [0-9a-f]+\))?"), b"VERSION"),
    (re.compile(rb"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)?"), _now),
    (re.compile(rb"\b\d+(\.\d+)? m?s\b(?= *(\n|$|\(|,))"), b"DURATION"),
)


def log_directories(root: Path) -> list[Path]:
    """Directories whose children hold segments."""
    return sorted({segment.parent.parent for segment in root.rglob("*.log") if re.fullmatch(r"\d{20}", segment.stem)})


def runs(root: Path, engine: str | None) -> list[tuple[str, list[str]]]:
    """Name and arguments of every run; {out} is its own directory."""
    logs = [str(path.relative_to(root)) for path in log_directories(root)]
    found: list[tuple[str, list[str]]] = []
    formats = ["--output-format", "table"]
    for name in SCAN_FORMATS:
        formats += ["--output-format", f"{name}:{{out}}/{name}"]
    if engine is not None:
        on = ["--engine", engine, "--master", "local[2]"]
        documents = ["--output-format", "json", "--output-format", "html:{out}/html"]
        for log in logs:
            found += [(f"scan-{engine}:{log}", ["scan", *on, *documents, log])]
            found += [(f"timeline-{engine}:{log}", ["timeline", *on, "--output-format", "json", log])]
            found += [(f"producers-{engine}:{log}", ["producers", *on, "--output-format", "json", log])]
        return found
    for log in logs:
        found += [
            (f"scan:{log}", ["scan", "-v", *formats, log]),
            (f"scan-records:{log}", ["scan", "--depth", "records", "--statistics", "--digests", log]),
            (f"scan-version:{log}", ["scan", "--broker-version", "2.8.1", "--output-format", "json", log]),
            (f"scan-state:{log}", ["scan", "--state", "{out}/state", "--output-format", "json", log]),
            (f"scan-state-again:{log}", ["scan", "--state", "{out}/../scan-state:SELF/state", log]),
            (f"timeline:{log}", ["timeline", "--output-format", "json:{out}/json", log]),
            (
                f"timeline-table:{log}",
                ["timeline", "--output-format", "jsonl:{out}/jsonl", "--output-format", "table", log],
            ),
            (f"producers:{log}", ["producers", "--output-format", "json:{out}/json", "--output-format", "table", log]),
            (f"producers-summary:{log}", ["producers", "--summary", log]),
            (f"inspect:{log}", ["inspect", "--output-format", "jsonl", log]),
            (f"inspect-records:{log}", ["inspect", "--records", log]),
            (f"dedup:{log}", ["dedup", "--output-format", "json:{out}/json", "--output-format", "table", log]),
            (f"dedup-records:{log}", ["dedup", "--depth", "records", "--output-format", "json", log]),
            (f"attempts:{log}", ["attempts", "--broker-version", "2.8.1", log]),
            (f"fingerprint:{log}", ["diff", "--fingerprint", log]),
        ]
    parents = sorted({str(Path(log).parent) for log in logs} - {"."})
    for parent in parents:
        copies = [log for log in logs if str(Path(log).parent) == parent]
        if len(copies) > 1:
            found += [
                (f"diff:{parent}", ["diff", *formats[:2], "--output-format", "json:{out}/json", *copies]),
                (
                    f"scan-all:{parent}",
                    ["scan", "-v", "--output-format", "table", "--output-format", "json:{out}/json", *copies],
                ),
                (f"dedup-all:{parent}", ["dedup", "--output-format", "json", *copies]),
            ]
    for words in (
        "checks",
        "bugs",
        "explain KA102",
        "explain --broker-version 2.0.1",
        "simulate six-in-flight",
        "simulate --list",
    ):
        found.append((f"{words}", words.split()))
    return found + _text_runs(root)


def _text_runs(root: Path) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    texts = [p for p in sorted(root.rglob("*")) if p.is_file() and not p.is_symlink() and _is_text(p)]
    for number, path in enumerate(texts):
        if path.parent.name != "rules" and len([*path.parent.iterdir()]) > 30 and number % 10:
            continue  # dumps by the hundred are much alike
        name = str(path.relative_to(root))
        if path.suffix == ".jsonl":
            found += [
                (f"replay:{name}", ["replay", name]),
                (f"replay-json:{name}", ["replay", "--output-format", "json", "-v", name]),
            ]
        else:
            found += [(f"scan:{name}", ["scan", name]), (f"inspect:{name}", ["inspect", name])]
    return found


def _is_text(path: Path) -> bool:
    if path.suffix not in {".txt", ".jsonl", ".json", ".log", ".dump"} or re.fullmatch(r"\d{20}", path.stem):
        return False
    return path.stat().st_size < 4 << 20


def record(root: Path, out: Path, engine: str | None, only: str) -> None:
    """Run everything; stdout, stderr, exit code and files of each run are below OUT/NAME.

    Each run is a fork of this process, which has imported what commands need: only the start of Python is left out.
    """
    sys.path[0] = str(Path.cwd())
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "KAUDIT_PAGER": ""}
    os.chdir(root)
    out.mkdir(parents=True)
    todo = [run for run in runs(root, engine) if re.search(only, run[0])]
    first_of_each = {name.split(":")[0]: (name, arguments) for name, arguments in reversed(todo)}
    for name, arguments in first_of_each.values() if engine is None else ():
        _run(out / "warm-up", name, arguments, here=True)
    shutil.rmtree(out / "warm-up", ignore_errors=True)
    workers: set[int] = set()
    for number, (name, arguments) in enumerate(todo):
        if len(workers) >= (1 if engine else os.cpu_count() or 1) or name.startswith("scan-state-again"):
            while workers:
                workers.discard(os.wait()[0])
        pid = os.fork()
        if pid == 0:
            _run(out, name, arguments)
        workers.add(pid)
        if number % 200 == 0:
            sys.stderr.write(f"{number} of {len(todo)}\n")
    while workers:
        workers.discard(os.wait()[0])


def _run(out: Path, name: str, arguments: list[str], *, here: bool = False) -> None:
    from kaudit.__main__ import main as kaudit

    safe = re.sub(r"[^\w.:-]", "_", name)
    where = out / safe
    where.mkdir(parents=True, exist_ok=True)
    sys.argv = ["kaudit", *(a.replace("SELF", safe.split(":", 1)[-1]).replace("{out}", str(where)) for a in arguments)]
    before = [os.dup(descriptor) for descriptor in (0, 1, 2)]
    for descriptor, target in ((0, os.devnull), (1, where / "stdout"), (2, where / "stderr")):
        os.dup2(os.open(target, os.O_RDWR | os.O_CREAT), descriptor)
    try:
        kaudit()
    except SystemExit as error:
        code = error.code
    else:
        code = None
    sys.stdout.flush()
    sys.stderr.flush()
    if here:
        for descriptor, was in enumerate(before):
            os.dup2(was, descriptor)
        return
    (where / "code").write_text(f"{code}\n")
    for path in where.rglob("*"):
        if path.is_file() and "state" not in path.parts:
            text = path.read_bytes().replace(str(out).encode(), b"/OUT")
            for pattern, stands_for in _OWN if path.name != "stdout" else _OWN[:2]:
                text = pattern.sub(stands_for, text)
            path.write_bytes(text)
    os._exit(0)


def compare(before: Path, after: Path) -> int:
    """List the files that differ, of the runs that both sides have; 1 if there are any."""
    names = {path.name for path in before.iterdir()} & {path.name for path in after.iterdir()}
    ours, theirs = _files(before, names), _files(after, names)
    different = sorted(ours ^ theirs) + sorted(
        p for p in ours & theirs if not filecmp.cmp(before / p, after / p, shallow=False)
    )
    for path in different:
        sys.stdout.write(f"{path}\n")
    sys.stdout.write(f"{len(different)} of {len(ours | theirs)} files differ\n")
    return int(bool(different))


def _files(out: Path, names: set[str]) -> set[Path]:
    files = (path for name in names for path in (out / name).rglob("*") if path.is_file())
    return {path.relative_to(out) for path in files if "state" not in path.parts}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.same_answers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("inputs", type=Path)
    recording.add_argument("out", type=Path)
    recording.add_argument("--engine")
    recording.add_argument("--only", default="", metavar="REGEX", help="runs whose name (COMMAND:INPUT) it matches")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.before, options.after)
    record(options.inputs.resolve(), options.out.resolve(), options.engine, options.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
