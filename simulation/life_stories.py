"""Draws the lives of sessions from a seed: what is asked, and what changes between."""

import random

from kode_sidecar.core.domain.agent_tool import AGENT_TOOLS
from simulation.life_surroundings import MODES, ZONES
from simulation.life_world import HOSTS
from simulation.story import Step, Story

_DEFERRED = [tool.name for tool in AGENT_TOOLS if tool.deferred]
_AROUND = {
    "notes": 3,
    "trusted": 2,
    "skills": 3,
    "servers": 3,
    "editor": 2,
    "commands": 2,
    "locale": 2,
    "folders": 3,
    "hours": 14,
}


def draw(seed: int) -> Story:
    """Return the story of that seed."""
    rng = random.Random(seed)
    settings = {"host": rng.choice(list(HOSTS)), "zone": rng.choice(list(ZONES))}
    steps = [_change(rng) for _ in range(rng.randrange(3))]
    for _ in range(rng.randint(2, 5)):
        steps += [_change(rng) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        steps.append(_asked(rng))
    return Story("lives", settings, tuple(steps))


def _asked(rng: random.Random) -> Step:
    match rng.choices(["turn", "find", "rewrite"], [6, 2, 2])[0]:
        case "find":
            return Step("find", (rng.choice(_DEFERRED),))
        case verb:
            return Step(verb, (rng.randrange(9),))


def _change(rng: random.Random) -> Step:
    match rng.choices(
        ["around", "mode", "restart", "fork", "effort", "model"], [10, 4, 3, 2, 1, 1]
    )[0]:
        case "around":
            what = rng.choice(list(_AROUND))
            return Step("around", (what, rng.randrange(_AROUND[what])))
        case "mode":
            return Step("mode", (rng.choice(MODES),))
        case "effort":
            return Step("effort", (rng.choice(["low", "high"]),))
        case "model":
            return Step("model", (rng.choice(["m", "n"]),))
        case verb:
            return Step(verb)
