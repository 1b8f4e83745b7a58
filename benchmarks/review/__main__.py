"""`python -m benchmarks.review`: 40 planted faults and 20 clean diffs, each with 8 behaviours."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.review.cases import CLEAN, FAULTS
from benchmarks.review.large import large
from benchmarks.review.play import play


def main() -> int:
    """Print the figures; return 1 if one is not exact."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.review", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th case")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random edits")
    parser.add_argument("--large", action="store_true", help="2,000 changed files instead")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kode-review-") as folder:
        if options.large:
            print("\n".join(asyncio.run(large(Path(folder)))))
            return 0
        cases = (*FAULTS, *CLEAN)[:: options.every]
        seen = asyncio.run(play(Path(folder), cases, options.seed))
    for what in sorted(name for name in seen.counts if not name.endswith(", of")):
        print(f"{what:32} {seen.counts[what]:5} of {seen.counts[f'{what}, of']}")
    print(f"{len(cases)} diffs in {time.monotonic() - began:.0f} s")
    for line in seen.wrong:
        print(line, file=sys.stderr)
    return 1 if seen.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
