"""Command line of tests.differential: see the package's docstring."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.differential.cases import Case, audit, compared, run
from tests.differential.damages import CHUNK_BYTES
from tests.differential.known import explained, listing, what_is_wrong
from tests.differential.reference import judge
from tests.differential.table import table


def main() -> int:
    """Run and print the table, or one case; 1 if something was missed that known.toml does not list."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description="Damage logs and audit them.")
    parser.add_argument("--logs", type=int, default=3000, metavar="N", help="about so many logs; default: 3000")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the run; default: 1")
    parser.add_argument("--case", nargs=4, metavar=("SEED", "DAMAGE", "PLACE", "DRESSING"), help="show one log")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="write that log here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        directory = Path(folder) / "logs"
        if chosen.case:
            seed, *rest = chosen.case
            return _show(Case(int(seed), *rest), chosen.keep or directory)
        outcomes = list(run(chosen.logs, chosen.seed, directory))
    new = [each for each in outcomes if not explained(each)]
    say = sys.stdout.write
    say(f"{table(outcomes)}\n{listing(outcomes)}\n")
    for each in new:
        say(f'{what_is_wrong(each)}, not listed: --case {each.seed} "{each.damage}" "{each.place}" "{each.dressing}"\n')
    return 1 if new else 0


def _show(case: Case, directory: Path) -> int:
    say = sys.stdout.write
    files = case.files()
    if files is None:
        say("this history has no such place, or the dressing does not apply\n")
        return 2
    judgement = judge(*files)
    lines = [f"must be found: {proof}" for proof in judgement.proofs]
    lines += [f"excused: {excuse}" for excuse in sorted(judgement.excuses)]
    for found in audit(directory, files[1], CHUNK_BYTES if case.place == "chunk" else None):
        place = f"{found.offset}..{found.last_offset} {found.segment}"
        lines.append(f"found: {found.severity.value} {found.code} {place} {found.message}")
    shown = compared(case, directory)
    wrong = None if shown is None else what_is_wrong(shown)
    say("\n".join([*lines, f"wrong: {wrong}", ""]))
    return 1 if wrong else 0


sys.exit(main())
