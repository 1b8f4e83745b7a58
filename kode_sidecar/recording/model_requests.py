"""What the model was asked in a run: compared by itself, never to find an answer.

A changed prompt thus changes what was asked and no recording.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.recording.comparison import Difference, Ids, first_difference, shown, shown_texts
from kode_sidecar.recording.places import Places
from kode_sidecar.recording.strands import as_object

ModelRequests = Mapping[str, Sequence[Any]]
"""The bodies of each agent's requests, in order."""


def read_requests(path: Path, places: Places) -> ModelRequests:
    """What a process wrote with `--requests`; folders by their names."""
    found: dict[str, list[Any]] = {}
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for line in lines:
        told = as_object(json.loads(line))
        found.setdefault(told["agent"], []).append(places.name_live(told.get("body")))
    return found


def without_prompts(requests: ModelRequests) -> ModelRequests:
    """The same, with names for the long texts that all requests of a kind share.

    These are `<system prompt>` and `<tools>`: a new tool changes no request.
    """
    return {
        agent: [_without_prompt(as_object(body)) for body in bodies]
        for agent, bodies in requests.items()
    }


def _without_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(body)
    if "system" in out:
        out["system"] = "<system prompt>"
    messages = [as_object(message) for message in out.get("messages", ())]
    if messages and messages[0].get("role") == "system":
        messages[0] = {"role": "system", "content": "<system prompt>"}
    out["messages"] = messages
    if "tools" in out:
        out["tools"] = "<tools>"
    return out


def different_requests(was: ModelRequests, now: ModelRequests) -> Difference | None:
    """The first place where two runs asked differently."""
    ids = Ids(())
    for agent in [*was, *(agent for agent in now if agent not in was)]:
        lane = f"what the model was asked by {agent}"
        found = first_difference(list(was.get(agent, ())), list(now.get(agent, ())), ids)
        if found is not None:
            at, one, other = found
            texts = isinstance(one, str) and isinstance(other, str)
            told = shown_texts(one, other) if texts else (shown(one), shown(other))
            return Difference(lane, 0, at, *told)
    return None
