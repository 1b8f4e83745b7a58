"""Draws stories of the whole world from a seed."""

import random

from simulation.story import Step, Story


def draw(seed: int) -> Story:
    """Return the story of that seed."""
    rng = random.Random(seed)
    settings = {
        "chance": str(rng.randrange(1000)),
        "storage": "sqlite" if rng.random() < 0.15 else "jsonl",
        "threads": "slow" if rng.random() < 0.3 else "quick",
    }
    lines = [f"line {chr(0x0410 + at)}" for at in range(4)]
    steps: list[Step] = []
    for _ in range(rng.randint(4, 14)):
        steps += _deed(rng)
    return Story("whole", settings, tuple(steps), tuple(lines))


def _deed(rng: random.Random) -> list[Step]:
    match rng.choices(
        ["round", "prompt", "model", "user", "decide", "trouble", "look", "pass"],
        [14, 14, 30, 14, 10, 9, 6, 12],
    )[0]:
        case "round":
            return _round(rng)
        case "prompt":
            again = ("again",) if rng.random() < 0.1 else ()
            return [Step("prompt", again)]
        case "model":
            return _model(rng)
        case "user":
            return [_user(rng)]
        case "decide":
            action = rng.choice(["accept", "accept", "reject"])
            handled = [Step("edit")] if rng.random() < 0.6 else []
            return [Step("decide", (action, rng.randrange(4))), *handled]
        case "trouble":
            return [_trouble(rng)]
        case "look":
            return [Step(rng.choice(["attach", "attach", "second"]))]
        case _:
            return (
                [Step("wait", (rng.choice([3, 30, 700]),))] if rng.random() < 0.4 else _threads(rng)
            )


def _round(rng: random.Random) -> list[Step]:
    """A turn as it mostly goes, and the decision after it; now and then something else between."""
    asks = [Step("model", (rng.choice(["edit", "edit", "read"]), rng.randrange(9)))]
    ends = [Step("model", ("text", 1)), Step("model", ("stop",))]
    decides = [Step("decide", (rng.choice(["accept", "accept", "reject"]), 0)), Step("edit")]
    steps: list[Step] = []
    for step in (Step("prompt"), *asks * rng.randint(1, 2), *ends, *decides):
        steps += [step] if rng.random() < 0.95 else []
        if rng.random() < 0.15:
            steps += rng.choice([[_user(rng)], [_trouble(rng)], _threads(rng)])
    return steps


def _model(rng: random.Random) -> list[Step]:
    word = rng.choices(["text", "edit", "read", "ask", "stop", "fail"], [4, 4, 2, 2, 4, 1])[0]
    args: tuple[int | str, ...] = (word, rng.randrange(9)) if word in ("text", "edit") else (word,)
    return [Step("model", args)]


def _user(rng: random.Random) -> Step:
    match rng.choice(["steer", "cancel", "rename", "reply", "type", "edit"]):
        case "rename":
            return Step("rename", (rng.randrange(100),))
        case "reply":
            return Step("reply", (rng.randrange(2),))
        case "type":
            return Step("type", (rng.randrange(30),))
        case "edit":
            return Step(
                "edit",
                (rng.choice(["take", "report", "answer", "take,report", "take,report,answer"]),),
            )
        case verb:
            return Step(verb)


def _trouble(rng: random.Random) -> Step:
    match rng.choice(["fault", "fault", "power", "power", "kill"]):
        case "fault":
            return Step("fault", (rng.choice(["enospc", "eio", "short"]), rng.randrange(12)))
        case "power":
            return Step("power", (rng.randrange(20),))
        case _:
            return Step("kill")


def _threads(rng: random.Random) -> list[Step]:
    return [Step("thread")] * rng.randint(1, 3)
