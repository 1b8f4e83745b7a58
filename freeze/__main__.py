"""`python -m freeze [folder] [onefile]`: build, and say how big and how quick it is."""

import argparse
import sys
from pathlib import Path

from freeze.build import KINDS, BuildError, build, size_mb
from freeze.contents import ROOT
from freeze.start_up import StartUpError, start_up_ms


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="freeze", description=__doc__)
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--work", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    try:
        for kind, program in build(options.kinds, options.dist, options.work).items():
            answered, bare = start_up_ms([str(program)])
            print(
                f"{program}: {size_mb(kind, program):.1f} MB, answers `initialize` after "
                f"{answered:.0f} ms, {answered / bare:.1f} x a bare Python"
            )
    except (BuildError, StartUpError) as error:
        print(f"freeze: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
