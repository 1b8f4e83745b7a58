"""Slash commands that a prompt may hold instead of a question: `/compact`, `/undo` and others.

Each does what LSP clients do by a `kode/*` method. Its output is shown as text of the answer and
is not saved in any message.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kode_sidecar.agent.sessions import SessionCopies
from kode_sidecar.core.domain.hunk_state import DONE
from kode_sidecar.core.domain.message import Message, texts_of
from kode_sidecar.core.protocol.change_set import (
    DecideAction,
    DecideParams,
    HunkDecision,
    UndoParams,
)
from kode_sidecar.core.protocol.session import SessionForkParams
from kode_sidecar.core.protocol.turn import (
    ContextEditParams,
    ContextInspectParams,
    ContextUndoCompactionParams,
    Segment,
)
from kode_sidecar.core.text.shown_text import cut_line, one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.tool_cards import Json

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.sessions.session import Session

_TITLE_CHARS = 80
_EDITS = ("leave", "pin", "restore")


@dataclass(frozen=True)
class Command:
    """One command. `hint` describes its argument; empty if it takes none."""

    name: str
    about: str
    hint: str = ""


COMMANDS = (
    Command("compact", "Sum up the conversation so that it takes less of the model's window"),
    Command(
        "context",
        "What the model is told next, part by part; leave parts out, pin or restore them",
        "leave, pin or restore and numbers, or undo-compaction",
    ),
    Command("keep", "Keep what the mode keep has applied, all of it or one file", "path of a file"),
    Command(
        "undo",
        "Take back the newest edits that were applied, or what is not kept of one file; again: "
        "put them back",
        "path of a file",
    ),
    Command("fork", "Copy the conversation to a new session", "number of a prompt"),
    Command("usage", "Tokens and cost of this session"),
    Command("login", "Log in to an MCP server by your browser", "name of the server"),
    Command("rewind", "List your prompts, or go back to before one", "number of a prompt"),
)


def available_commands(more: Sequence[Command] = ()) -> Json:
    """Return the update that lists all commands, and `more`."""
    listed: list[Json] = []
    ours = {command.name for command in COMMANDS}
    for command in (*COMMANDS, *(one for one in more if one.name not in ours)):
        shown: Json = {"name": command.name, "description": command.about}
        listed.append({**shown, "input": {"hint": command.hint}} if command.hint else shown)
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def parse_command(text: str) -> tuple[str, str] | None:
    """Return a command's name and its argument; None for a normal prompt."""
    if not text.startswith("/"):
        return None
    name, _, rest = text[1:].strip().partition(" ")
    return (name, rest.strip()) if name in {command.name for command in COMMANDS} else None


class AcpCommands:
    """Runs the commands of one session. Each returns the text to show."""

    def __init__(
        self, session: "Session", copies: SessionCopies, log_in: Callable[[str], Awaitable[int]]
    ) -> None:
        self._session = session
        self._copies = copies
        self._log_in = log_in
        self._by_name: dict[str, Callable[[str], Awaitable[str]]] = {
            "compact": self._compact,
            "context": self._context,
            "keep": lambda path: self._decide("accept", path),
            "undo": lambda path: self._decide("reject", path) if path else self._undo(),
            "fork": self._fork,
            "usage": self._usage,
            "login": self._login,
            "rewind": self._rewind,
        }

    async def run(self, name: str, rest: str) -> str:
        """Run a command, and return the text to show. Raises KodeError."""
        return await self._by_name[name](rest)

    async def _login(self, server: str) -> str:
        if not server:
            raise KodeError("InvalidParams", "Name a server: /login NAME")
        tools = await self._log_in(server)
        return f"{server} lets you in, and has {tools} tools."

    async def _compact(self, _: str) -> str:
        result, release = await self._session.compact()
        release()
        return (
            f"Summed up {result.dropped_messages} messages: about {result.tokens_before:,} tokens "
            f"became {result.tokens_after:,}. They stay in the conversation; `/rewind` shows them, "
            "`/context undo-compaction` tells the model of them again."
        )

    async def _context(self, rest: str) -> str:
        word, *numbers = rest.split() or [""]
        session_id = self._session.id
        shown = await self._session.inspect(ContextInspectParams(session_id=session_id))
        parts = [one for one in (*shown.segments, *shown.left_out) if one.message_id]
        if word == "undo-compaction":
            result, release = await self._session.edit_context(
                ContextUndoCompactionParams(session_id=session_id)
            )
        elif word in _EDITS:
            ids = tuple(_part(parts, number) for number in numbers)
            edit = ContextEditParams(
                session_id=session_id,
                leave_out=ids if word == "leave" else (),
                pin=ids if word == "pin" else (),
                restore=ids if word == "restore" else (),
            )
            result, release = await self._session.edit_context(edit)
        else:
            listed = "\n".join(_line(at, one, shown.left_out) for at, one in enumerate(parts, 1))
            return f"About {shown.tokens:,} tokens go to the model next:\n\n{listed or '(none)'}"
        release()
        return (
            f"About {result.tokens_before:,} tokens became {result.tokens_after:,}; "
            f"{result.reread_tokens:,} of them the model's host reads anew."
        )

    async def _decide(self, action: DecideAction, path: str) -> str:
        """Keep or undo what the mode `keep` has applied, all of it or one file."""
        change_sets, count, stuck = self._session.change_sets, 0, 0
        for view in change_sets.all_views():
            files = [file for file in view.files if path in ("", file.path)]
            hunks = [hunk.hunk_id for file in files for hunk in file.hunks if hunk.kept is False]
            if hunks:
                decisions = tuple(HunkDecision(hunk_id=one, action=action) for one in hunks)
                params = DecideParams(change_set_id=view.change_set_id, decisions=decisions)
                result = await change_sets.decide(params)
                count += len(result.applied) + len(result.rejected)
                stuck += len(result.conflicts)
        if not count + stuck:
            return f"No edit{f' of {path}' if path else ''} waits to be kept or taken back."
        word = "Kept" if action == "accept" else "Took back"
        text = f"{word} {count} edit{'' if count == 1 else 's'}."
        return f"{text} {stuck} stay, for their text changed since." if stuck else text

    async def _undo(self) -> str:
        change_sets = self._session.change_sets
        for view in reversed(change_sets.all_views()):
            states = {hunk.state for file in view.files for hunk in file.hunks}
            if not states.isdisjoint((*DONE, "undone")):
                params = UndoParams(change_set_id=view.change_set_id)
                result = await change_sets.undo(view.change_set_id, params)
                break
        else:
            return "No edit of this conversation is applied."
        if result.conflicts:
            diffs = "\n".join(conflict.diff for conflict in result.conflicts)
            return f"Not undone, for the text changed since:\n\n```diff\n{diffs}\n```"
        count = len(result.undone or result.restored)
        word = "Took back" if result.undone else "Put back"
        return f"{word} {count} edit{'' if count == 1 else 's'}.\n\n```diff\n{result.diff}\n```"

    async def _fork(self, rest: str) -> str:
        leaf = self._prompt(rest).parent_id if rest else None
        if rest and leaf is None:
            raise KodeError("InvalidParams", "Before the first prompt there is nothing to copy.")
        params = SessionForkParams(session_id=self._session.id, message_id=leaf)
        result = await self._copies.fork(params)
        return f"Copied to the session `{result.session_id}`; it is in the list of sessions."

    async def _usage(self, _: str) -> str:
        totals = self._session.totals
        usage, cost = totals.usage, totals.cost
        lines = [
            f"- input: {usage.input_tokens:,} tokens, {usage.cached_tokens:,} of them from a cache",
            f"- output: {usage.output_tokens:,} tokens",
        ]
        if cost is not None:
            lines.append(f"- cost: {cost.amount:.4f} {cost.currency}")
        return "\n".join(lines)

    async def _rewind(self, rest: str) -> str:
        if not rest:
            prompts = enumerate(self._prompts(), 1)
            listed = "\n".join(f"{number}. {_head(prompt)}" for number, prompt in prompts)
            return f"Go back to before a prompt with `/rewind NUMBER`:\n\n{listed or '(none)'}"
        prompt = self._prompt(rest)
        release = await self._session.set_head(prompt.parent_id)
        release()
        return (
            f"The next prompt takes the place of “{_head(prompt)}”. What followed is kept as "
            "another branch; edits in your files stay, `/undo` takes them back."
        )

    def _prompts(self) -> Sequence[Message]:
        conversation = self._session.conversation
        path = conversation.path(conversation.head)
        return [message for message in path if message.is_prompt]

    def _prompt(self, given: str) -> Message:
        """Return a prompt by its number in `/rewind`, or by its id."""
        prompts = self._prompts()
        if given.isdigit() and 1 <= int(given) <= len(prompts):
            return prompts[int(given) - 1]
        found = next((one for one in prompts if one.id == given), None)
        if found is None:
            text = f"There is no prompt {given!r} here: `/rewind` lists them."
            raise KodeError("InvalidParams", text)
        return found


def _line(number: int, part: Segment, left_out: Sequence[Segment]) -> str:
    state = " · left out" if part in left_out else " · pinned" if part.pinned else ""
    head = cut_line(one_line(part.head), _TITLE_CHARS)
    return f"{number}. {part.origin}{state}, {part.tokens:,} tokens: {head}"


def _part(parts: Sequence[Segment], given: str) -> str:
    """Return the message id of a part by its number in `/context`."""
    if given.isdigit() and 1 <= int(given) <= len(parts):
        return parts[int(given) - 1].message_id or ""
    raise KodeError("InvalidParams", f"There is no part {given!r} here: `/context` lists them.")


def _head(message: Message) -> str:
    text = next(iter(texts_of(message.content)), "")
    return cut_line(one_line(text), _TITLE_CHARS)
