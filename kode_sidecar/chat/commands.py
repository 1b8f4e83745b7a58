"""Commands that look or choose: `/model`, `/mode`, `/usage`, `/skills`, `/memory`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from kode_sidecar.chat.words import Words
from kode_sidecar.client.connection import Client
from kode_sidecar.client.session_view import Json
from kode_sidecar.client.terminal import Terminal
from kode_sidecar.protocol.session import Mode
from kode_sidecar.text.shown_text import one_line

MODES: tuple[str, ...] = get_args(Mode)


@dataclass
class Commands:
    """`chosen` are the model and the mode of the next turns; `settings` say the rest.

    What asks the sidecar raises RpcError and ConnectionLost.
    """

    client: Client
    terminal: Terminal
    words: Words
    chosen: dict[str, str]
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    def now(self, name: str) -> str:
        """Return the `model` or `mode` of the next turn."""
        return self.chosen.get(name) or str(self.settings.get(name, ""))

    async def model(self, model: str) -> None:
        """Note the model of the next turns; without one list what there is."""
        if model:
            self.chosen["model"] = model
            self.terminal.line(self.words.model_set.format(model=model))
            return
        self.terminal.line(self.words.model.format(model=self.now("model")))
        offer = await self.client.request("kode/models/list", {})
        names = [each["name"] for each in offer["logical"]]
        for provider in offer["providers"]:
            names += [each["name"] for each in provider["models"] if each.get("offered")]
            if provider.get("error", {}).get("code") not in (None, "AuthRequired"):
                self.terminal.line(f"⚠ {one_line(provider['error']['message'])}", "yellow")
        self.terminal.line(self.words.models.format(models=", ".join(names)), "dim")

    def mode(self, mode: str) -> None:
        """Note the mode of the next turns; without one say which it is."""
        words = self.words
        if mode and mode not in MODES:
            text = words.mode_wrong.format(mode=mode, modes=", ".join(MODES))
            self.terminal.line(text, "yellow")
            return
        if mode:
            self.chosen["mode"] = mode
        text = words.mode_set if mode else words.mode
        self.terminal.line(text.format(mode=self.now("mode")))

    async def usage(self, session_id: str) -> None:
        """Show tokens and money of this session and of today, and of each model of several."""
        here = datetime.now().astimezone()
        offset = here.utcoffset()
        today = here.strftime("%Y-%m-%d")
        minutes = int(offset.total_seconds() // 60) if offset else 0
        asked: tuple[tuple[str, Json], ...] = (
            (self.words.usage_session, {"sessionId": session_id}),
            (self.words.usage_today, {"since": today, "until": today, "utcOffsetMinutes": minutes}),
        )
        for name, params in asked:
            told = await self.client.request("kode/usage/get", {**params, "by": ["model"]})
            self.terminal.line(self._usage_line(name, told["total"]))
            if len(told["rows"]) > 1:
                for row in told["rows"]:
                    self.terminal.line("  " + self._usage_line(row.get("model", "—"), row), "dim")

    async def skills(self) -> None:
        """Show a line for each skill, and one for each that cannot be used."""
        told = await self.client.request("kode/skills/list", {})
        for skill in told["skills"]:
            self.terminal.line(one_line(f"{skill['id']}: {skill['description']}"))
        for problem in told["problems"]:
            self.terminal.line(f"⚠ {one_line(problem['message'])}", "red")
        if not told["skills"]:
            self.terminal.line(self.words.no_skills)

    async def memory(self, argument: str) -> None:
        """Carry out `/memory`, `/memory accept 1 3` or `/memory reject all`.

        Numbers count the memories as they are listed now, which is by their age.
        """
        words = self.words
        memories: list[Json] = (await self.client.request("kode/memory/list", {}))["memories"]
        if not argument:
            for number, memory in enumerate(memories, 1):
                state = words.memory_waits if memory["state"] == "candidate" else words.memory_kept
                self.terminal.line(one_line(f"{number} · {state} · {memory['content']}"))
            self.terminal.line(words.memory_how if memories else words.memory_none, "dim")
            return
        action, *numbers = argument.split()
        chosen = _chosen(memories, numbers)
        if action not in ("accept", "reject") or not chosen:
            self.terminal.line(words.memory_how, "yellow")
            return
        decisions = [{"memoryId": memory["memoryId"], "action": action} for memory in chosen]
        await self.client.request("kode/memory/decide", {"decisions": decisions})
        done = words.memory_accepted if action == "accept" else words.memory_rejected
        self.terminal.line(done.format(count=len(chosen)))

    def _usage_line(self, name: str, counted: Json) -> str:
        usage = counted["usage"]
        text = self.words.usage.format(
            name=name,
            answers=counted["answers"],
            input=usage.get("inputTokens", 0),
            cached=usage.get("cachedTokens", 0),
            output=usage.get("outputTokens", 0),
        )
        costs = [f"{cost['amount']:.4f} {cost['currency']}" for cost in counted.get("costs", ())]
        return " · ".join([text, *costs])


def _chosen(memories: list[Json], numbers: list[str]) -> list[Json]:
    """Return the memories of these numbers; none where one is wrong. `all` are those that wait."""
    if numbers == ["all"]:
        return [memory for memory in memories if memory["state"] == "candidate"]
    known = {str(number): memory for number, memory in enumerate(memories, 1)}
    return [known[number] for number in numbers] if set(numbers) <= known.keys() else []
