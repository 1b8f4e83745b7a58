"""Asks the user about proposed hunks, permissions and choices, one by one."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.terminal.chat.files import ChatFiles
from kode_sidecar.terminal.chat.keyboard import Asks, Interrupted, Leaving
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client, RpcError
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal

_SCISSORS = "# ------------------------ >8 ------------------------"
_KEYS = ("y", "n", "a", "r", "e", "s", "q")
Decisions = list[dict[str, Any]]


@dataclass
class Review:
    """Asks the user; does not ask with `accept` or without a user at the keyboard.

    `rest` is the answer `a` or `r` for all that follows, until the next prompt.
    """

    client: Client
    files: ChatFiles
    keyboard: Asks
    terminal: Terminal
    words: Words
    accept: bool
    rest: str = ""

    async def decide(
        self, session: ClientSession, *, later: bool = True, applied: bool = False
    ) -> None:
        """Have all undecided hunks of a session decided; accepted ones are then in the files.

        Without `later` hunks left undecided are rejected. With `applied` those that the mode `keep`
        has applied are kept or undone, too. Raises Interrupted on Ctrl-C, after
        carrying out the decisions so far. Raises RpcError and ConnectionLost.
        """
        for change_set_id in list(session.change_sets):
            if session.hunks_of(change_set_id, "proposed"):
                await self._decide(session, change_set_id, later=later)
            if applied and hunks_to_keep(session, change_set_id):
                await self._decide(session, change_set_id, later=True, applied=True)
        self.files.close_all(but=waiting_uris(session))

    async def keep_all(self, session: ClientSession) -> int:
        """Keep all that the mode `keep` has applied; return the number of hunks."""
        count = 0
        for change_set_id in list(session.change_sets):
            if hunks := hunks_to_keep(session, change_set_id):
                count += len(hunks)
                decisions = [_decision(hunk, "accept") for hunk in hunks]
                await self._send(session, change_set_id, decisions)
        return count

    async def permit(self, params: Json) -> str | None:
        """Answer `kode/permission/request`: return an option's id; no answer means no."""
        options = {option["kind"]: option["optionId"] for option in params["options"]}
        no: str | None = options.get("reject")
        self.terminal.patch(params.get("reason", ""), params.get("diff", ""))
        if not self.keyboard.interactive:
            return no
        answer = (await self._reply(self.words.allow) or "").strip().lower()
        kinds = {"y": "allow_once", "s": "allow_session"}
        return options.get(kinds.get(answer, ""), no)

    async def choose(self, params: Json) -> list[str]:
        """Answer `kode/ask`: return the choices; none for an empty line, Ctrl-C or no user."""
        self.terminal.line(f"? {params['question']}", "yellow")
        choices: list[str] = params["choices"]
        for number, choice in enumerate(choices, 1):
            self.terminal.line(f"  {number}  {choice}")
        words = self.words.choose_many if params["multi"] else self.words.choose
        while self.keyboard.interactive:
            line = await self._reply(words)
            numbers = re.findall(r"\S+", (line or "").replace(",", " "))
            chosen = [choices[int(number) - 1] for number in numbers if _is_one_of(number, choices)]
            if len(chosen) == len(numbers) and (params["multi"] or len(chosen) < 2):
                return chosen
        return []

    async def _reply(self, question: str) -> str | None:
        """Return a line typed below `question`; None for Ctrl-C and at the end of input."""
        try:
            return await self.keyboard.reply(question)
        except (Interrupted, Leaving):
            return None

    async def _decide(
        self, session: ClientSession, change_set_id: str, *, later: bool, applied: bool = False
    ) -> None:
        known = await self.client.request("kode/changeSet/get", {"changeSetId": change_set_id})
        for file in known["files"]:
            self.files.learn(file)  # for sessions of an earlier process, whose files are unknown
        is_meant = is_to_keep if applied else _is_proposed
        hunks = filter(is_meant, session.hunks_of(change_set_id))
        for uri in dict.fromkeys(hunk["uri"] for hunk in hunks if hunk.get("kind") == "modify"):
            self.files.open(uri)
        now = await self.client.request("kode/changeSet/get", {"changeSetId": change_set_id})
        pairs = [(file, hunk) for file in now["files"] for hunk in file["hunks"]]
        waiting = [(file, hunk) for file, hunk in pairs if is_meant(hunk)]
        decisions: Decisions = []
        try:
            if self.accept or not self.keyboard.interactive:
                decisions += [self._unasked(file, hunk) for file, hunk in waiting]
            else:
                await self._ask(waiting, decisions, applied=applied)
        finally:
            if not later:
                decided = {decision["hunkId"] for decision in decisions}
                rest = [hunk for _, hunk in waiting if hunk["hunkId"] not in decided]
                decisions += [_decision(hunk, "reject") for hunk in rest]
            if decisions:
                await self._send(session, change_set_id, decisions)

    def _unasked(self, file: Json, hunk: Json) -> dict[str, Any]:
        sensitive = "sensitive" in hunk.get("flags", ())
        accepted = self.accept and not sensitive
        if accepted:
            text = self.files.editor.text(file["uri"])
            self.terminal.hunk(file["path"], hunk, text, self.files.editor.encoding)
        return _decision(hunk, "accept" if accepted else "reject")

    async def _ask(
        self, waiting: Sequence[tuple[Json, Json]], decisions: Decisions, *, applied: bool
    ) -> None:
        """Ask about each hunk, adding to `decisions`. Raises Interrupted."""
        for number, (file, hunk) in enumerate(waiting, 1):
            sensitive = "sensitive" in hunk.get("flags", ())
            if self.rest == "r" or (self.rest == "a" and not sensitive):
                decisions.append(_decision(hunk, "accept" if self.rest == "a" else "reject"))
                continue
            title = self.words.hunk.format(number=number, count=len(waiting), path=file["path"])
            text = self.files.editor.text(file["uri"])
            self.terminal.hunk(title, hunk, text, self.files.editor.encoding)
            key, comment = await self._answer(waiting, applied=applied)
            edited: dict[str, Any] | None = None
            while key == "e" and edited is None:
                edited = await self._edited(file, hunk, comment)
                if edited is None:
                    key, comment = await self._answer(waiting, applied=applied)
            if key == "q":
                return
            if key == "s":
                continue
            if edited is not None:
                decisions.append(edited)
            else:
                decisions.append(_decision(hunk, "accept" if key in "ya" else "reject", comment))
            if key in "ar" and key != self.rest:
                self.rest = key
                self.terminal.line(self.words.rest[key], "dim")

    async def _edited(self, file: Json, hunk: Json, comment: str) -> dict[str, Any] | None:
        """Let the user edit the new text; return the decision, None to ask again."""
        proposed: str = hunk.get("newText", "")
        shown = to_lf(proposed)
        suffix = PurePosixPath(file["path"]).suffix
        body, old = shown.removesuffix("\n"), to_lf(hunk.get("oldText", ""))
        notes = [*self.words.edit_help.split("\n"), *(f"- {line}" for line in old.splitlines())]
        below = "\n".join([_SCISSORS, *(f"# {note}" for note in notes)])
        text = await self.keyboard.edit(f"{body}\n{below}", suffix)
        if text is None:
            return None
        above, cut, _ = text.rpartition(_SCISSORS)
        text = above.removesuffix("\n") if cut else text
        if text == body:
            self.terminal.line(self.words.unchanged, "yellow")
            return None
        text += "\n" if text and (shown or old).endswith("\n") else ""
        text = text.replace("\n", "\r\n") if "\r\n" in proposed else text
        return _decision(hunk, "replace", comment) | {"newText": text}

    def _list(self, waiting: Sequence[tuple[Json, Json]]) -> None:
        """List the files with their number of undecided hunks."""
        counts = Counter(file["path"] for file, _ in waiting)
        for path, count in counts.items():
            self.terminal.line(f"  {count:3}  {path}")

    async def _answer(
        self, waiting: Sequence[tuple[Json, Json]], *, applied: bool
    ) -> tuple[str, str]:
        """Return one of y, n, a, r, e, s and q, and a comment; what is applied is not edited."""
        while True:
            line = await self.keyboard.reply(self.words.keep if applied else self.words.decide)
            if line is None:
                self.terminal.line()
                return "q", ""
            key, _, comment = line.strip().partition(" ")
            key = key.lower()
            if key in _KEYS and (key != "e" or (self.keyboard.edits and not applied)):
                return key, comment.strip()
            if key == "l":
                self._list(waiting)
            else:
                self.terminal.line(self.words.decide_help, "dim")

    async def _send(self, session: ClientSession, change_set_id: str, decisions: Decisions) -> None:
        self.files.refresh()
        params = {"changeSetId": change_set_id, "seenSeq": session.seq, "decisions": decisions}
        try:
            result = await self.client.request("kode/changeSet/decide", params)
        except RpcError as error:
            self.terminal.line(f"⚠ {one_line(error.message)}", "red")
            return
        lost = len(result.get("stale", ())) + len(result.get("conflicts", ()))
        text = self.words.outcome.format(
            applied=len(result.get("applied", ())),
            rejected=len(result.get("rejected", ())),
            lost=lost,
        )
        self.terminal.line(text, "yellow" if lost else "")


def is_to_keep(hunk: Json) -> bool:
    """Return whether the mode `keep` has applied a hunk that the user has yet to keep or undo."""
    return hunk["state"] in ("applied", "replaced") and hunk.get("kept") is False


def hunks_to_keep(session: ClientSession, change_set_id: str) -> list[Json]:
    """Return the hunks of a change set that are applied and not kept yet."""
    return [hunk for hunk in session.hunks_of(change_set_id) if is_to_keep(hunk)]


def _is_proposed(hunk: Json) -> bool:
    return hunk["state"] == "proposed"


def waiting_hunks(session: ClientSession) -> set[str]:
    """Return the ids of a session's hunks that are not decided."""
    return {hunk_id for hunk_id, hunk in session.hunks.items() if hunk["state"] == "proposed"}


def waiting_uris(session: ClientSession) -> set[str]:
    """Return the files of a session that have hunks to decide."""
    return {hunk["uri"] for hunk in session.hunks.values() if hunk["state"] == "proposed"}


def _is_one_of(number: str, choices: Sequence[str]) -> bool:
    return number in map(str, range(1, len(choices) + 1))


def _decision(hunk: Json, action: str, comment: str = "") -> dict[str, Any]:
    decision = {"hunkId": hunk["hunkId"], "action": action}
    return decision | ({"comment": comment} if comment else {})
