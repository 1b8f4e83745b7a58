"""Commands that show or choose: `/model`, `/mode`, `/effort`, `/context`, `/usage` and others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from kode_sidecar.core.protocol.session import Effort, Mode
from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal

_LINE_CHARS = 110
MODES: tuple[str, ...] = get_args(Mode)
EFFORTS: tuple[str, ...] = get_args(Effort)


@dataclass
class ChatCommands:
    """Runs the commands. `chosen` are model, mode and effort of the next turns, else `settings`.
    `offered` are the models of the last list, `verbs` what `/name` can call, with descriptions.

    Methods that ask the sidecar raise RpcError and ConnectionLost.
    """

    client: Client
    terminal: Terminal
    words: Words
    chosen: dict[str, str]
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    offered: list[str] = field(default_factory=list[str])
    verbs: dict[str, str] = field(default_factory=dict[str, str])
    mode_chosen: Callable[[str], None] = lambda _: None

    def now(self, name: str) -> str:
        """Return the `model` or `mode` of the next turn."""
        return self.chosen.get(name) or str(self.settings.get(name, ""))

    async def model(self, model: str) -> None:
        """Set the model of the next turns; without an argument list the models."""
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
        self.offered[:] = names
        self.terminal.line(self.words.models.format(models=", ".join(names)), "dim")

    def mode(self, mode: str) -> None:
        """Set the mode of the next turns, or the one after it; without an argument show it."""
        words = self.words
        if mode == "next":
            mode = MODES[(MODES.index(self.now("mode")) + 1) % len(MODES)]
        if mode and mode not in MODES:
            text = words.mode_wrong.format(mode=mode, modes=", ".join(MODES))
            self.terminal.line(text, "yellow")
            return
        if mode:
            self.chosen["mode"] = mode
            self.mode_chosen(mode)
        text = words.mode_set if mode else words.mode
        self.terminal.line(text.format(mode=self.now("mode")))

    def effort(self, effort: str) -> None:
        """Set how hard the model thinks in the next turns; without an argument show it."""
        words = self.words
        if effort and effort not in EFFORTS:
            text = words.effort_wrong.format(effort=effort, efforts=", ".join(EFFORTS))
            self.terminal.line(text, "yellow")
            return
        if effort:
            self.chosen["effort"] = effort
        self.terminal.line(words.effort.format(effort=self.now("effort") or "—"))

    async def context(self, session_id: str, argument: str) -> None:
        """Carry out `/context`, `/context leave|pin|restore 1 3` or `/context undo`."""
        words, named = self.words, {"sessionId": session_id}
        shown = await self.client.request("kode/context/inspect", named)
        left_out: list[Json] = shown.get("leftOut", [])
        parts = [one for one in [*shown["segments"], *left_out] if one.get("messageId")]
        if not argument:
            for number, one in enumerate(parts, 1):
                sign = "−" if one in left_out else "★" if one.get("pinned") else "·"
                line = f"{number} {sign} {one['origin']} · {one['tokens']} · {one['head']}"
                self.terminal.line(one_line(line)[:_LINE_CHARS])
            self._next_request(shown)
            self.terminal.line(words.context_how, "dim")
            return
        word, *numbers = argument.split()
        known = {str(number): one["messageId"] for number, one in enumerate(parts, 1)}
        member = {"leave": "leaveOut", "pin": "pin", "restore": "restore"}.get(word)
        if word == "undo" and not numbers:
            reported = await self.client.request("kode/context/undoCompaction", named)
        elif member is None or not numbers or not set(numbers) <= known.keys():
            self.terminal.line(words.context_how, "yellow")
            return
        else:
            edit: Json = {**named, member: [known[number] for number in numbers]}
            reported = await self.client.request("kode/context/edit", edit)
        text = words.context_edited.format(
            before=reported["tokensBefore"],
            after=reported["tokensAfter"],
            reread=reported["rereadTokens"],
        )
        self.terminal.line(text)

    def _next_request(self, shown: Json) -> None:
        """Show how large the next request is, what of it is cached, and what reading it costs."""
        words, window = self.words, shown.get("window")
        known = "" if window is None else words.context_window.format(window=window)
        self.terminal.line(words.context_next.format(tokens=shown["tokens"], window=known))
        if cached := shown.get("cached"):
            until = datetime.fromisoformat(cached["until"]).astimezone()
            text = words.context_cached.format(tokens=cached["tokens"], until=f"{until:%H:%M:%S}")
            self.terminal.line(text)
        if cost := shown.get("cost"):
            both = {name: f"{cost[name]:.4f}" for name in ("amount", "uncached")}
            self.terminal.line(words.context_cost.format(**both, currency=cost["currency"]))

    async def compact(self, session_id: str) -> None:
        """Let the model sum up the conversation now."""
        self.terminal.line(self.words.compacting, "dim")
        done = await self.client.request("kode/context/compact", {"sessionId": session_id})
        text = self.words.compacted.format(
            count=done["droppedMessages"], before=done["tokensBefore"], after=done["tokensAfter"]
        )
        self.terminal.line(text)

    def diff(self, session: ClientSession) -> None:
        """Show every hunk of a session that waits or is applied."""
        shown = [
            hunk
            for set_id in session.change_sets
            for hunk in session.hunks_of(set_id)
            if hunk["state"] in ("proposed", "applied", "replaced")
        ]
        self.terminal.change_set(shown, {})
        if not shown:
            self.terminal.line(self.words.no_changes)

    async def output(self, session: ClientSession, argument: str) -> None:
        """Show the whole result of the last call, or of an earlier one; long ones come in pages."""
        results = [b for b in session.blocks.values() if b["type"] == "tool_result"]
        number = int(argument or 1) if (argument or "1").isdecimal() else 0
        if not 0 < number <= len(results):
            self.terminal.line(self.words.no_output, "yellow")
            return
        result = results[-number]
        use = session.tool_use(result["toolUseId"])
        self.terminal.line(one_line(use.get("title") or use.get("name", "?")), "bold")
        for part in result.get("content", ()):
            text = part.get("text", "")
            if "blob" in part:
                text = await self._blob(part["blob"]["ref"])
            for line in text.splitlines():
                self.terminal.line(f"  {line}")

    async def _blob(self, ref: str) -> str:
        """Return a text that was too large to be sent at once."""
        pages: list[str] = []
        params: Json = {"ref": ref, "length": 1 << 20}
        while True:
            page = await self.client.request("kode/blob/read", params)
            pages.append(page["text"])
            if "nextOffset" not in page:
                return "".join(pages)
            params["offset"] = page["nextOffset"]

    async def usage(self, session_id: str) -> None:
        """Show tokens and costs of this session and of today; per model if there are several."""
        here = datetime.now().astimezone()
        offset = here.utcoffset()
        today = here.strftime("%Y-%m-%d")
        minutes = int(offset.total_seconds() // 60) if offset else 0
        asked: tuple[tuple[str, Json], ...] = (
            (self.words.usage_session, {"sessionId": session_id}),
            (self.words.usage_today, {"since": today, "until": today, "utcOffsetMinutes": minutes}),
        )
        for name, params in asked:
            reported = await self.client.request("kode/usage/get", {**params, "by": ["model"]})
            self.terminal.line(self._usage_line(name, reported["total"]))
            if len(reported["rows"]) > 1:
                for row in reported["rows"]:
                    self.terminal.line("  " + self._usage_line(row.get("model", "—"), row), "dim")

    async def calls(self, name: str) -> bool:
        """Return whether a prompt that begins with `/name` calls a verb, perhaps a new one."""
        if name not in self.verbs:
            await self.list_verbs()
        return name in self.verbs

    async def list_verbs(self) -> None:
        """Ask what a prompt `/name` can call."""
        reported = await self.client.request("kode/verbs/list", {})
        self.verbs.clear()
        for verb in reported["verbs"]:
            about = " ".join([verb.get("arguments", ""), verb["title"] + ":", verb["description"]])
            self.verbs[f"/{verb['name']}"] = one_line(about)

    async def skills(self) -> None:
        """Show a line for each skill, and one for each invalid skill."""
        reported = await self.client.request("kode/skills/list", {})
        for skill in reported["skills"]:
            self.terminal.line(one_line(f"{skill['id']}: {skill['description']}"))
        verbs = await self.client.request("kode/verbs/list", {})
        for problem in (*reported["problems"], *verbs["problems"]):
            self.terminal.line(f"⚠ {one_line(problem['message'])}", "red")
        if not reported["skills"]:
            self.terminal.line(self.words.no_skills)

    async def memory(self, argument: str) -> None:
        """Carry out `/memory`, `/memory accept 1 3` or `/memory reject all`.

        Numbers are positions in the present list, which is sorted by age.
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
    """Return the memories with these numbers; none if one is wrong. `all` means all candidates."""
    if numbers == ["all"]:
        return [memory for memory in memories if memory["state"] == "candidate"]
    known = {str(number): memory for number, memory in enumerate(memories, 1)}
    return [known[number] for number in numbers] if set(numbers) <= known.keys() else []
