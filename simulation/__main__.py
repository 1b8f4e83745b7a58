"""`dev.py simulate`: plays stories from seeds until one breaks a promise, or the time is over."""

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from simulation.playing import KINDS, Stage, Tally, rule_of, search, shrink, write_story
from simulation.story import Story, read_story

_FOLDER = Path("tests/simulation/stories")
_MOST_SEEDS = 10
"""So many are named of each broken promise."""
_TELL_SECONDS = 10.0


def main() -> int:
    """1 when a promise was broken."""
    options = _options()
    with Stage() as stage:
        if options.story:
            verbose = len(options.story) == 1
            return max(_play(stage, read_story(path), verbose=verbose) for path in options.story)
        if options.show is not None:
            print(KINDS[options.world].draw(options.show))
            return _play(stage, KINDS[options.world].draw(options.show), verbose=True)
        return _search(stage, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py simulate", description=__doc__)
    parser.add_argument("story", nargs="*", type=Path, help="play story files and nothing else")
    parser.add_argument("--world", choices=sorted(KINDS), default="edits")
    parser.add_argument("--runs", type=int, default=sys.maxsize, help="how many stories at most")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long at most")
    parser.add_argument(
        "--cpu-seconds", type=float, default=math.inf, help="how much of a core at most"
    )
    parser.add_argument("--seed", type=int, help="of the first story; the next one has the next")
    parser.add_argument("--show", type=int, metavar="SEED", help="print a story and play it")
    parser.add_argument("--first", action="store_true", help="end at the first failure, as it is")
    parser.add_argument("--keep-going", action="store_true", help="count failures by rule instead")
    parser.add_argument("--stories", type=Path, default=_FOLDER, help="where failures are written")
    return parser.parse_args()


def _play(stage: Stage, story: Story, *, verbose: bool) -> int:
    failure = stage.play(story, print if verbose else None)
    print("every promise is kept" if failure is None else f"FAILED: {failure}")
    return int(failure is not None)


def _progress() -> Callable[[Tally], None]:
    """Return what says now and then how far a search is."""
    next_at = _TELL_SECONDS

    def receive(tally: Tally) -> None:
        nonlocal next_at
        if tally.seconds >= next_at:
            print(f"… {tally}", file=sys.stderr, flush=True)
            next_at = max(tally.seconds + _TELL_SECONDS, tally.seconds * 1.2)

    return receive


def _search(stage: Stage, options: argparse.Namespace) -> int:
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(2**40)
    tally, seeds = Tally(), defaultdict[str, list[int]](list)
    print(f"world of {options.world}, seed {first}", flush=True)
    seconds = options.minutes * 60
    for found in search(
        stage,
        options.world,
        first,
        runs=options.runs,
        seconds=seconds,
        tally=tally,
        cpu_seconds=options.cpu_seconds,
        receive=_progress(),
    ):
        rule = rule_of(found.failure)
        seeds[rule].append(found.seed)
        if options.first:
            break
        if not options.keep_going:
            print(f"seed {found.seed} after {tally.seconds:.1f} s: {found.failure}\nshrinking …")
            small = shrink(stage, found)
            path = write_story(options.stories, small)
            print(f"{small.story}\n{small.failure}")
            print(f"written to {path}; to play it: python3 dev.py simulate {path}")
            break
        print(f"seed {found.seed}: {rule}", file=sys.stderr, flush=True)
    for rule, found_at in sorted(seeds.items(), key=lambda item: -len(item[1])):
        print(f"{len(found_at):6} × {rule}: seed {', '.join(map(str, found_at[:_MOST_SEEDS]))}")
    print(f"{tally}, seed {first}")
    return int(bool(seeds))


if __name__ == "__main__":
    sys.exit(main())
