"""Draws stories of the world of edits from a seed."""

import random

from simulation.edit_truth import FIRST_LINE
from simulation.editors import EDITORS
from simulation.story import Step, Story

_WORDS = ["}", "x", "return x", "中 😀", "end", "  }"]
_HANDLING = ["take", "report", "answer"]


def draw(seed: int) -> Story:
    """Return the story of that seed."""
    rng = random.Random(seed)
    count = rng.randint(0, 7)
    lines = [_line(rng, at) for at in range(count)]
    settings = {
        "editor": rng.choice(list(EDITORS)),
        "eol": rng.choice(["lf", "lf", "crlf"]),
        "end": rng.choice(["closed", "closed", "open"]),
        "opened": "yes" if rng.random() < 0.85 else "no",
        "threads": "slow" if rng.random() < 0.2 else "quick",
    }
    steps: list[Step] = []
    for _ in range(rng.randint(4, 14)):
        steps += _deed(rng)
    return Story("edits", settings, tuple(steps), tuple(lines))


def _line(rng: random.Random, at: int) -> str:
    """A word of few, most with a mark of their own: lines that are alike hide mistakes."""
    word = rng.choice(_WORDS)
    return f"{word} {chr(FIRST_LINE + at)}" if rng.random() < 0.8 else rng.choice(["", "}", word])


def _deed(rng: random.Random) -> list[Step]:
    match rng.choices(
        ["key", "propose", "decide", "undo", "handle", "wait", "file", "model", "restart"],
        [30, 20, 24, 8, 24, 8, 7, 8, 2],
    )[0]:
        case "key":
            return _key(rng)
        case "propose":
            return [_proposal(rng) for _ in range(rng.choice([1, 1, 2]))]
        case "decide":
            return _decision(rng)
        case "undo":
            scope = ("all",) if rng.random() < 0.3 else ()
            return [Step("undo", (rng.randrange(6), *scope))]
        case "handle":
            return [Step(verb) for verb in _handling(rng)]
        case "wait":
            return [Step("wait", (rng.choice([1, 3, 3, 5, 25, 25, 700]),))]
        case "file":
            return _file(rng)
        case "model":
            return [Step("listen") if rng.random() < 0.6 else Step("turn", (_mode(rng),))]
        case _:
            return [Step("restart")]


def _key(rng: random.Random) -> list[Step]:
    verb = rng.choices(["type", "delete", "cut", "undo_key"], [70, 15, 8, 7])[0]
    args: tuple[int | str, ...] = (rng.randrange(60),)
    if verb == "type":
        args += (rng.choice(["char", "line", "line", "above"]),)
    elif verb == "cut":
        args += (rng.randrange(2),)
    reported = [Step("report")] if rng.random() < 0.7 else []
    return [Step(verb, () if verb == "undo_key" else args), *reported]


def _proposal(rng: random.Random) -> Step:
    gone, come = rng.choice([(0, 1), (1, 1), (1, 0), (2, 1), (1, 2), (0, 2), (2, 2)])
    word = rng.choice(["new", "}", "x"])
    return Step("propose", (rng.randrange(10), gone, come, word))


def _decision(rng: random.Random) -> list[Step]:
    if rng.random() < 0.2:
        return [Step("decide_all", (rng.choice(["accept", "accept", "reject"]),))]
    action = rng.choices(["accept", "reject", "replace"], [8, 1, 1])[0]
    steps = [Step("decide", (action, rng.randrange(6)))]
    return steps + ([Step(verb) for verb in _HANDLING] if rng.random() < 0.5 else [])


def _handling(rng: random.Random) -> list[str]:
    """What the editor does next with an edit, in any order and perhaps not all of it."""
    return rng.sample(_HANDLING, rng.randint(1, 3)) if rng.random() < 0.5 else _HANDLING


def _file(rng: random.Random) -> list[Step]:
    match rng.choice(["save", "close", "close", "open", "switch", "look"]):
        case "save":
            return [Step("save_file")]
        case "close":
            args = ("unsaved",) if rng.random() < 0.3 else ()
            again = [Step("open")] if rng.random() < 0.7 else []
            return [Step("close", args), *again]
        case "open":
            return [Step("open")]
        case "switch":
            return [Step("switch", (rng.randrange(10), rng.randrange(2)))]
        case _:
            return [Step("look")]


def _mode(rng: random.Random) -> str:
    return rng.choices(["review", "auto", "ask"], [5, 3, 2])[0]
