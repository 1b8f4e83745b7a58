"""What an editor shows of one session: feed it what is sent, read the fields.

A snapshot, a replay and the stream lead to the same fields, as in `fold.ts` and `fold.lua`.
"""

from typing import Any

Json = dict[str, Any]
ById = dict[str, Json]
ENVELOPE = ("type", "seq", "ts", "turnId", "messageId", "sessionId", "content")


class Fold:
    """All of a session. A message holds the ids of its `blocks`, `plan` the model's steps.

    A block is as on the wire; while it is `open`, `grown` is what deltas brought. `results` leads
    from a call's block to that of its result; `pending` are questions, `touched` ids to redraw.
    """

    def __init__(self) -> None:
        self.seq, self.title, self.mode, self.model, self.meta = 0, "", "", "", Json()
        self.head_id = self.turn_id = self.last_turn = self.waiting = self.cost = None
        self.messages, self.blocks, self.change_sets, self.hunks = ById(), ById(), ById(), ById()
        self.scouts, self.progress, self.pending, self.usage = ById(), ById(), ById(), Json()
        self.results, self.touched = dict[str, str](), set[str]()
        self.notices, self.plan, self.findings = list[Json](), list[Json](), list[Json]()

    def attach(self, sent: Json) -> None:
        """Take the answer of `kode/session/attach`: a replay, or a snapshot into a new fold."""
        growing = {block["blockId"]: block["text"] for block in sent.get("openBlocks", ())}
        for event in sent.get("events", ()):
            self.event(event)
        if sent["mode"] == "snapshot":
            self._session(sent["session"])
            self.usage, self.plan = sent["usage"], sent.get("plan", [])
            self.findings = sent.get("findings", [])
            self.last_turn, self.head_id, self.cost = map(sent.get, ("lastTurn", "headId", "cost"))
            self.page(sent.get("messages", []))
            for message in sent.get("openMessages", ()):
                self._message(message["id"], message, complete=False, growing=growing)
                self.head_id = message["id"]  # a running answer stands at the tip
            for change_set in sent.get("changeSets", ()):
                self.change_set(change_set)
            self.pending = {one["requestId"]: one for one in (*sent["pending"], *sent["asks"])}
        for block_id, text in growing.items():
            if (block := self.blocks.get(block_id)) and block["open"]:
                block["grown"] = text
        self.seq, self.turn_id = sent["seq"], sent.get("activeTurnId")

    def page(self, messages: list[Json]) -> None:
        """Take complete messages: those of a snapshot, or a page of `kode/message/list`."""
        for message in messages:
            self._message(message["id"], message, complete=True)

    def change_set(self, sent: Json) -> None:
        """Take a change set: of an event, a snapshot, or `kode/changeSet/get`."""
        set_id, turn_id = sent["changeSetId"], sent.get("turnId")
        known = self.change_sets.setdefault(set_id, {"id": set_id, "turnId": turn_id, "hunks": []})
        known["state"] = sent["state"]
        for file in sent.get("files", ()):
            place = {"changeSetId": set_id, "uri": file["uri"], "path": file["path"]}
            base = {"eol": file["base"]["eol"]} if "base" in file else {}
            for hunk in file["hunks"]:
                if hunk["hunkId"] not in self.hunks:
                    known["hunks"].append(hunk["hunkId"])
                    self.hunks[hunk["hunkId"]] = {"turnId": known["turnId"], "eol": "\n"}
                self.hunks[hunk["hunkId"]].update(hunk, **place, **base)
        self.touched.add(set_id)

    def delta(self, delta: Json) -> str:
        """Add what is new of a delta and return it; `at` counts code points, as `len` does."""
        block = self.blocks.get(delta["blockId"])
        if block and block["open"] and delta["at"] <= (have := len(block["grown"])):
            block["grown"] += delta["add"][have - delta["at"] :]
            self.touched |= {block["id"], block["messageId"]}
            return block["grown"][have:]
        return ""

    def event(self, event: Json) -> bool:  # noqa: C901
        """Fold one event; False if it was sent before. Kinds that came later do nothing."""
        if 0 < event.get("seq", 0) <= self.seq:
            return False
        self.seq = event.get("seq") or self.seq
        self.waiting = None if event.get("turnId") else self.waiting
        message_id, block_id = event.get("messageId", ""), event.get("blockId", "")
        match event["type"]:
            case "turn.started":
                self.turn_id, self.last_turn = event["turnId"], None
            case "turn.completed":
                self.turn_id, self.last_turn, self.progress, self.pending = None, event, {}, {}
            case "message.added" | "message.completed" as kind:
                self._message(message_id, event, complete=kind == "message.completed")
                self.head_id = message_id if kind == "message.added" else self.head_id
            case "block.started" | "block.completed" as kind:
                self._block(message_id, block_id, event["block"], is_open=kind == "block.started")
            case "block.dropped" if self.blocks.pop(block_id, None):
                self.messages[message_id]["blocks"].remove(block_id)
                self.touched.add(message_id)
            case "changeSet.updated":
                self.change_set(event)
            case "scout.updated":
                self.scouts[event["scoutId"]] = event
            case "tool.progress":
                for call in (event["toolUseId"], *event.get("siblingToolUseIds", ())):
                    self.progress[call] = event
            case "permission.requested" | "ask.requested" | "decision.requested":
                self.pending[event["requestId"]] = event
            case "permission.resolved" | "ask.resolved" | "decision.resolved":
                self.pending.pop(event["requestId"], None)
            case "session.updated":
                self._session(event)
                self.head_id = event.get("headId", self.head_id) or None
            case "usage.updated":
                self.usage, self.cost = event["usage"], event.get("cost")
            case "model.waiting":
                self.waiting = event
            case "plan.updated" | "review.updated":
                self.plan = event.get("items", self.plan)
                self.findings = event.get("findings", self.findings)
            case "notice":
                self.notices.append(event)
            case _:
                pass
        return True

    def _session(self, sent: Json) -> None:
        vars(self).update({n: sent[n] for n in ("title", "mode", "model", "meta") if n in sent})

    def _message(self, message_id: str, sent: Json, *, complete: bool, growing: Any = ()) -> None:
        known = self.messages.setdefault(message_id, {"id": message_id, "blocks": []})
        known.update({name: sent[name] for name in sent if name not in ENVELOPE}, complete=complete)
        for number, block in enumerate(sent.get("content", ())):
            block_id = block.get("id") or f"{message_id}.{number}"
            self._block(message_id, block_id, block, is_open=block_id in growing)
        self.touched.add(message_id)

    def _block(self, message_id: str, block_id: str, block: Json, *, is_open: bool) -> None:
        message = self.messages.setdefault(message_id, {"id": message_id, "blocks": []})
        if block_id not in self.blocks:
            message["blocks"].append(block_id)
        place = {"id": block_id, "messageId": message_id, "open": is_open, "grown": ""}
        self.blocks[block_id] = block | place
        self.touched |= {block_id, message_id}
        if block["type"] == "tool_result":
            above = self.messages.get(message.get("parentId", ""), {"blocks": []})["blocks"]
            calls = (at for at in above if self.blocks[at].get("toolUseId") == block["toolUseId"])
            call = block.get("callBlockId") or next(calls, "")  # older sessions do not name it
            self.results[call] = block_id
            self.touched.add(call)
