"""`/skills` and `/memory`: what the model can load, and what it is to remember."""

from kode_sidecar.chat.words import Words
from kode_sidecar.client.connection import Client
from kode_sidecar.client.session_view import Json
from kode_sidecar.client.terminal import Terminal
from kode_sidecar.text.shown_text import one_line

_ACTIONS = ("accept", "reject")


async def show_skills(client: Client, terminal: Terminal, words: Words) -> None:
    """A line for each skill, and one for each that cannot be used. Raises RpcError."""
    told = await client.request("kode/skills/list", {})
    for skill in told["skills"]:
        terminal.line(one_line(f"{skill['id']}: {skill['description']}"))
    for problem in told["problems"]:
        terminal.line(f"⚠ {one_line(problem['message'])}", "red")
    if not told["skills"]:
        terminal.line(words.no_skills)


async def obey_memory(client: Client, terminal: Terminal, words: Words, argument: str) -> None:
    """`/memory`, `/memory accept 1 3`, `/memory reject all`. Raises RpcError.

    Numbers count the memories as they are listed now, which is by their age.
    """
    memories: list[Json] = (await client.request("kode/memory/list", {}))["memories"]
    if not argument:
        for number, memory in enumerate(memories, 1):
            state = words.memory_waits if memory["state"] == "candidate" else words.memory_kept
            terminal.line(one_line(f"{number} · {state} · {memory['content']}"))
        terminal.line(words.memory_how if memories else words.memory_none, "dim")
        return
    action, *numbers = argument.split()
    chosen = _chosen(memories, numbers)
    if action not in _ACTIONS or not chosen:
        terminal.line(words.memory_how, "yellow")
        return
    decisions = [{"memoryId": memory["memoryId"], "action": action} for memory in chosen]
    await client.request("kode/memory/decide", {"decisions": decisions})
    done = words.memory_accepted if action == "accept" else words.memory_rejected
    terminal.line(done.format(count=len(chosen)))


def _chosen(memories: list[Json], numbers: list[str]) -> list[Json]:
    """The memories of these numbers; none where one of them is wrong. `all` are those that wait."""
    if numbers == ["all"]:
        return [memory for memory in memories if memory["state"] == "candidate"]
    known = {str(number): memory for number, memory in enumerate(memories, 1)}
    return [known[number] for number in numbers] if set(numbers) <= known.keys() else []
