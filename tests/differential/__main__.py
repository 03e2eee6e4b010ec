"""Command line of tests.differential: see the package's docstring."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.differential.cases import Case, audit, outcome, run
from tests.differential.damages import CHUNK_BYTES
from tests.differential.known import explained, listing
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
    print(table(outcomes))
    new = [each for each in outcomes if not explained(each)]
    print(listing(outcomes))
    for each in new:
        print(f'not in known.toml: --case {each.seed} "{each.damage}" "{each.place}" "{each.dressing}"')
    return 1 if new else 0


def _show(case: Case, directory: Path) -> int:
    files = case.files()
    if files is None:
        print("this history has no such place, or the dressing does not apply")
        return 2
    judgement = judge(*files)
    for proof in judgement.proofs:
        print("must be found:", proof)
    for excuse in sorted(judgement.excuses):
        print("excused:", excuse)
    for finding in audit(directory, files[1], CHUNK_BYTES if case.place == "chunk" else None):
        print(finding.severity.value, finding.code, finding.offset, finding.last_offset, finding.segment, finding.message)
    shown = outcome(case, directory)
    return 1 if shown is not None and (shown.missed or (shown.is_healthy and shown.codes)) else 0


sys.exit(main())
