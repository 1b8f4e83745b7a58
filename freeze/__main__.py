"""`python -m freeze [folder] [onefile]`: build, and say how big and how quick it is."""

import sys

from freeze.build import KINDS, BuildError, Kind, build, size_mb
from freeze.contents import ROOT
from freeze.start_up import StartUpError, start_up_ms


def main(arguments: list[str]) -> int:
    """The exit code."""
    kinds: list[Kind] = [kind for kind in KINDS if kind in arguments]
    try:
        for kind, program in build(kinds, ROOT / "dist", ROOT / "build").items():
            answered, bare = start_up_ms([str(program)])
            print(
                f"{program.relative_to(ROOT)}: {size_mb(kind, program):.1f} MB, answers "
                f"`initialize` after {answered:.0f} ms, {answered / bare:.1f} x a bare Python"
            )
    except (BuildError, StartUpError) as error:
        print(f"freeze: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
